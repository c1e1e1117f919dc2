"""The text of a bottle, read where it is needed: a long one is never in memory as a whole."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import BinaryIO

from endless_mode.bottle.escape import CLOSING, INDEX
from endless_mode.bottle.render import Shape

_INDEX, _CLOSING = f"{INDEX}\n".encode(), f"{CLOSING}\n".encode()

#: A file as it was: inode, size, time of its last change.
Identity = tuple[int, int, int]


def identity(stat: os.stat_result) -> Identity:
    """By what a file is known again."""
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


class BottleText:
    """A bottle in memory (``source`` has its bytes) or on disk (its path), and where things are in it.

    ``shape`` is believed of the file it was made for; of any other it is looked up anew.
    """

    def __init__(self, source: bytes | Path, shape: Shape | None = None, of: Identity | None = None) -> None:
        self._source = source
        self._shape = shape
        self.of = of

    @property
    def path(self) -> Path | None:
        """Where it is, unless it is in memory."""
        return None if isinstance(self._source, bytes) else self._source

    @property
    def shape(self) -> Shape:
        """Where things are. Raises :class:`OSError` when there is no such file."""
        if isinstance(self._source, bytes):
            self._shape = self._shape or _measure(io.BytesIO(self._source))
            return self._shape
        now = identity(self._source.stat())
        if self._shape is None or (self.of is not None and self.of != now):
            with self._source.open("rb") as file:
                self._shape = _measure(file)
        self.of = now
        return self._shape

    def part(self, start: int, end: int | None = None) -> str:
        """The text between two byte offsets; what is cut through at their edges is shown as U+FFFD."""
        if isinstance(self._source, bytes):
            return self._source[start:end].decode("utf-8", "replace")
        with self._source.open("rb") as file:
            file.seek(start)
            return file.read(-1 if end is None else end - start).decode("utf-8", "replace")

    def whole(self) -> str:
        """All of it."""
        return self.part(0)

    def closing(self) -> str:
        """The closing part under its heading."""
        return self.part(self.shape.closing_at).removeprefix(f"{CLOSING}\n")


def _measure(stream: BinaryIO) -> Shape:
    """Of each heading the last line counts, because no message can hold one."""
    at, number = 0, 0
    index: tuple[int, int] | None = None
    closing: tuple[int, int] | None = None
    for line in stream:
        number += 1
        if line == _CLOSING:
            closing = (at, number)
        elif line == _INDEX and closing is None:
            index = (at, number)
        at += len(line)
    closing = closing or (at, number + 1)
    talk = index or closing
    return Shape(at, talk[0], talk[1] - 1, *closing)
