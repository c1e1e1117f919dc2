"""The live loop's times and weight, with a real worker.

Run as `python -m bench.live [--mb 50] [--sessions 20] [--seconds 20] [--json]`. Prints medians with their worst values
beside the targets: seal of a session of that size that is already ingested (rules, after each some new lines)
100 ms; claim and handoff; CPU of one minute with so many live sessions, quiet and growing by a tool use a second
each; resident memory.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from bench.synthetic import append, generate, leaf
from endless_mode.home import Home
from endless_mode.hook import hook
from endless_mode.worker.client import WorkerClient

HEAD = b"# [claude-mem] Endless Mode"
TICKS = os.sysconf("SC_CLK_TCK")


class Worker:
    """A worker of its own in a home of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.projects = root / ".claude/projects/p"
        self.projects.mkdir(parents=True)
        self.environ = {
            "HOME": str(root),
            "PATH": os.environ["PATH"],
            "CLAUDE_MEM_DATA_DIR": str(root / "data"),
            "CLAUDE_MEM_ENDLESS_BACKFILL": "off",
        }
        self.home = Home(root / "data", {b"HOME": os.fsencode(root)})
        self.client = WorkerClient(self.home, 120)
        command = [sys.executable, "-I", "-m", "endless_mode.worker", "--foreground"]
        self.process = subprocess.Popen(command, env=self.environ)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with contextlib.suppress(Exception):
                self.client.health()
                return
            time.sleep(0.02)
        raise SystemExit("the worker does not start")

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    def payload(self, event: str, session: str, **more: object) -> bytes:
        path = self.projects / f"{session}.jsonl"
        base = {"session_id": session, "transcript_path": str(path), "cwd": "/tmp", "hook_event_name": event}
        return json.dumps({**base, **more}).encode()

    def send(self, event: str, session: str, **more: object) -> bytes:
        headers = {"X-Endless-User-Home": str(self.root)}
        return self.client.hook("claude-code", event, self.payload(event, session, **more), headers)

    def hook(self, event: str, session: str, **more: object) -> bytes:
        """The same through the real hook command."""
        run = str(Path(hook.__file__).with_name("run.py"))
        command = [sys.executable, "-I", "-S", run, "claude-code", event]
        return subprocess.run(
            command, input=self.payload(event, session, **more), capture_output=True, check=True, env=self.environ
        ).stdout

    def seal(self, session: str) -> None:
        body = {"contentSessionId": session, "transcriptPath": str(self.projects / f"{session}.jsonl")}
        headers = {"Content-Type": "application/json", "X-Endless-User-Home": str(self.root)}
        self.client.request("POST", "/api/sessions/seal", json.dumps(body).encode(), headers)

    def cpu(self) -> float:
        """Seconds of processor time the worker has used: by the scheduler's count where there is one (Linux)."""
        told = list(Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"))
        if told:
            return sum(int(path.read_text().split()[0]) for path in told) / 1e9
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident(self) -> float:
        """Resident memory in megabytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def spread(values: list[float]) -> str:
    return f"median {statistics.median(values):.1f} ms, worst {max(values):.1f} ms ({len(values)} times)"


def answer(path: Path) -> None:
    """The turn's last words: legs without any would look like a client that thrashes."""
    message = {"role": "assistant", "id": os.urandom(6).hex(), "content": [{"type": "text", "text": "Done."}]}
    write_line(path, {"parentUuid": leaf(path), "type": "assistant", "message": message})


def boundary(path: Path) -> None:
    """What the client writes after a compaction, in short."""
    meta = {"trigger": "auto", "preTokens": 160_000}
    above = {"parentUuid": None, "logicalParentUuid": leaf(path)}
    write_line(path, {**above, "type": "system", "subtype": "compact_boundary", "compactMetadata": meta})


def write_line(path: Path, line: dict[str, object]) -> None:
    """One more entry of the chain."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    with path.open("ab") as file:
        file.write(
            json.dumps({**line, "uuid": str(uuid4()), "timestamp": stamp}, separators=(",", ":")).encode() + b"\n"
        )


def big(worker: Worker, mb: float) -> dict[str, list[float]]:
    path = worker.projects / "big.jsonl"
    generate(path, mb, seed=3)
    found: dict[str, list[float]] = {"first seal": [timed(lambda: worker.seal("big"))]}
    names = ("seal", "session start", "session start by hook")
    found.update({name: [] for name in names})
    for n in range(12):
        append(path, 120, seed=100 + n)
        answer(path)
        found["seal"].append(timed(lambda: worker.seal("big")))
        ask = worker.hook if n % 2 else worker.send
        printed: list[bytes] = []
        took = timed(lambda a=ask, p=printed: p.append(a("SessionStart", "big", source="compact")))
        assert HEAD in printed[0], "no handoff"
        found[names[1 + n % 2]].append(took)
        boundary(path)
    return found


def live(worker: Worker, sessions: int, seconds: float, grow: bool) -> float:
    """CPU seconds of a minute with so many live sessions."""
    names = [f"live-{n}" for n in range(sessions)]
    for n, name in enumerate(names):
        path = worker.projects / f"{name}.jsonl"
        if not path.exists():
            generate(path, 0.5, seed=200 + n)
        worker.send("UserPromptSubmit", name, prompt="go on")
    pause = threading.Event()
    pause.wait(2.5)
    before, began = worker.cpu(), time.monotonic()
    turn = 0
    while time.monotonic() - began < seconds:
        if grow:
            for name in names:
                append(worker.projects / f"{name}.jsonl", 3, seed=turn)
        turn += 1
        pause.wait(max(0.0, began + turn - time.monotonic()))
    return (worker.cpu() - before) / (time.monotonic() - began) * 60


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.live", description=__doc__)
    parser.add_argument("--mb", type=float, default=50)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="endless-bench-") as root:
        worker = Worker(Path(root))
        try:
            memory = {"idle": worker.resident()}
            quiet = live(worker, given.sessions, given.seconds, grow=False)
            growing = live(worker, given.sessions, given.seconds, grow=True)
            memory["with live sessions"] = worker.resident()
            times = big(worker, given.mb)
            memory["after the large session"] = worker.resident()
        finally:
            worker.close()
    if given.json:
        cpu = {"quiet": quiet, "growing": growing}
        print(json.dumps({"ms": times, "cpu_seconds_a_minute": cpu, "resident_mb": memory}))
        return 0
    print(f"first seal of {given.mb:g} MB, read from the start: {times['first seal'][0]:.0f} ms")
    print(f"seal, already read (target 100 ms): {spread(times['seal'])}")
    print(f"SessionStart(compact), claim and handoff: {spread(times['session start'])}")
    print(f"the same by the hook command: {spread(times['session start by hook'])}")
    print(f"CPU with {given.sessions} live sessions, quiet (target 0.1 s a minute): {quiet:.2f} s a minute")
    print(f"CPU with {given.sessions} live sessions, each growing 3 kB a second: {growing:.2f} s a minute")
    print("resident: " + ", ".join(f"{name} {value:.0f} MB" for name, value in memory.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
