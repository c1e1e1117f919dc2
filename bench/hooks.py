"""What a hook costs, beside the floor: bare Python and a client written in C.

``python -m bench.hooks [--rounds N] [--cold N]``. Everything runs in one pass, the variants in turn, so that a
machine that speeds up or slows down does so for all of them; read the ratios. Each figure is a whole process:
8 KB on stdin, answer on stdout. The worker is the product's, in a home of its own under the temporary directory.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from endless_mode.home import Home
from endless_mode.hook import hook
from endless_mode.hook.slow import listens
from endless_mode.worker.client import WorkerClient, ensure_worker

C_CLIENT = r"""
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(int c, char **v) {
  static char b[1 << 20], h[256]; int n = 0, r, s = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un a = {.sun_family = AF_UNIX}; strncpy(a.sun_path, v[1], sizeof a.sun_path - 1);
  while ((r = read(0, b + n, sizeof b - n)) > 0) n += r;
  int k = snprintf(h, sizeof h, "POST /hooks/claude-code/%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                   "Content-Length: %d\r\n\r\n", v[2], n);
  if (connect(s, (void *)&a, sizeof a) || write(s, h, k) < 0 || write(s, b, n) < 0) return 1;
  for (n = 0; (r = read(s, b + n, sizeof b - n)) > 0;) n += r;
  char *body = strstr(b, "\r\n\r\n"); return body ? write(1, body + 4, b + n - body - 4) < 0 : 1;
}
"""
SCRIPT = Path(hook.__file__).resolve().with_name("run.py")
TARGETS = {
    "hook p50 / bare Python": 1.3,
    "cold start, waiting hook p50 ms": 500.0,
    "idle worker RSS MB": 60.0,
}


@dataclass
class Series:
    """Wall and CPU milliseconds of one variant."""

    name: str
    command: list[str]
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


@dataclass
class Bench:
    """A home, and a way to run processes in it."""

    root: Path
    home: Home
    environ: dict[str, str]
    payload: Path

    def run(self, series: Series) -> None:
        """Run one process of a series and note its time."""
        opened = [
            (os.POSIX_SPAWN_OPEN, 0, str(self.payload), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ]
        begun = time.perf_counter()
        pid = os.posix_spawn(series.command[0], series.command, self.environ, file_actions=opened)
        _, status, usage = os.wait4(pid, 0)
        series.wall.append((time.perf_counter() - begun) * 1000)
        series.cpu.append((usage.ru_utime + usage.ru_stime) * 1000)
        if status:
            raise SystemExit(f"{series.name} failed with status {status}")

    def stop_worker(self) -> None:
        """Ask the worker to end and wait until it has."""
        with self.home.lock.open() as lock:
            WorkerClient(self.home).stop()
            fcntl.flock(lock, fcntl.LOCK_EX)


def compile_c(root: Path) -> Path | None:
    """Compile the C client if there is a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    (root / "client.c").write_text(C_CLIENT)
    binary = root / "client"
    subprocess.run([compiler, "-O2", "-o", str(binary), str(root / "client.c")], check=True)
    return binary


def rss_mb(pid: int) -> float:
    """Resident memory of a process in MB."""
    return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(pid)])) / 1024


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def warm(bench: Bench, rounds: int) -> list[Series]:
    """Measure the variants in turn while a worker runs."""
    python = [sys.executable, "-I", "-S"]
    script = str(SCRIPT)
    series = [
        Series("bare python -I -S -c pass", [*python, "-c", "pass"]),
        Series("hook, worker up", [*python, script, "claude-code", "Stop"]),
        Series("hook, not compiled", [*python, script.replace("run.py", "hook.py"), "claude-code", "Stop"]),
    ]
    binary = compile_c(bench.root)
    if binary:
        series.append(Series("C client", [str(binary), str(bench.home.socket), "Stop"]))
    for number in range(rounds + 3):
        for one in series[number % len(series) :] + series[: number % len(series)]:
            bench.run(one)
    for one in series:
        del one.wall[:3], one.cpu[:3]
    return series


def cold(bench: Bench, rounds: int) -> list[Series]:
    """Measure hooks that find no worker: one that waits for its answer, one that leaves."""
    python = [sys.executable, "-I", "-S", str(SCRIPT), "claude-code"]
    waiting = Series("no worker: SessionStart compact, answered", [*python, "SessionStart"])
    leaving = Series("no worker: Stop, kept", [*python, "Stop"])
    for _ in range(rounds):
        for one in (waiting, leaving):
            bench.stop_worker()
            bench.run(one)
            until = time.monotonic() + 30
            while not listens(os.fsencode(bench.home.socket)) and time.monotonic() < until:
                time.sleep(0.01)
            WorkerClient(bench.home).health()
    return [waiting, leaving]


def report(series: list[Series], base: Series) -> None:
    floor = statistics.median(base.wall)
    print(f"{'':44} {'wall p50':>9} {'p95':>7} {'CPU p50':>9} {'p95':>7} {'x bare':>7}")
    for one in series:
        wall, cpu = statistics.median(one.wall), statistics.median(one.cpu)
        print(
            f"{one.name:44} {wall:9.1f} {percentile(one.wall, 0.95):7.1f} {cpu:9.1f} "
            f"{percentile(one.cpu, 0.95):7.1f} {wall / floor:7.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--cold", type=int, default=9)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="eb") as name:
        root = Path(name)
        environ = {"HOME": name, "PATH": os.environ["PATH"], "CLAUDE_MEM_DATA_DIR": name + "/d"}
        os.environ.update(environ)
        payload = root / "payload.json"
        transcript = name + "/.claude/projects/p/s-1.jsonl"
        body = {"session_id": "s-1", "transcript_path": transcript, "source": "compact"}
        body["last_assistant_message"] = "word " * 1600
        payload.write_text(json.dumps(body, separators=(",", ":")))
        home = Home(root / "d")
        bench = Bench(root, home, environ, payload)
        health = ensure_worker(home, 30)
        measured = warm(bench, options.rounds)
        idle = rss_mb(health.pid)
        chilled = cold(bench, options.cold)
        bench.stop_worker()
    report(measured + chilled, measured[0])
    print(f"\nidle worker RSS {idle:.1f} MB")
    reached = {
        "hook p50 / bare Python": statistics.median(measured[1].wall) / statistics.median(measured[0].wall),
        "cold start, waiting hook p50 ms": statistics.median(chilled[0].wall),
        "idle worker RSS MB": idle,
    }
    for target, limit in TARGETS.items():
        verdict = "met" if reached[target] <= limit else "MISSED"
        print(f"{target}: {reached[target]:.2f} (target <= {limit:g}) {verdict}")


if __name__ == "__main__":
    main()
