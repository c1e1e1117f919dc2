"""What the worker does for past sessions: the backfill, the index, the sweep, and requests about them.

All of it happens on one thread of its own, in small steps with pauses between them. A step holds the store for a few
milliseconds; while hooks come in, or just have, the backfill waits. An import that somebody waits for takes larger
steps and shorter pauses.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from endless_mode import retention
from endless_mode.deliver import resume
from endless_mode.deliver.desk import Desk
from endless_mode.deliver.resume import Resumed
from endless_mode.forgetting import Forgot, Selection, forget, plan, scrub
from endless_mode.home import Home
from endless_mode.importing import Imported, Moved, exclusion, import_all
from endless_mode.search.index import missing, purge, step
from endless_mode.settings import Settings
from endless_mode.worker.log import Log
from endless_mode.worker.messages import ImportStatus

T = TypeVar("T")

#: Bytes of transcript to one step of the backfill (the second: nobody has been there for long; the third: somebody
#: waits for the import and no hook comes), and rows to one step of the index.
STRETCH, QUIET_STRETCH, ASKED_STRETCH, ROWS = 64 << 10, 256 << 10, 1 << 20, 100
#: Seconds of peace before the backfill begins, before it goes on after a hook, and until the next round.
BEGIN_AFTER, PEACE, AGAIN = 20.0, 1.0, 6 * 3600.0
#: Seconds without a hook after which nobody is there.
QUIET = 30.0
#: Pause after a step, in times of what the step took: in idle time, with nobody there, and when somebody waits for
#: the import.
IDLE_PAUSE, QUIET_PAUSE, ASKED_PAUSE = 6.0, 2.0, 0.2


class Keeps(Protocol):
    """Whatever has the desk."""

    def use(self, work: Callable[[Desk], T]) -> T:
        """Do some work with the desk."""


class _Step(Exception):
    """A step is done: the store and the session are let go before the next."""


class _Ending(Exception):
    """The worker ends."""


class Past:
    """Past sessions in the worker. ``is_live`` says whether a session is being followed."""

    def __init__(self, home: Home, settings: Settings, keeper: Keeps, log: Log, is_live: Callable[[str], bool]) -> None:
        self.home = home
        self.settings = settings
        self.begin_after = BEGIN_AFTER
        self._keeper = keeper
        self._log = log
        self._is_live = is_live
        self._excluded = exclusion(settings.excluded_projects, home.data_dir)
        self._roots: dict[Path, None] = {}
        self._asked: list[Path] = []
        self._state, self._failed = Imported(), False
        self._shrink = False
        self._busy = False
        self._hook_at = 0.0
        self._wake = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._live, name="past", daemon=True)

    # -- life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to wait for idle time."""
        self._thread.start()

    def stop(self) -> None:
        """End after the step that runs; the next worker goes on from there."""
        self._stopping.set()
        with self._wake:
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def saw_hook(self, root: Path | None) -> None:
        """A hook came in, from a client with this configuration directory: make room, and remember the directory."""
        self._hook_at = time.monotonic()
        if root is not None:
            self._roots.setdefault(root)

    def at_work(self) -> bool:
        """Whether something runs for whose sake the worker should stay."""
        return self._busy or bool(self._asked)

    # -- requests ------------------------------------------------------------------------------------------

    def import_from(self, root: Path) -> ImportStatus:
        """Import everything under a configuration directory soon; returns at once."""
        with self._wake:
            if root not in self._asked:
                self._asked.append(root)
            self._state, self._failed = Imported(), False
            self._wake.notify_all()
        return self.status()

    def status(self) -> ImportStatus:
        """How far the import is that was asked for last."""
        return ImportStatus(bool(self._asked), msgspec.structs.replace(self._state), self._failed)

    def index(self, seconds: float) -> int:
        """Index for at most so many seconds; return how many rows are still missing."""
        end = time.monotonic() + seconds
        while self._keeper.use(lambda desk: desk.store.write(step)) and time.monotonic() < end:
            pass
        return self._keeper.use(lambda desk: desk.store.read(missing))

    def forget(self, selection: Selection, *, dry_run: bool, now: bool) -> Forgot:
        """Forget, or say what would be forgotten. Without ``now`` the free pages are dropped in idle time."""
        if dry_run:
            return self._keeper.use(lambda desk: desk.store.read(lambda db: plan(db, self.home, selection)))
        found = self._keeper.use(lambda desk: forget(desk.store, self.home, selection, now=now))
        self._log.write("forgot", count=len(found.sessions))
        with self._wake:
            self._shrink = self._shrink or not now
            self._wake.notify_all()
        return found

    def resume(self, session_id: str, config_dir: Path | None) -> Resumed:
        """Let a session's handoff wait for a new session."""
        return self._keeper.use(lambda desk: resume.take_up(desk, session_id, config_dir))

    # -- the thread ----------------------------------------------------------------------------------------

    def _live(self) -> None:
        self._wait(self.begin_after)
        while not self._stopping.is_set():
            self._busy = True
            try:
                self._round()
            except _Ending:
                return
            except Exception as error:
                self._log.write("past_failed", level="error", error=error)
                self._failed = bool(self._asked)
                self._asked.clear()
            finally:
                self._busy = False
            self._wait(AGAIN)

    def _wait(self, seconds: float) -> None:
        with self._wake:
            self._wake.wait_for(lambda: self._stopping.is_set() or bool(self._asked) or self._shrink, seconds)

    def _round(self) -> None:
        while self._asked:
            self._import(self._asked[0])
            self._asked.pop(0)
        self._keep_house()
        if self.settings.backfill:
            for root in list(self._roots):
                self._import(root)
        while self._use_step(lambda desk: desk.store.write(lambda db: step(db, ROWS))):
            pass

    def _keep_house(self) -> None:
        """The sweep: archive, conversations to be dropped, size, free pages."""
        self._keeper.use(lambda desk: retention.sweep(desk.store, self.home))
        if not self.settings.keep_conversation:
            dropped = self._keeper.use(lambda desk: retention.drop_conversations(desk.store, self.home))
            if dropped:
                self._give_way()
                self._keeper.use(lambda desk: desk.store.write(purge))
                self._shrink = True
        trimmed = self._keeper.use(lambda desk: retention.trim(desk.store, self.settings.max_db_bytes, self._give_way))
        if self._shrink or trimmed:
            self._give_way()
            self._keeper.use(lambda desk: desk.store.alone(lambda db: scrub(db, shrink=True)))
            self._shrink = False

    def _import(self, root: Path) -> None:
        done = import_all(
            self._read,
            lambda ask: self._keeper.use(lambda desk: desk.store.read(ask)),
            root,
            self._excluded,
            self._report,
        )
        if done.read:
            self._log.write("imported", count=done.read, size=done.done_bytes)

    def _report(self, state: Imported) -> None:
        self._state = state
        if self._stopping.is_set():
            raise _Ending

    def _read(self, session_id: str, path: Path, progress: Callable[[int, int], None]) -> int:
        def after_step(done: int, whole: int) -> None:
            progress(done, whole)
            raise _Step

        while True:
            if self._is_live(session_id):
                raise Moved
            try:
                return self._use_step(
                    partial(
                        Desk.read_in, session_id=session_id, path=path, progress=after_step, stretch=self._stretch()
                    )
                )
            except _Step:
                continue

    def _use_step(self, work: Callable[[Desk], T]) -> T:
        """Make room for others, do a step, rest."""
        self._give_way()
        began = time.monotonic()
        try:
            return self._keeper.use(work)
        finally:
            pause = ASKED_PAUSE if self._asked else QUIET_PAUSE if self._is_quiet() else IDLE_PAUSE
            rest = (time.monotonic() - began) * pause
            self._stopping.wait(min(rest, PEACE))

    def _stretch(self) -> int:
        """Bytes to read in the next step."""
        if self._asked:
            return ASKED_STRETCH if self._peace() <= 0 else STRETCH
        return QUIET_STRETCH if self._is_quiet() else STRETCH

    def _is_quiet(self) -> bool:
        """Whether no hook has come for long."""
        return time.monotonic() - self._hook_at > QUIET

    def _peace(self) -> float:
        """Seconds to wait until the last hook is long enough ago."""
        return self._hook_at + PEACE - time.monotonic()

    def _give_way(self) -> None:
        """Wait until no hook has come for a moment; one who asked for an import is not kept waiting."""
        while not self._asked and not self._stopping.is_set():
            left = self._peace()
            if left <= 0:
                break
            self._stopping.wait(left)
        if self._stopping.is_set():
            raise _Ending
