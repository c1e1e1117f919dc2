"""Finding lines by bytes that stand in them: a fraction of the cost of looking at each line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

#: Bytes looked through at once.
CHUNK = 1 << 20


def mentions(stream: BinaryIO, name: bytes, at: int = 0) -> Iterator[tuple[int, bytes]]:
    """The lines of a stream that hold ``name``, with their offsets; the stream stands at offset ``at``.

    The last line counts without its newline, too.
    """
    rest = b""
    while data := stream.read(CHUNK):
        block = rest + data
        end = block.rfind(b"\n") + 1
        yield from _in(block[:end], name, at)
        at, rest = at + end, block[end:]
    yield from _in(rest, name, at)


def _in(block: bytes, name: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    found = block.find(name)
    while found >= 0:
        start = block.rfind(b"\n", 0, found) + 1
        end = block.find(b"\n", found) + 1 or len(block)
        yield at + start, block[start:end]
        found = block.find(name, end)
