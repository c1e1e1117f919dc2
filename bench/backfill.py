"""What the backfill costs: hooks without it, hooks while it runs, and how fast past sessions come in.

``python -m bench.backfill [--mb 200] [--rounds 60]``. It all happens in a home of its own with the product's worker.
Hooks are whole processes (UserPromptSubmit and Stop in turn) of one live session whose transcript grows between them.
They come every 1.2 to 2 seconds, so that the backfill, which waits a second after each, is at work when they come. The
baseline comes first, with the backfill off. Then a second home imports the same sessions by ``endless import``.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import synthetic
from endless_mode.home import Home
from endless_mode.hook import hook
from endless_mode.worker.client import WorkerClient, ensure_worker

TARGET_RATIO, TARGET_RSS_MB = 2.0, 200.0
LIVE = "00000000-0000-4000-8000-0000000000ff"


class Bench:
    """A user's home with a live session and many past ones."""

    def __init__(self, root: Path, config: Path) -> None:
        self.root = root
        self.home = Home(root / "d")
        self.environ = {
            "HOME": str(root),
            "PATH": os.environ["PATH"],
            "CLAUDE_MEM_DATA_DIR": str(root / "d"),
            "CLAUDE_CONFIG_DIR": str(config),
        }
        self.transcript = config / "projects" / "-live" / f"{LIVE}.jsonl"
        self.config = config
        self.events = 0

    def start(self) -> int:
        """Start the worker; return its process id."""
        os.environ.update(self.environ)
        return ensure_worker(self.home, 30).pid

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

    def sessions(self) -> int:
        """Sessions read in so far."""
        with contextlib.closing(sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM transcripts").fetchone()[0])


def series(bench: Bench, rounds: int) -> list[float]:
    """Hooks at irregular times."""
    rng, taken = random.Random(1), []
    for _ in range(rounds):
        time.sleep(rng.uniform(1.2, 2.0))
        taken.append(bench.hook())
    return taken


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def peak_mb(pid: int) -> float:
    """Peak resident memory of a process (Linux; elsewhere 0)."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return 0.0


def generate(config: Path, mb: float) -> int:
    """Past sessions of 1 to 40 MB; returns their bytes."""
    sizes, total, n = (1.0, 3.0, 8.0, 20.0, 40.0), 0, 0
    while total < mb * 1_000_000:
        path = config / "projects" / f"-p{n % 3}" / f"00000000-0000-4000-8000-{n:012x}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        left = mb - total / 1_000_000
        total += synthetic.generate(path, min(sizes[n % len(sizes)], max(left, 0.2)), seed=n + 1)
        n += 1
    return total


def show(name: str, values: list[float]) -> None:
    print(
        f"{name:32} p50 {statistics.median(values):7.1f} ms   p95 {percentile(values, 0.95):7.1f} ms   n {len(values)}"
    )


def backfill(root: Path, config: Path, rounds: int) -> None:
    """Hooks before, during and after."""
    bench = Bench(root, config)
    bench.transcript.parent.mkdir(parents=True, exist_ok=True)
    synthetic.generate(bench.transcript, 5, seed=99)
    os.environ["CLAUDE_MEM_ENDLESS_BACKFILL"] = "off"
    bench.start()
    before = series(bench, rounds)
    stop(bench)
    os.environ["CLAUDE_MEM_ENDLESS_BACKFILL"] = "on"
    pid = bench.start()
    bench.hook()
    first = bench.sessions()
    until = time.monotonic() + 120
    while bench.sessions() == first and time.monotonic() < until:
        time.sleep(0.2)
    began = time.monotonic()
    read = read_bytes(bench)
    during = series(bench, rounds)
    speed = (read_bytes(bench) - read) / 1e6 / (time.monotonic() - began)
    alone = time.monotonic()
    read = read_bytes(bench)
    time.sleep(15)
    free = (read_bytes(bench) - read) / 1e6 / (time.monotonic() - alone)
    show("hooks, no backfill", before)
    show("hooks while it runs", during)
    print(f"backfill: {speed:.2f} MB/s between hooks, {free:.2f} MB/s with nobody there")
    print(f"worker peak {peak_mb(pid):.0f} MB")
    ratio = percentile(during, 0.95) / percentile(before, 0.95)
    print(f"p95 ratio: {ratio:.2f} (target <= {TARGET_RATIO:g}) {'met' if ratio <= TARGET_RATIO else 'MISSED'}")
    stop(bench)


def read_bytes(bench: Bench) -> int:
    """Bytes of transcripts the store has."""
    with contextlib.closing(sqlite3.connect(f"file:{bench.home.database}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT coalesce(sum(offset), 0) FROM transcripts").fetchone()[0])


def asked(root: Path, config: Path, total: int) -> None:
    """``endless import`` with nothing else going on."""
    bench = Bench(root, config)
    pid = bench.start()
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "endless_mode", "import"], env={**os.environ, **bench.environ}, check=True)
    seconds = time.perf_counter() - began
    rss = peak_mb(pid)
    print(f"endless import: {total / 1e6:.0f} MB in {seconds:.1f} s = {total / 1e6 / seconds:.1f} MB/s")
    print(f"worker peak {rss:.0f} MB (target <= {TARGET_RSS_MB:g}) {'met' if rss <= TARGET_RSS_MB else 'MISSED'}")
    print(f"database {bench.home.database.stat().st_size / 1e6:.0f} MB")
    stop(bench)


def stop(bench: Bench) -> None:
    """Ask the worker to end, and see its lock free."""

    with bench.home.lock.open() as lock:
        WorkerClient(bench.home).stop()
        fcntl.flock(lock, fcntl.LOCK_EX)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mb", type=float, default=200)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="eb") as name:
        config = Path(name) / "client"
        total = generate(config, options.mb)
        for part in ("one", "two"):
            (Path(name) / part).mkdir()
        backfill(Path(name) / "one", config, options.rounds)
        asked(Path(name) / "two", config, total)


if __name__ == "__main__":
    main()
