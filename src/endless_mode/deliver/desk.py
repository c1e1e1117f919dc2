"""The desk: everything that can be asked of one session, as blocking calls over one store.

The worker calls it from threads; the fallback process, which has no worker, calls it directly. One lock per session
keeps two reads of the same transcript from overlapping.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from endless_mode.bottle.closing import closing
from endless_mode.bottle.file import LockTimeout, archive, bottle_path
from endless_mode.bottle.session import Bottle, gap, write_bottle
from endless_mode.bottle.view import SessionRow, load_session
from endless_mode.deliver import claims
from endless_mode.deliver.claims import Claim
from endless_mode.deliver.handoff import compose, plan_budget, task_of
from endless_mode.deliver.timeline import timeline
from endless_mode.home import Home
from endless_mode.ingest import ingest_file
from endless_mode.ingest.ingest import Unreadable, ensure_session
from endless_mode.observe.base import InlineObserver
from endless_mode.observe.rules import RulesObserver
from endless_mode.settings import Settings
from endless_mode.store import Store

#: How late the client may write the last lines before a hook runs (measured: 16 to 82 ms).
LATE_SECONDS = 0.25
_STEP = 0.02

PLATFORM = "claude"

#: Says that something went wrong, by a word of our own and the exception.
Complain = Callable[[str, str, BaseException], None]


class Sealed(Struct, frozen=True):
    """A seal's outcome."""

    bottle: Bottle
    gap: int


class Desk:
    """See the module's docstring."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        store: Store,
        complain: Complain,
        observer: InlineObserver | None = RulesObserver(),
    ) -> None:
        self.home = home
        self.settings = settings
        self.store = store
        self.observer = observer
        self.installed_at = installed_at(home)
        self._complain = complain
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    # -- reading -------------------------------------------------------------------------------------------

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
                    pass
            row = self.store.write(lambda db: ensure_session(db, PLATFORM, session_id))
        return self.store.write(lambda db: load_session(db, row))

    def tail_to_the_end(self, session_id: str, path: Path | None) -> SessionRow:
        """The same, waiting up to 250 ms for the result of a tool use that ended just now."""
        at = self.tail(session_id, path)
        deadline = time.monotonic() + LATE_SECONDS
        while path is not None and self._open_ends(at) and time.monotonic() < deadline:
            time.sleep(_STEP)
            if path.exists() and path.stat().st_size > at.offset:
                at = self.tail(session_id, path)
        return at

    def _open_ends(self, at: SessionRow) -> bool:
        def ask(db: sqlite3.Connection) -> bool:
            last = db.execute(
                "SELECT status FROM tool_events WHERE session_id = ? AND gen = ? AND agent_id = ''"
                " ORDER BY offset DESC, idx DESC LIMIT 1",
                (at.id, at.gen),
            ).fetchone()
            return last is not None and last[0] == "open"

        return self.store.read(ask)

    # -- bottles -------------------------------------------------------------------------------------------

    def render(self, at: SessionRow) -> Bottle:
        """Render the session's bottle into the home."""
        bottle = write_bottle(self.store, at.id, self.home.bottles, self.home.run / "locks")
        now = _now()
        self.store.write(
            lambda db: db.execute(
                "INSERT INTO bottles VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (session_id) DO UPDATE SET path = excluded.path,"
                " mode = excluded.mode, rendered_at = excluded.rendered_at, rendered_offset = excluded.rendered_offset,"
                " gap = excluded.gap",
                (at.id, str(bottle.path), bottle.mode, now, bottle.offset, bottle.gap),
            ).rowcount
        )
        return bottle

    def archive(self, session_id: str) -> Path | None:
        """Move a session's bottle into the archive; ``None`` when it has none."""
        path = bottle_path(self.home.bottles, session_id)
        return archive(path, self.home.archive, _now()) if path.exists() else None

    def gap(self, at: SessionRow) -> int:
        """Tool events that an observer still has to answer for."""
        return self.store.read(lambda db: gap(db, at.id))

    def seal(self, at: SessionRow, began: int) -> Sealed:
        """Render and arm. The drain was waited for by the caller."""
        bottle = self.render(at)
        self.store.write(lambda db: claims.arm(db, at, bottle.gap, began, _now()))
        return Sealed(bottle, bottle.gap)

    # -- handing over --------------------------------------------------------------------------------------

    def after_compaction(self, session_id: str, path: Path | None, cwd: str) -> str:
        """What a SessionStart(compact) prints."""
        at = self.tail(session_id, path)
        if self.store.read(lambda db: claims.in_subagent(db, at)) and not self._armed(at):
            return ""
        now = _now()
        claim = self.store.write(lambda db: claims.claim_compaction(db, at, gap(db, at.id), "SessionStart", now))
        return self._hand_over(at, claim, cwd)

    def at_prompt(self, session_id: str, path: Path | None, cwd: str) -> str:
        """What a UserPromptSubmit prints: the handoff of a boundary that got none."""
        return self._missed(self.tail(session_id, path), "UserPromptSubmit", cwd)

    def at_resume(self, session_id: str, path: Path | None, cwd: str) -> str:
        """What a SessionStart(resume) prints: nothing when the newest boundary had its handoff (setting ``auto``)."""
        at = self.tail(session_id, path)
        if self.settings.resume == "never":
            return ""
        if self.settings.resume == "always":
            now = _now()
            claim = self.store.write(lambda db: claims.claim_always(db, at, gap(db, at.id), "SessionStart", now))
            return self._hand_over(at, claim, cwd)
        return self._missed(at, "SessionStart", cwd)

    def at_startup(self, session_id: str, cwd: str) -> str:
        """The timeline of the project, when the setting is on."""
        if not self.settings.timeline:
            return ""
        return self.store.read(lambda db: timeline(db, cwd, session_id))

    def _missed(self, at: SessionRow, event: str, cwd: str) -> str:
        now, since = _now(), self.installed_at
        claim = self.store.write(lambda db: claims.claim_missed(db, at, gap(db, at.id), event, now, since))
        return self._hand_over(at, claim, cwd)

    def _armed(self, at: SessionRow) -> bool:
        ask = "SELECT 1 FROM deliveries WHERE session_id = ? AND consumed_at IS NULL"
        return self.store.read(lambda db: db.execute(ask, (at.id,)).fetchone() is not None)

    def _hand_over(self, at: SessionRow, claim: Claim | None, cwd: str) -> str:
        """The handoff for a claim, by the best rung of the ladder that holds."""
        if claim is None:
            return ""
        level = self.store.read(lambda db: claims.pressure(db, at))
        if level >= 2:
            return ""
        try:
            text, bottle, budget = self._compose(at, claim, level)
        except Exception as error:
            self._complain("handoff_failed", at.content_session_id, error)
            return self.store.read(lambda db: timeline(db, cwd or at.cwd))
        mode = bottle.mode if bottle else ""
        self.store.write(lambda db: claims.printed(db, claim, mode, len(text), budget))
        return text

    def _compose(self, at: SessionRow, claim: Claim, level: int) -> tuple[str, Bottle | None, int]:
        """The text, the bottle it names (``None``: it could not be written), the plan's budget."""
        state, task = self.store.read(lambda db: (closing(db, at).state, task_of(db, at)))
        budget = plan_budget(at.context_tokens, self.settings.plan_tokens) if level == 0 else 0
        bottle: Bottle | None = None
        try:
            bottle = self.render(at)
        except (OSError, LockTimeout) as error:
            self._complain("bottle_not_written", at.content_session_id, error)
        return compose(bottle, state, task, budget, claim.marker).text, bottle, budget


def installed_at(home: Home) -> int:
    """When this home was made, in milliseconds: no boundary from before gets a handoff."""
    file = home.root / "installed"
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        now = _now()
        try:
            file.write_text(f"{now}\n")
            file.chmod(0o600)
        except OSError:
            pass
        return now


def _now() -> int:
    return int(time.time() * 1000)
