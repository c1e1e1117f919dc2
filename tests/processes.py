"""What all tests share that run real hooks and workers: the processes of one home, and how they end."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from endless_mode.home import Home

LONG = 30.0


def eventually(check: Callable[[], Any], seconds: float = LONG) -> Any:
    """Return the first true value of ``check``; fail at the deadline."""
    until = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < until:
        if value := check():
            return value
        pause.wait(0.01)
    raise AssertionError(f"not within {seconds} s: {check}")


def held(lock: Path) -> bool:
    """Whether a process holds a lock file."""
    try:
        fd = os.open(lock, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


class Processes:
    """The processes of one home. ``environ`` is what they get; ``children`` are those started here."""

    environ: dict[str, str]
    children: list[subprocess.Popen[bytes]]

    @property
    def home(self) -> Home:
        raise NotImplementedError

    def command(self, event: str) -> list[str]:
        """The command line of a hook."""
        raise NotImplementedError

    def hook_process(self, event: str, payload: bytes) -> subprocess.Popen[bytes]:
        """Start a hook and give it its stdin without waiting for the end."""
        pipe = subprocess.PIPE
        child = subprocess.Popen(self.command(event), stdin=pipe, stdout=pipe, stderr=pipe, env=self.environ)
        self.children.append(child)
        assert child.stdin
        child.stdin.write(payload)
        child.stdin.close()
        child.stdin = None
        return child

    def worker_pid(self) -> int:
        """The pid of the worker that holds the lock."""
        return int(self.home.lock.read_text())

    def locked(self) -> bool:
        """Whether a worker lives here."""
        return held(self.home.lock)

    def log(self, name: str = "") -> list[dict[str, Any]]:
        """The worker's log, all of it or the entries of one name."""
        text = self.home.log.read_text() if self.home.log.exists() else ""
        return [entry for entry in map(json.loads, text.splitlines()) if not name or entry["name"] == name]

    def kill(self) -> None:
        """kill -9 whatever worker there is, and see it gone."""
        if not self.locked():
            return
        with contextlib.suppress(ProcessLookupError, ValueError):
            os.kill(self.worker_pid(), signal.SIGKILL)
        for child in self.children:
            if child.args and "endless_mode.worker" in child.args and child.poll() is None:
                child.wait(LONG)
        eventually(lambda: not self.locked())

    def close(self) -> None:
        """End what runs here: the hooks and workers this place started."""
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait(LONG)
            for pipe in (child.stdout, child.stderr):
                if pipe is not None:
                    pipe.close()
        eventually(lambda: not held(self.home.start_lock))
        self.kill()
