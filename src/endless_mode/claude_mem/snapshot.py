"""One consistent read of an SQLite file that belongs to another program, leaving no trace beside it.

What is beside the file decides how it is opened (measured with SQLite 3.40):

* nothing: nobody has it open in WAL mode. A plain read-only connection would *create* ``-wal`` and ``-shm`` here, so
  the file is opened ``immutable``. SQLite then takes no locks and would read torn pages if somebody began to write, so
  the read counts only when file and directory are the same afterwards; else it is made again.
* ``-wal`` and ``-shm``: somebody works on it, or crashed. ``readonly_shm`` reads through the shared memory without
  writing to it. An ``immutable`` read would not see what is still in the WAL. A shared lock of our own, taken first,
  keeps the other side from deleting the WAL in between.
* ``-wal`` without ``-shm``, or a rollback journal that has to be played back: that cannot be read without writing, so a
  private copy of the files is read, made anew when they changed meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from endless_mode.errors import EndlessError

T = TypeVar("T")

BUSY_SECONDS = 2.0
_ATTEMPTS = 5
#: Where SQLite's readers hold their locks on the main file.
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510

# Closing any descriptor of a file drops all POSIX locks this process has on it, so only one read runs at a time.
_one = threading.Lock()


class ClaudeMemError(EndlessError):
    """claude-mem's database cannot be used; ``code`` says why."""


class _Changed(Exception):
    """Somebody wrote while we read."""


def read(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """What ``work`` returns for a read-only connection to the database at ``path``.

    ``work`` may run several times, and must not keep the connection.

    Raises:
        ClaudeMemError: ``no_claude_mem``, ``claude_mem_busy``, ``claude_mem_unreadable``, ``claude_mem_damaged``.
    """
    problem: Exception | None = None
    # SQLite looks for side files beside the real file, so that is where they are looked for.
    path = Path(os.path.realpath(path))
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(0.02 * attempt)
        try:
            with _one, _opened(path) as db:
                return work(db)
        except (_Changed, sqlite3.Error, UnicodeDecodeError, OSError) as error:
            # A torn, damaged or vanishing file shows as any of these; what is still so at the end is told.
            problem = error
            if isinstance(error, FileNotFoundError) or _is_busy(error):
                break
    raise _told(path, problem)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    before = _signature(path)
    journal, wal, shm = (_size(path, suffix) for suffix in ("-journal", "-wal", "-shm"))
    if wal > 0 and shm < 0:
        with _copied(path) as db:
            yield db
    elif wal >= 0 and shm >= 0:
        with _locked(path), _connected(path, "&readonly_shm=1") as db:
            yield db
    elif journal > 0:
        with _connected(path, "") if _is_consistent(path) else _copied(path) as db:
            yield db
    else:
        with _connected(path, "&immutable=1") as db:
            yield db
        if _signature(path) != before:
            raise _Changed


@contextmanager
def _connected(path: Path, how: str) -> Iterator[sqlite3.Connection]:
    quoted = str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    db = sqlite3.connect(f"file:{quoted}?mode=ro{how}", uri=True, isolation_level=None, timeout=BUSY_SECONDS)
    try:
        _prepare(db)
        # One transaction: everything that is read belongs to the same moment.
        db.execute("BEGIN")
        yield db
    finally:
        db.close()


def _prepare(db: sqlite3.Connection) -> None:
    db.text_factory = lambda data: data.decode("utf-8", "replace")
    for pragma in ("query_only=1", "trusted_schema=0", "cell_size_check=1", "mmap_size=0"):
        db.execute(f"PRAGMA {pragma}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """A reader's lock on the main file: while it is held, nobody closes the database and deletes its WAL."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)
        except OSError as error:
            raise _Changed from error
        if _size(path, "-wal") < 0 or _size(path, "-shm") < 0:
            raise _Changed
        yield
    finally:
        os.close(descriptor)


def _is_consistent(path: Path) -> bool:
    """Whether the file can be read as it is: its journal is a writer's at work or an old one, not one to play back."""
    try:
        with _connected(path, "") as db:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if _is_busy(error):
            raise
        return False
    return True


@contextmanager
def _copied(path: Path) -> Iterator[sqlite3.Connection]:
    directory = Path(tempfile.mkdtemp(prefix="endless-"))
    try:
        before = _signature(path)
        copy = directory / "copy.db"
        for suffix in ("", "-wal", "-journal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        if _signature(path) != before:
            raise _Changed
        db = sqlite3.connect(copy, isolation_level=None, timeout=BUSY_SECONDS)
        try:
            _prepare(db)
            yield db
        finally:
            db.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _signature(path: Path) -> list[tuple[int, ...]]:
    """Changes when anybody writes to the database or opens it for writing."""
    main = path.stat()
    if not stat.S_ISREG(main.st_mode):
        raise _told(path, IsADirectoryError(path))
    found: list[tuple[int, ...]] = [(main.st_dev, main.st_ino, main.st_size, main.st_mtime_ns)]
    for suffix in ("-wal", "-journal"):
        with suppress(FileNotFoundError):
            beside = Path(f"{path}{suffix}").stat()
            found.append((beside.st_ino, beside.st_size, beside.st_mtime_ns))
    return found


def _size(path: Path, suffix: str) -> int:
    """Bytes of a side file, -1 when there is none."""
    try:
        return Path(f"{path}{suffix}").stat().st_size
    except FileNotFoundError:
        return -1


def _is_busy(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _told(path: Path, problem: Exception | None) -> ClaudeMemError:
    code, what, hint = _DAMAGED
    if isinstance(problem, FileNotFoundError):
        code, what, hint = _MISSING
    elif isinstance(problem, _Changed) or (problem is not None and _is_busy(problem)):
        code, what, hint = _BUSY
    elif isinstance(problem, OSError):
        code, what, hint = _UNREADABLE
    error = ClaudeMemError(code, f"claude-mem's database {path} {what}.", hint)
    error.__cause__ = problem
    return error


_MISSING = ("no_claude_mem", "does not exist", "Set CLAUDE_MEM_DATA_DIR to the directory it is in.")
_BUSY = ("claude_mem_busy", "is being written to", "Try again in a moment.")
_UNREADABLE = ("claude_mem_unreadable", "cannot be read", "It should be a file that you may read.")
_DAMAGED = (
    "claude_mem_damaged",
    "is damaged or no database",
    "Restore it, or let claude-mem make a new one; transcripts and stored conversations do not need it.",
)
