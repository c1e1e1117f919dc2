"""Bringing the store up to date with transcripts."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from endless_mode.bottle.view import SessionRow, load_session
from endless_mode.deliver import claims
from endless_mode.ingest import ingest_file
from endless_mode.ingest.ingest import Progress, Unreadable, ensure_session
from endless_mode.observe.base import InlineObserver
from endless_mode.store import Store

PLATFORM = "claude"
#: How late the client may write the last lines before a hook runs (measured: 16 to 82 ms).
LATE_SECONDS = 0.25
_STEP = 0.02


class Reading:
    """Reads transcripts into one store. One lock per session keeps two reads of the same one from overlapping."""

    def __init__(self, store: Store, observer: InlineObserver | None) -> None:
        self.store = store
        self.observer = observer
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def tail(self, session_id: str, path: Path | None) -> SessionRow:
        """Bring the store up to date with a session's transcript and return its row.

        A transcript that is not there (yet, or any more) changes nothing.
        """
        with self._locks[session_id]:
            if path is not None:
                try:
                    row = ingest_file(self.store, path, session_id=session_id, observer=self.observer).session
                    return self.store.read(lambda db: load_session(db, row))
                except Unreadable:
                    pass  # what the store has is served
        return self.row(session_id)

    def row(self, session_id: str) -> SessionRow:
        """A session's row as the store has it, made when there is none."""
        return self.store.write(lambda db: load_session(db, ensure_session(db, PLATFORM, session_id)))

    def read_in(self, session_id: str, path: Path, progress: Progress, stretch: int) -> int:
        """Read a past session's transcript in small steps; return how many lines could not be read.

        What ``progress`` raises ends it, and the session is free for others at once.
        """
        with self._locks[session_id]:
            read = ingest_file(
                self.store, path, session_id=session_id, observer=self.observer, progress=progress, stretch=stretch
            )
        return read.skipped

    def tail_to_the_end(self, session_id: str, path: Path | None) -> SessionRow:
        """The same, waiting up to 250 ms for the result of a tool use that ended just now."""
        return self._tail_while(self._open_ends, session_id, path)

    def tail_to_the_boundary(self, session_id: str, path: Path | None) -> SessionRow:
        """The same, waiting up to 250 ms for the boundary of a compaction that is over and was not handed over."""
        return self._tail_while(self._awaits_boundary, session_id, path)

    def _tail_while(self, waits: Callable[[SessionRow], bool], session_id: str, path: Path | None) -> SessionRow:
        at = self.tail(session_id, path)
        deadline = time.monotonic() + LATE_SECONDS
        while path is not None and waits(at) and time.monotonic() < deadline:
            time.sleep(_STEP)
            if path.exists() and path.stat().st_size > at.offset:
                at = self.tail(session_id, path)
        return at

    def _awaits_boundary(self, at: SessionRow) -> bool:
        return self.store.read(lambda db: claims.awaits_boundary(db, at))

    def _open_ends(self, at: SessionRow) -> bool:
        def ask(db: sqlite3.Connection) -> bool:
            last = db.execute(
                "SELECT status FROM tool_events WHERE session_id = ? AND gen = ? AND agent_id = ''"
                " ORDER BY offset DESC, idx DESC LIMIT 1",
                (at.id, at.gen),
            ).fetchone()
            return last is not None and last[0] == "open"

        return self.store.read(ask)
