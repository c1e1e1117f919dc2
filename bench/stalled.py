"""What 200 stalled connections cost a hook.

    python -m bench.stalled [--connections 200] [--rounds 60]

Whole hook processes (Stop) with the product's worker up, in turn without and with connections that send nothing, half a
head, or half a body. Connections that the worker has closed are opened anew before each round of the second kind.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.hooks import SCRIPT, Bench, Series, percentile
from endless_mode.home import Home
from endless_mode.worker.client import ensure_worker

HALF = b"POST /hooks/claude-code/Stop HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n{"
PIECES = (b"", b"POST /ho", HALF)
BATCH = 10


def stall(home: Home, count: int) -> list[socket.socket]:
    """Connections that will send no more."""
    found = []
    for number in range(count):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(os.fspath(home.socket))
        sock.sendall(PIECES[number % len(PIECES)])
        found.append(sock)
    return found


def measure(bench: Bench, command: list[str], connections: int, rounds: int) -> list[Series]:
    """Batches of hooks, without and with stalled connections in turn."""
    quiet, busy = Series("nobody else", command), Series(f"{connections} stalled connections", command)
    for _ in range(rounds // BATCH):
        for _ in range(BATCH):
            bench.run(quiet)
        held = stall(bench.home, connections)
        for _ in range(BATCH):
            bench.run(busy)
        for sock in held:
            sock.close()
        time.sleep(0.2)
    return [quiet, busy]


def main() -> None:
    """Print p50 and p95 of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=60)
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="eb") as name:
        environ = {"HOME": name, "PATH": os.environ["PATH"], "CLAUDE_MEM_DATA_DIR": name + "/d"}
        os.environ.update(environ)
        payload = Path(name) / "payload.json"
        payload.write_text('{"session_id":"s-1","hook_event_name":"Stop"}')
        home = Home(Path(name) / "d")
        bench = Bench(Path(name), home, environ, payload)
        ensure_worker(home, 30)
        command = [sys.executable, "-I", "-S", str(SCRIPT), "claude-code", "Stop"]
        series = measure(bench, command, given.connections, given.rounds)
        bench.stop_worker()
    print(f"{'hook, wall ms':32}{'p50':>8}{'p95':>8}")
    for one in series:
        print(f"{one.name:32}{statistics.median(one.wall):8.1f}{percentile(one.wall, 0.95):8.1f}")


if __name__ == "__main__":
    main()
