"""Bottle files: atomic writes, archive, per-session lock, never a worse bottle over a better one."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from endless_mode.bottle.entries import MODE_FULL, MODE_STORED, Document, Header
from endless_mode.bottle.parse import BadBottle, parse, parse_header
from endless_mode.names import check_session_id

_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
_HEADER_BYTES = 65_536


class LockTimeout(TimeoutError):
    """Somebody else works on this session's bottle for longer than the caller would wait."""

    code = "session_locked"
    hint = "Try again; another process is rendering this session."

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} is locked")
        self.message = str(self)


def bottle_path(directory: Path, session_id: str) -> Path:
    """Where a session's bottle lives. Raises :class:`endless_mode.names.BadName`."""
    return directory / f"{check_session_id(session_id)}.md"


def ensure_directory(directory: Path) -> None:
    """Makes ``directory`` (0700) and what is missing above it (0700 too)."""
    if directory.is_dir():
        return
    if not directory.parent.is_dir():
        ensure_directory(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)


def write_atomic(path: Path, data: bytes, *, fsync: bool = False) -> None:
    """Puts ``data`` at ``path`` as :func:`replacing` does."""
    with replacing(path, fsync=fsync) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, *, fsync: bool = False) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path`` (0600) when it is whole: readers see the old one or the new one.

    On any failure the old file stays and no temporary file does. ``fsync`` also survives a power cut.
    """
    ensure_directory(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 (a descriptor, not a path)
            yield file
            file.flush()
            if fsync:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if fsync:
        _fsync_directory(path.parent)


def _fsync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def archive(path: Path, archive_dir: Path, when: int) -> Path:
    """Moves a bottle to ``<archive_dir>/<timestamp>-<name>`` and returns the new path.

    ``when`` is in milliseconds since the epoch. Nothing is ever overwritten: a second one of the same
    millisecond gets ``.2`` behind its timestamp. The timestamp has no dash, so the name splits at the first.
    """
    ensure_directory(archive_dir)
    stamp = datetime.fromtimestamp(when // 1000, UTC).strftime("%Y%m%dT%H%M%S") + f".{when % 1000:03d}Z"
    for attempt in range(1, 10_000):
        suffix = "" if attempt == 1 else f".{attempt}"
        target = archive_dir / f"{stamp}{suffix}-{path.name}"
        try:
            # The empty file reserves the name; the move then replaces it in one step.
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            continue
        try:
            return path.replace(target)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    raise FileExistsError(f"too many archived bottles of {stamp}")


def clean_leftovers(directory: Path, older_than: float = 3600.0) -> list[Path]:
    """Removes temporary files a killed process left over ``older_than`` seconds ago, and returns them."""
    gone = []
    for path in directory.glob(".*.tmp") if directory.is_dir() else ():
        with suppress(OSError):
            if _LEFTOVER.fullmatch(path.name) and time.time() - path.lstat().st_mtime > older_than:
                path.unlink()
                gone.append(path)
    return gone


# Which bottle is better


def rank(mode: str) -> int:
    """2 for a bottle from the transcript, 1 from the stored conversation, 0 for any other."""
    return {MODE_FULL: 2, MODE_STORED: 1}.get(mode, 0)


def better_or_equal(mode: str, old: Header | None) -> bool:
    """True when a bottle of ``mode`` may replace one with the header ``old`` (``None``: there is none)."""
    return old is None or rank(mode) >= rank(old.mode)


def read_header(path: Path) -> Header | None:
    """The header of the bottle at ``path``; ``None`` when there is no file or it is no bottle."""
    try:
        with path.open("rb") as file:
            return parse_header(file.read(_HEADER_BYTES).decode("utf-8", "replace"))
    except (FileNotFoundError, BadBottle):
        return None


def better_there(path: Path, mode: str) -> Document | None:
    """The bottle at ``path`` when it is whole and better than one of ``mode``."""
    if better_or_equal(mode, read_header(path)):
        return None
    try:
        return parse(path.read_text("utf-8"))
    except (BadBottle, UnicodeDecodeError):
        return None


# Locks


class _Holder:
    """A lock in this process, and how many hold it or wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


_guard = threading.Lock()
_holders: dict[str, _Holder] = {}


@contextmanager
def session_lock(directory: Path, session_id: str, timeout: float = 30.0) -> Iterator[None]:
    """Held by one thread of one process at a time for each session; lock files live in ``directory``.

    Blocks, so call it from a worker thread. Raises :class:`LockTimeout` after ``timeout`` seconds. A process
    that dies gives its lock back.
    """
    deadline = time.monotonic() + timeout
    path = directory / f"{check_session_id(session_id)}.lock"
    with _in_process(str(path), session_id, timeout):
        ensure_directory(directory)
        descriptor = _lock_file(path, session_id, deadline)
        try:
            yield
        finally:
            # Removed while still held: who waits on the old file sees that it is gone and opens the new one.
            path.unlink(missing_ok=True)
            os.close(descriptor)


@contextmanager
def _in_process(key: str, session_id: str, timeout: float) -> Iterator[None]:
    with _guard:
        holder = _holders.setdefault(key, _Holder())
        holder.users += 1
    try:
        if not holder.lock.acquire(timeout=max(timeout, 0)):
            raise LockTimeout(session_id)
        try:
            yield
        finally:
            holder.lock.release()
    finally:
        with _guard:
            holder.users -= 1
            if not holder.users:
                _holders.pop(key, None)


def _lock_file(path: Path, session_id: str, deadline: float) -> int:
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, descriptor):
                return descriptor
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                raise LockTimeout(session_id) from None
            time.sleep(0.01)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        there = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)
