"""Reading the new lines of a file that somebody else appends to.

A cursor is (device, inode, offset, hash of the bytes before the offset). When the file is shorter than the
offset, is another file, or has other bytes there, it was truncated or replaced and reading begins again at 0.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from msgspec import Struct

from endless_mode.clients.base import Line
from endless_mode.clients.claude_code.entry import is_whole

BUFFER = 1 << 20
#: Longest line that is read; real ones reach 2 MB, an image of 10 MB makes one of 27 MB.
MAX_LINE = 1 << 26
_ANCHOR = 4096


class Cursor(Struct, frozen=True):
    """Where reading stopped, and enough to tell whether the file is still the one that was read."""

    device: int
    inode: int
    offset: int
    anchor: bytes


class FileSource:
    """A transcript on disk; ``.gz`` is read unpacked (offsets are those of the unpacked text)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.packed = path.name.endswith(".gz")

    def open(self, offset: int = 0) -> BinaryIO:
        """A buffered stream that stands at ``offset``."""
        if self.packed:
            stream = cast(BinaryIO, gzip.open(self.path, "rb"))  # noqa: SIM115 (the caller closes it)
        else:
            stream = self.path.open("rb", buffering=BUFFER)
        if offset:
            stream.seek(offset)
        return stream

    def size(self) -> int:
        """Bytes on disk now."""
        return self.path.stat().st_size


def continues(stream: BinaryIO, cursor: Cursor) -> bool:
    """Whether the open file still begins with what was read up to the cursor."""
    stat = os.fstat(stream.fileno())
    if (stat.st_dev, stat.st_ino) != (cursor.device, cursor.inode) or stat.st_size < cursor.offset:
        return False
    return anchor_of(stream, cursor.offset) == cursor.anchor


def anchor_of(stream: BinaryIO, offset: int) -> bytes:
    """Hash of up to 4 KiB before ``offset``; the stream's position moves."""
    start = max(0, offset - _ANCHOR)
    stream.seek(start)
    return hashlib.blake2b(stream.read(offset - start), digest_size=16).digest()


def cursor_at(stream: BinaryIO, offset: int) -> Cursor:
    """A cursor for the open file; the stream's position moves."""
    stat = os.fstat(stream.fileno())
    return Cursor(stat.st_dev, stat.st_ino, offset, anchor_of(stream, offset))


def lines(stream: BinaryIO, offset: int) -> Iterator[Line]:
    """Complete lines from where the stream stands; a last line without newline only when it is whole.

    A line past :data:`MAX_LINE` is passed over without being held; it comes out as a line that holds nothing.
    """
    while data := stream.readline(MAX_LINE):
        end = offset + len(data)
        if not data.endswith(b"\n"):
            if len(data) == MAX_LINE:
                passed = _pass_line(stream)
                if passed < 0:
                    return
                yield Line(offset, b"?", end + passed)
                offset = end + passed
                continue
            if not is_whole(data):
                return
        yield Line(offset, data, end)
        offset = end


def _pass_line(stream: BinaryIO) -> int:
    """Bytes up to and with the next newline, -1 when there is none yet."""
    passed = 0
    while data := stream.readline(BUFFER):
        passed += len(data)
        if data.endswith(b"\n"):
            return passed
    return -1
