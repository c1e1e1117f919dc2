"""One worker per home: the lock held for life, the socket, and leaving the terminal.

Everything here runs before the web stack is imported, so that waiting hooks queue at the socket meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import time
from pathlib import Path

from endless_mode.home import Home
from endless_mode.hook.slow import listens

#: How many connections may wait to be accepted.
BACKLOG = 512
#: Seconds to wait for a worker that is ending and still holds the lock.
LOCK_PATIENCE = 40.0

#: Signals that ask the worker to end.
ENDING = (signal.SIGTERM, signal.SIGINT)

Identity = tuple[int, int]


def identity(path: Path | int) -> Identity | None:
    """Return (device, inode) of a path or descriptor; None if there is nothing."""
    try:
        info = os.stat(path)  # noqa: PTH116  a descriptor is no path
    except OSError:
        return None
    return info.st_dev, info.st_ino


def daemonise() -> None:
    """Leave the terminal, the process group and the directory we were started in."""
    if os.getsid(0) != os.getpid():
        if os.getpgid(0) == os.getpid() and os.fork():
            os._exit(0)
        os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)


class Hold:
    """The locked lock file and the listening socket of this process. The kernel frees both when it ends."""

    def __init__(self, home: Home, lock: int) -> None:
        self.home = home
        self.lock = lock
        # Once we listen, a request may be on its way: these signals wait until they can be obeyed in order.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        self.listener = self._listen()
        self._bound = identity(home.socket)

    def _listen(self) -> socket.socket:
        """Bind under a name of our own and rename: no moment when the path exists and nobody listens."""
        for left_behind in self.home.socket.parent.glob("w.*"):
            left_behind.unlink(missing_ok=True)
        draft = self.home.socket.with_name(f"w.{os.getpid()}")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(os.fsencode(draft))
        draft.chmod(0o600)
        listener.listen(BACKLOG)
        listener.setblocking(False)
        draft.rename(self.home.socket)
        return listener

    def lost(self) -> str:
        """Return why this worker is no longer the one of its home; empty while it is."""
        if not self.home.root.is_dir():
            return "home_gone"
        if identity(self.home.lock) != identity(self.lock):
            return "lock_replaced"
        if identity(self.home.socket) != self._bound:
            return "socket_replaced"
        return ""

    def withdraw(self) -> None:
        """Take our socket's name away, so that no new connection comes; a successor's stays."""
        if self._bound and identity(self.home.socket) == self._bound:
            self.home.socket.unlink(missing_ok=True)

    def waiting(self) -> bool:
        """Whether a connection waits to be accepted."""
        return bool(select.select([self.listener], [], [], 0)[0])


def acquire(home: Home, patience: float = LOCK_PATIENCE) -> Hold | None:
    """Become the worker of a home; None when there is one already.

    A lock that is held while nobody listens belongs to a worker that is ending: it is waited for.
    """
    until = time.monotonic() + patience
    while True:
        lock = os.open(home.lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if identity(home.lock) == identity(lock):
                os.ftruncate(lock, 0)
                os.pwrite(lock, b"%d\n" % os.getpid(), 0)
                return Hold(home, lock)
        except BlockingIOError:
            pass
        os.close(lock)
        if listens(os.fsencode(home.socket)) or time.monotonic() > until:
            return None
        time.sleep(0.02)
