"""Keeps a desk usable: reopens a store that was damaged or deleted, and has a spare one for the worst case.

With no usable store at all (a full disk, a home that cannot be written) a compaction still gets its handoff: from a
private temporary store that lives as long as this process, so that no boundary gets a second one from it. When the
real store works again, it is told; a note beside it (where one can be written) tells it even when this process is gone.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from endless_mode.deliver import claims, owed
from endless_mode.deliver.desk import RULES, Caller, Complain, Desk
from endless_mode.deliver.reading import PLATFORM
from endless_mode.home import Home
from endless_mode.ingest.ingest import ensure_session
from endless_mode.observe import slow
from endless_mode.observe.base import InlineObserver
from endless_mode.settings import Settings
from endless_mode.store import Store
from endless_mode.store.recovery import open_or_recover
from endless_mode.store.store import StoreBusy, StoreError
from endless_mode.store.trouble import is_damage, needs_reopening

T = TypeVar("T")

#: Longest wait for a database that another program holds locked; a handoff must be out within 5 seconds.
BUSY_MS = 1_500
#: Least time between two attempts to reopen, in seconds.
REOPEN_EVERY = 5.0

_COLUMNS = (
    "marker, armed_at, armed_offset, gap, consumed_at, consumed_offset, event, boundary_key, mode, units, plan_tokens"
)


class Keeper:
    """A desk that is opened, reopened and closed; safe to use from several threads."""

    def __init__(
        self, home: Home, settings: Settings, complain: Complain, observer: InlineObserver | None = RULES
    ) -> None:
        self.home = home
        self.settings = settings
        self.observer = observer
        self._complain = complain
        self._gate = _Gate()
        self._tried = 0.0
        self._file: tuple[int, int] | None = None
        self._spare: Desk | None = None
        self._spare_lock = threading.Lock()
        self._owed: set[str] = set()
        self.desk: Desk

    def open(self, patience: float = 0.0) -> bool:
        """Open the store; return whether it had to be made anew because it was damaged.

        Raises:
            StoreBusy: another process holds it.
            StoreError, OSError: no store can be opened here.
        """
        store, anew = open_or_recover(self.home.database, self.home.run / "suspect", patience)
        store.write(lambda db: db.execute(f"PRAGMA busy_timeout={BUSY_MS}").fetchone())
        store.write(slow.release)
        store.write(claims.release)
        for session_id, rows in owed.notes(self.home):
            if session_id in self._owed:  # this process tells it itself, with all that has come since
                continue
            try:
                store.write(partial(_take, session_id=session_id, rows=rows, later=True))
            except Exception as error:
                self._complain("note_not_taken", session_id, error)
            owed.forget(self.home, session_id)
        self._file = self._identity()
        self.desk = Desk(self.home, self.settings, store, self._complain, self.observer)
        return anew

    def use(self, work: Callable[[Desk], T]) -> T:
        """Do some work with the desk; when the store turns out to be of no use any more, once again with a new one."""
        with self._gate.shared():
            desk = self.desk
            try:
                return work(desk)
            except Exception as error:
                failure = error
        if not needs_reopening(failure) or not self._reopen(desk, failure):
            raise failure
        with self._gate.shared():
            return work(self.desk)

    def look_after(self) -> None:
        """Reopen the store when its file was deleted or replaced."""
        with self._gate.shared():
            desk = self.desk
        if self._identity() != self._file:
            self._reopen(desk, None)

    def close(self) -> None:
        """Close the store."""
        with self._gate.alone():
            self.desk.store.close()
        if self._spare is not None:
            self._spare.store.close()

    # -- handing over --------------------------------------------------------------------------------------

    def after_compaction(self, caller: Caller) -> str:
        """What a SessionStart(compact) prints, from the spare store if need be."""
        try:
            self.bring_back(caller.session_id)
            return self.use(lambda desk: desk.after_compaction(caller))
        except StoreBusy:
            raise
        except (sqlite3.Error, StoreError, OSError) as error:
            self._complain("store_failed", caller.session_id, error)
            return self._from_spare(caller)

    def at_prompt(self, caller: Caller) -> str:
        """What a UserPromptSubmit prints."""
        self.bring_back(caller.session_id)
        return self.use(lambda desk: desk.at_prompt(caller))

    def at_resume(self, caller: Caller) -> str:
        """What a SessionStart(resume) prints."""
        self.bring_back(caller.session_id)
        return self.use(lambda desk: desk.at_resume(caller))

    def use_spare_only(self) -> None:
        """Do without the real store."""
        store = Store.temporary()
        store.close()
        self.desk = Desk(self.home, self.settings, store, self._complain, self.observer)
        self._tried = time.monotonic()

    def _from_spare(self, caller: Caller) -> str:
        with self._spare_lock:
            if self._spare is None:
                self._spare = Desk(self.home, self.settings, Store.temporary(), self._complain, self.observer)
            if caller.session_id not in self._owed:
                with suppress(Exception):
                    # What another hook has claimed a moment ago is not to be had here, too.
                    ask = partial(_deliveries, session_id=caller.session_id, claimed=True)
                    rows = self.use(lambda desk: desk.store.read(ask))
                    self._spare.store.write(lambda db: _take(db, caller.session_id, rows))
                self._owed.add(caller.session_id)
            text = self._spare.after_compaction(caller)
            owed.note(
                self.home, caller.session_id, self._spare.store.read(lambda db: _deliveries(db, caller.session_id))
            )
            return text

    def bring_back(self, session_id: str) -> None:
        """Tell the real store what the spare one has handed over."""
        if session_id not in self._owed or self._spare is None:
            return
        rows = self._spare.store.read(lambda db: _deliveries(db, session_id))
        self.use(lambda desk: desk.store.write(lambda db: _take(db, session_id, rows, later=True)))
        self._owed.discard(session_id)
        owed.forget(self.home, session_id)

    # -- the store -----------------------------------------------------------------------------------------

    def _reopen(self, used: Desk, failure: BaseException | None) -> bool:
        """Put a new store in the place of the one that failed; return whether there is a new one."""
        with self._gate.alone():
            if self.desk is not used:
                return True
            if time.monotonic() - self._tried < REOPEN_EVERY and self._tried:
                return False
            self._tried = time.monotonic()
            if failure is not None:
                self._complain("store_reopened", "", failure)
            try:
                if failure is not None and is_damage(failure):
                    (self.home.run / "suspect").touch(mode=0o600)
                used.store.close()
                self.home.create()
                self.open()
            except Exception as error:
                self._complain("store_not_reopened", "", error)
                return False
            return True

    def _identity(self) -> tuple[int, int] | None:
        try:
            stat = self.home.database.stat()
        except OSError:
            return None
        return stat.st_dev, stat.st_ino


class _Gate:
    """Many may use the store at once, or one may replace it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._closed = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0)
        try:
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()


def _deliveries(db: sqlite3.Connection, session_id: str, claimed: bool = False) -> list[tuple[Any, ...]]:
    """What is known of a session's deliveries; those claimed and not printed only if asked for."""
    return db.execute(
        f"SELECT {_COLUMNS} FROM deliveries WHERE (consumed_at IS NULL OR mode <> '' OR ?) AND session_id IN"
        " (SELECT id FROM sessions WHERE platform_source = ? AND content_session_id = ?)",
        (claimed, PLATFORM, session_id),
    ).fetchall()


def _take(db: sqlite3.Connection, session_id: str, rows: list[tuple[Any, ...]], later: bool = False) -> None:
    """Add deliveries another store knows of; one that is consumed there is consumed.

    ``later``: they are newer than any marker that is armed here, which then is for a compaction that is over.
    """
    session = ensure_session(db, PLATFORM, session_id)
    if later:
        claims.disarm(db, session)
    for row in rows:
        db.execute(
            f"INSERT INTO deliveries (session_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (marker) DO UPDATE SET consumed_at = excluded.consumed_at,"
            " consumed_offset = excluded.consumed_offset, event = excluded.event,"
            " boundary_key = excluded.boundary_key, mode = excluded.mode"
            " WHERE deliveries.consumed_at IS NULL",
            (session, *row),
        )
