"""A thousand past sessions read in: how fast, in how much memory, what hooks notice, and what a ``kill -9`` changes.

``python -m bench.backfill [--sessions 1000] [--mb 2000] [--real DIR] [--corpus DIR] [--rounds 60] [--kills 12]``. First it makes the
sessions (:mod:`bench.corpus`; ``--corpus`` names a directory to keep them in and take them from). Then, each in a home of its own
with the product's worker:

1. ``endless import`` with nothing else going on.
2. Hooks as whole processes (UserPromptSubmit and Stop in turn) of a live session whose transcript grows between them: with no
   import, with the backfill at work, and with ``endless import`` at work. They come every 1.2 to 2 seconds, so that the
   backfill, which waits a second after each, is at work when they come.
3. ``endless import`` whose worker is killed with signal 9 at random moments, begun again each time by the command itself. In the
   end its store must hold what the first one does, table by table.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench import corpus, synthetic
from bench.contents import contents
from endless_mode.errors import WorkerError
from endless_mode.home import Home
from endless_mode.hook import hook
from endless_mode.worker.client import WorkerClient, ensure_worker
from endless_mode.worker.past import QUIET

TARGET_RATIO, TARGET_RSS_MB = 2.0, 200.0
LIVE = "00000000-0000-4000-8000-0000000000ff"


class Bench:
    """A user's home with a live session and many past ones."""

    def __init__(self, root: Path, config: Path) -> None:
        root.mkdir()
        self.root = root
        self.home = Home(root / "d")
        self.environ = {
            "HOME": str(root),
            "PATH": os.environ["PATH"],
            "CLAUDE_MEM_DATA_DIR": str(root / "d"),
            "CLAUDE_CONFIG_DIR": str(config),
            "CLAUDE_MEM_ENDLESS_BACKFILL": "off",
        }
        self.transcript = config / "projects" / "-live" / f"{LIVE}.jsonl"
        self.config = config
        self.events = 0

    def start(self, **environ: str) -> int:
        """Start the worker; return its process id."""
        os.environ.update({**self.environ, **environ})
        return ensure_worker(self.home, 30).pid

    def importing(self) -> subprocess.Popen[bytes]:
        """``endless import``, begun."""
        words = [sys.executable, "-m", "endless_mode", "import", "--json"]
        return subprocess.Popen(words, env={**os.environ, **self.environ}, stdout=subprocess.PIPE)

    def hook(self) -> float:
        """One hook of the live session after it has grown; milliseconds of the whole process."""
        self.events += 1
        synthetic.append(self.transcript, 4, self.events)
        event = ("UserPromptSubmit", "Stop")[self.events % 2]
        body = {"session_id": LIVE, "transcript_path": str(self.transcript), "cwd": "/live", "prompt": "go on"}
        words = [sys.executable, "-I", "-S", hook.__file__, "claude-code", event]
        began = time.perf_counter()
        subprocess.run(words, input=json.dumps(body).encode(), env=self.environ, check=True, stdout=subprocess.DEVNULL)
        return (time.perf_counter() - began) * 1000

    def read_bytes(self) -> int:
        """Bytes of transcripts the store has."""
        with contextlib.closing(sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT coalesce(sum(offset), 0) FROM transcripts").fetchone()[0])

    def index(self) -> None:
        """Have the full-text index finished."""
        while WorkerClient(self.home, 60).index(20.0).missing:
            pass

    def stop(self) -> None:
        """Ask the worker to end, and see its lock free."""
        with self.home.lock.open() as lock:
            WorkerClient(self.home).stop()
            fcntl.flock(lock, fcntl.LOCK_EX)


def alone(bench: Bench, total: int) -> None:
    """``endless import`` with nothing else going on."""
    pid = bench.start()
    began, cpu = time.perf_counter(), processor(pid)
    done = result(bench.importing())
    seconds = time.perf_counter() - began
    spent, rss = processor(pid) - cpu, peak_mb(pid)
    print(
        f"endless import: {done['files']} sessions, {total / 1e6:.0f} MB in {seconds:.0f} s = {total / 1e6 / seconds:.1f} MB/s"
    )
    print(f"  {spent:.0f} s of the processor, {len(done['skipped'])} not read, {done['badLines']} bad lines")
    print(f"  database {size_mb(bench):.0f} MB = {size_mb(bench) * 1e8 / total:.0f} % of the transcripts")
    began = time.perf_counter()
    bench.index()
    print(f"  index: {time.perf_counter() - began:.0f} s, database with it {size_mb(bench):.0f} MB")
    told("  worker peak MB", max(rss, peak_mb(pid)), TARGET_RSS_MB)
    bench.stop()


def beside_hooks(bench: Bench, rounds: int) -> None:
    """Hooks with nothing going on, beside the backfill, and beside an import that somebody waits for."""
    bench.transcript.parent.mkdir(parents=True, exist_ok=True)
    synthetic.generate(bench.transcript, 5, seed=99)
    bench.start()
    bench.hook()
    before = series(bench, rounds)
    bench.stop()
    pid = bench.start(CLAUDE_MEM_ENDLESS_BACKFILL="on")
    bench.hook()
    first, until = bench.read_bytes(), time.monotonic() + 120
    while bench.read_bytes() < first + (64 << 10) and time.monotonic() < until:
        time.sleep(0.2)
    began, read = time.monotonic(), bench.read_bytes()
    during = series(bench, rounds)
    speed = (bench.read_bytes() - read) / 1e6 / (time.monotonic() - began)
    time.sleep(QUIET + 5)  # by then nobody is there
    free_began, read = time.monotonic(), bench.read_bytes()
    time.sleep(15)
    free = (bench.read_bytes() - read) / 1e6 / (time.monotonic() - free_began)
    asked = bench.importing()
    beside = series(bench, rounds, asked)
    went_on = asked.poll() is None
    for name, values in (("nothing going on", before), ("beside the backfill", during), ("beside the import", beside)):
        show(f"hooks, {name}", values)
    print(f"backfill: {speed:.2f} MB/s between hooks, {free:.2f} MB/s with nobody there")
    print(f"the import {'went on' if went_on else 'was over'} when the {len(beside)} hooks were done")
    for name, values in (("backfill", during), ("import", beside)):
        if values:  # with few sessions the import is over before the first hook
            ratio = percentile(values, 0.95) / percentile(before, 0.95)
            told(f"hooks p95 beside the {name} / idle", ratio, TARGET_RATIO)
    told("worker peak MB", peak_mb(pid), TARGET_RSS_MB)
    asked.terminate()  # first: it would start another worker
    asked.wait()
    bench.stop()
    bench.transcript.unlink()


def killed(bench: Bench, kills: int, seconds: float) -> None:
    """``endless import`` whose worker is killed at random moments within about the time that it takes."""
    rng = random.Random(7)
    bench.start()
    began = time.perf_counter()
    child = bench.importing()
    done: list[int] = []
    over = threading.Event()
    threading.Thread(target=lambda: (child.wait(), over.set()), daemon=True).start()
    while len(done) < kills and not over.wait(rng.uniform(0.05, 1.8) * seconds / max(kills, 1)):
        with contextlib.suppress(WorkerError, ProcessLookupError):
            pid = WorkerClient(bench.home, 5).health().pid
            os.kill(pid, signal.SIGKILL)
            done.append(pid)
    result(child)
    bench.start()  # the last one may have been killed when all was done
    print(f"killed {len(done)} times: {time.perf_counter() - began:.0f} s")
    bench.index()
    bench.stop()


def same(one: Home, other: Home) -> bool:
    """Whether two stores hold the same; says what does not."""
    first, second = contents(one.database), contents(other.database)
    for name in sorted(first | second):
        if first.get(name) != second.get(name):
            print(f"  {name}: {first.get(name)} / {second.get(name)}")
    rows = sum(count for count, _ in first.values())
    print(f"stores equal: {'yes' if first == second else 'NO'} ({len(first)} tables, {rows:,} rows)")
    return first == second


# Measuring


def series(bench: Bench, rounds: int, until: subprocess.Popen[bytes] | None = None) -> list[float]:
    """Hooks at irregular times, at most until a process ends."""
    rng = random.Random(1)
    taken: list[float] = []
    for _ in range(rounds):
        time.sleep(rng.uniform(1.2, 2.0))
        if until is not None and until.poll() is not None:
            break
        taken.append(bench.hook())
    return taken


def result(child: subprocess.Popen[bytes]) -> dict[str, list[object]]:
    """What ``endless import`` said."""
    out, _ = child.communicate()
    assert child.returncode == 0, "the import failed"
    found: dict[str, list[object]] = json.loads(out)
    return found


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def peak_mb(pid: int) -> float:
    """Peak resident memory of a process (Linux; elsewhere 0)."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return 0.0


def processor(pid: int) -> float:
    """Seconds of the processor that a process has used (Linux; elsewhere 0)."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def size_mb(bench: Bench) -> float:
    return bench.home.database.stat().st_size / 1e6


def show(name: str, values: list[float]) -> None:
    if values:
        p50, p95 = statistics.median(values), percentile(values, 0.95)
        print(f"{name:32} p50 {p50:7.1f} ms   p95 {p95:7.1f} ms   n {len(values)}")


def told(name: str, value: float, target: float) -> None:
    print(f"{name}: {value:.2f} (target <= {target:g}) {'met' if value <= target else 'MISSED'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.backfill", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--mb", type=float, default=2000)
    parser.add_argument("--real", type=Path, help="transcripts of which copies are made")
    parser.add_argument(
        "--corpus", type=Path, help="keep the sessions here, and take them from here when they are there"
    )
    parser.add_argument("--rounds", type=int, default=60, help="hooks in each series")
    parser.add_argument("--kills", type=int, default=12)
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="eb") as name:
        root = Path(name)
        config = given.corpus or root / "client"
        if not (config / "projects").is_dir():
            corpus.make(config, given.sessions, given.mb, given.real)
        total = sum(path.stat().st_size for path in config.rglob("*.jsonl"))
        first, hooks, cut = (Bench(root / part, config) for part in ("one", "two", "three"))
        began = time.perf_counter()
        alone(first, total)
        took = time.perf_counter() - began
        killed(cut, given.kills, took)
        equal = same(first.home, cut.home)
        beside_hooks(hooks, given.rounds)
        sys.exit(not equal)


if __name__ == "__main__":
    main()
