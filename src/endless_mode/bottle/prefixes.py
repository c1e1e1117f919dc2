"""The part of a session's bottle that does not change any more.

Nearly all of a long bottle stood in the one before it, letter for letter. What was rendered up to the last prompt is
copied from the bottle on disk, as long as nothing has changed of the rows it was made from
(:mod:`endless_mode.store.watch`) and the file is still the one that was written. Only where things are is remembered.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from endless_mode.bottle.entries import Entry
from endless_mode.bottle.pages import ONE_READ_BYTES
from endless_mode.bottle.render import Start, Written
from endless_mode.bottle.session import SessionDocument
from endless_mode.bottle.text import BottleText, Identity, identity
from endless_mode.store import Store
from endless_mode.store.watch import Watch

#: A conversation part shorter than this (bytes) is rendered in no time, and whether a bottle gets an index depends on
#: all of it.
WORTH = ONE_READ_BYTES
#: Sessions remembered at once.
MOST = 64

_CHUNK = 1 << 18


class Known(Struct, frozen=True):
    """What is known of a bottle on disk: ``start`` is how far its conversation part holds, ``talk_at`` its first byte."""

    watch: int
    path: Path
    file: Identity
    talk_at: int
    start: Start
    before: list[Entry]


class Prefixes:
    """What is remembered of the bottles of one store."""

    def __init__(self, store: Store) -> None:
        self._watch = Watch(store)
        self._known: OrderedDict[int, Known] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, session: int) -> int | None:
        """Call before the read of the store from which a bottle is made; ``None``: nothing can be remembered now."""
        try:
            return self._watch.begin(session)
        except sqlite3.Error:  # a full disk, a database that cannot be written: rendering needs neither
            return None

    def known(self, made: SessionDocument, path: Path) -> Known | None:
        """What of the bottle at ``path`` still holds; call within the read."""
        with self._lock:
            known = self._known.get(made.at.id)
        if known is None or known.path != path or made.at.gen != 1 or known.before != made.before:
            return None
        with suppress(sqlite3.Error):
            return known if self._watch.holds(known.watch) else None
        return None

    def keep(self, watch: int, made: SessionDocument, text: BottleText, written: Written) -> None:
        """Remember a bottle that is in place now."""
        start, path, file = written.start, text.path, text.of
        # Rows of an earlier generation leave the conversation without being changed.
        if start is None or path is None or file is None or start.size < WORTH or made.at.gen != 1:
            return self.drop(made.at.id, watch)
        if not self._settled(watch, start.offset):
            return self.drop(made.at.id, watch)
        known = Known(watch, path, file, written.talk_at, start, made.before)
        with self._lock:
            gone = [self._known.pop(made.at.id, None)]
            self._known[made.at.id] = known
            while len(self._known) > MOST:
                gone.append(self._known.popitem(last=False)[1])
        with suppress(sqlite3.Error):
            for old in filter(None, gone):
                self._watch.end(old.watch)
        return None

    def _settled(self, watch: int, until: int) -> bool:
        with suppress(sqlite3.Error):
            return self._watch.settle(watch, until)
        return False

    def drop(self, session: int, watch: int) -> None:
        """Remember nothing of a session, and end the watch that was begun for it."""
        with self._lock:
            known = self._known.pop(session, None)
        with suppress(sqlite3.Error):
            self._watch.end(watch)
            if known is not None:
                self._watch.end(known.watch)


def copier(known: Known, target: BinaryIO) -> tuple[BinaryIO, Callable[[], None]] | None:
    """The bottle that is known, open, and a function that copies its conversation part; ``None`` if it is another."""
    try:
        source = known.path.open("rb")
    except OSError:
        return None
    if identity(os.fstat(source.fileno())) != known.file:
        source.close()
        return None

    def copy() -> None:
        source.seek(known.talk_at)
        left = known.start.size
        while left:
            data = source.read(min(left, _CHUNK))
            if not data:
                raise OSError("the bottle was cut while it was read")
            target.write(data)
            left -= len(data)

    return source, copy
