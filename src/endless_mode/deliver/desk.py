"""The desk: everything that can be asked of one session, as blocking calls over one store.

The worker calls it from threads; the fallback process, which has no worker, calls it directly.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from endless_mode.bottle.closing import closing
from endless_mode.bottle.entries import MODE_FULL, MODE_RECONSTRUCTED, Document
from endless_mode.bottle.file import archive, bottle_path
from endless_mode.bottle.parse import parse
from endless_mode.bottle.prefixes import Prefixes
from endless_mode.bottle.session import SessionDocument, gap
from endless_mode.bottle.text import BottleText
from endless_mode.bottle.view import SessionRow
from endless_mode.bottle.write import Bottle, write_bottle
from endless_mode.claude_mem.beside import beside, foreign_handoff, stands_down
from endless_mode.deliver import claims, legs
from endless_mode.deliver.claims import Ask, Claim
from endless_mode.deliver.eligible import installed_at
from endless_mode.deliver.handoff import closing_of, compose, last_bottle, plan_budget, task_of
from endless_mode.deliver.ladder import best_document, holds_something, task_in
from endless_mode.deliver.reading import PLATFORM, Reading
from endless_mode.deliver.timeline import timeline
from endless_mode.errors import EndlessError
from endless_mode.home import Home
from endless_mode.observe.base import InlineObserver
from endless_mode.observe.rules import RulesObserver
from endless_mode.paths import client_of
from endless_mode.privacy import clean_lines
from endless_mode.settings import Settings
from endless_mode.store import Store
from endless_mode.store.trouble import needs_reopening

#: How old (ms) a bottle of the same transcript length may be to serve as it is: a seal before a long summary.
FRESH_MS = 600_000

#: How many bottles are remembered that were rendered last.
_TEXTS = 64

RULES = RulesObserver()

#: Says that something went wrong, by a word of our own and the exception.
Complain = Callable[[str, str, BaseException], None]


class Caller(Struct, frozen=True):
    """The hook that asks: its session, transcript and directory; a name for its request, by which a second try is
    known; the time (monotonic, seconds) after which nobody reads the answer."""

    session_id: str
    path: Path | None
    cwd: str = ""
    request: str = ""
    until: float = float("inf")

    def ask(self, event: str) -> Ask:
        """The question as the claims put it."""
        return Ask(event, _now(), self.request)


def _config_dir(caller: Caller) -> Path:
    """The client's configuration directory, by where its transcript lies."""
    found = client_of(caller.path) if caller.path is not None else None
    return found or Path.home() / ".claude"


class NothingLeft(EndlessError):
    """There is nothing to make a bottle of."""

    status = 404


class Sealed(Struct, frozen=True):
    """A seal's outcome."""

    bottle: Bottle
    gap: int


class Desk(Reading):
    """See the module's docstring."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        store: Store,
        complain: Complain,
        observer: InlineObserver | None = RULES,
    ) -> None:
        self.home = home
        self.settings = settings
        super().__init__(store, observer)
        self.prefixes = Prefixes(store)
        self._texts: dict[int, BottleText] = {}
        self._looked: dict[str, int] = {}
        self.installed_at = installed_at(home)
        self._complain = complain

    # -- bottles -------------------------------------------------------------------------------------------

    def render(self, at: SessionRow, config_dir: Path | None = None) -> Bottle:
        """Render the best bottle there is of the session into the home; ``config_dir`` as in :func:`best_document`.

        Raises:
            NothingLeft: on no rung of the ladder is there anything of it.
        """
        locks = self.home.run / "locks"
        bottle = write_bottle(
            self.store, at.id, self.home.bottles, locks, lambda: self._best(at, config_dir), self.prefixes
        )
        row = (at.id, str(bottle.path), bottle.mode, _now(), bottle.offset, bottle.gap)
        try:
            self.store.write(lambda db: db.execute(_BOTTLE, row).rowcount)
        except sqlite3.Error as error:
            self._complain("bottle_not_noted", at.content_session_id, error)
        self._texts[at.id] = bottle.text
        while len(self._texts) > _TEXTS:
            self._texts.pop(next(iter(self._texts)), None)
        return bottle

    def _best(self, at: SessionRow, config_dir: Path | None) -> Document | SessionDocument:
        best = best_document(
            self.home, self.store, at.content_session_id, config_dir=config_dir, enriched=self.settings.enrich
        )
        if best.document is None:
            raise NothingLeft("nothing_left", f"Nothing is left of this session: {best.why}.")
        return best.document

    def is_rendered(self, at: SessionRow, since: int = 0) -> bool:
        """Whether a full bottle, made at or after ``since``, holds everything the session has."""
        ask = (
            "SELECT 1 FROM bottles WHERE session_id = ? AND rendered_offset = ? AND gap = 0 AND mode = ?"
            " AND rendered_at >= ?"
        )
        made = (at.id, at.offset, MODE_FULL, since)
        return self.store.read(lambda db: gap(db, at.id) == 0 and db.execute(ask, made).fetchone() is not None)

    def holds_something(self, at: SessionRow) -> bool:
        """Whether there is anything to make a bottle of, be it in the hands of others."""
        return at.gen > 0 or holds_something(self.home, self.store, at.content_session_id)

    def archive(self, session_id: str) -> Path | None:
        """Move a session's bottle into the archive; ``None`` when it has none."""
        path = bottle_path(self.home.bottles, session_id)
        if not path.exists():
            return None
        moved = archive(path, self.home.archive, _now())
        self.store.write(
            lambda db: (
                db.execute(
                    "UPDATE bottles SET path = ? WHERE session_id IN"
                    " (SELECT id FROM sessions WHERE content_session_id = ?)",
                    (str(moved), session_id),
                ).rowcount
            )
        )
        return moved

    def ended(self, session_id: str, reason: str) -> None:
        """Note that the client has left a session; it may come back to it."""
        self._looked.pop(session_id, None)
        note = "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE platform_source = ? AND content_session_id = ?"
        self.store.write(lambda db: db.execute(note, (_now(), reason, PLATFORM, session_id)).rowcount)

    def gap(self, at: SessionRow) -> int:
        """Tool events that an observer still has to answer for."""
        return self.store.read(lambda db: gap(db, at.id))

    def handed(self, at: SessionRow) -> int:
        """Handoffs of the session so far; what a seal must know from its beginning."""
        return self.store.read(lambda db: claims.handed(db, at.id))

    def seal(self, at: SessionRow, before: int) -> Sealed:
        """Arm, unless a handoff was given since ``before`` was read, and render; the caller has waited for the drain.

        Armed first: a render that fails now may succeed when the handoff is due.
        """
        waiting = self.gap(at)
        self.store.write(lambda db: claims.arm(db, at, waiting, before, _now()))
        bottle = self.render(at)
        return Sealed(bottle, bottle.gap)

    def in_subagent(self, at: SessionRow) -> bool:
        """Whether a compaction now is a subagent's; then no marker can be for it, and one that is there is stale."""
        if not self.store.read(lambda db: legs.in_subagent(db, at)):
            return False
        self.store.write(lambda db: claims.disarm(db, at.id))
        return True

    # -- handing over --------------------------------------------------------------------------------------

    def after_compaction(self, caller: Caller) -> str:
        """What a SessionStart(compact) prints."""
        at = self.tail(caller.session_id, caller.path)
        if not self.holds_something(at):
            return self._timeline(at, caller)
        if self.store.read(lambda db: legs.in_subagent(db, at) and not claims.is_armed(db, at.id)):
            return ""
        ask = caller.ask("SessionStart:compact")
        claim = self.store.write(lambda db: claims.claim_compaction(db, at, ask))
        return self._hand_over(at, claim, caller, or_timeline=True)

    def at_prompt(self, caller: Caller) -> str:
        """What a UserPromptSubmit prints: the handoff of a boundary that got none."""
        at = self.tail(caller.session_id, caller.path)
        ask, since = caller.ask("UserPromptSubmit"), self.installed_at
        claim = self.store.write(lambda db: claims.claim_missed(db, at, ask, since))
        return self._hand_over(at, claim, caller)

    def at_resume(self, caller: Caller) -> str:
        """What a SessionStart(resume) prints: nothing when the newest boundary had its handoff (setting ``auto``)."""
        at = self.tail(caller.session_id, caller.path)
        if self.settings.resume == "never" or at.gen == 0:
            return ""
        ask, since = caller.ask("SessionStart:resume"), self.installed_at
        if self.settings.resume == "always":
            claim = self.store.write(lambda db: claims.claim_always(db, at, ask))
        else:
            claim = self.store.write(lambda db: claims.claim_missed(db, at, ask, since, resumed=True))
        return self._hand_over(at, claim, caller)

    def at_startup(self, caller: Caller) -> str:
        """The timeline of the project, when the setting is on and claude-mem does not print one of its own."""
        if not self.settings.timeline or self._has_its_timeline(caller):
            return ""
        return self.store.read(lambda db: timeline(db, caller.cwd, caller.session_id))

    def _has_its_timeline(self, caller: Caller) -> bool:
        """Whether claude-mem's hooks print a timeline at the same moment, and ours is not wanted beside it."""
        if self.settings.always_beside:
            return False
        return "SessionStart" in beside(_config_dir(caller), self.home.data_dir).events

    def _timeline(self, at: SessionRow, caller: Caller) -> str:
        if self._has_its_timeline(caller):
            return ""
        return self.store.read(lambda db: timeline(db, caller.cwd or at.cwd, at.content_session_id))

    def _hand_over(self, at: SessionRow, claim: Claim | None, caller: Caller, *, or_timeline: bool = False) -> str:
        """The handoff for a claim, by the best rung of the ladder that holds; else the claim is given back."""
        if claim is None:
            return ""
        level = self.store.read(lambda db: legs.pressure(db, at, claim.end))
        if level >= 2 or self._stands_down(caller):
            self._printed(at, claim, "none", 0, 0)
            return ""
        try:
            text, mode, budget = self._compose(at, claim, level)
        except Exception as error:
            self.store.write(lambda db: claims.unclaim(db, claim))
            if needs_reopening(error):
                raise
            self._complain("handoff_failed", at.content_session_id, error)
            return self._timeline(at, caller) if or_timeline else ""
        if time.monotonic() > caller.until:
            self.store.write(lambda db: claims.unclaim(db, claim))
            return ""
        self._printed(at, claim, mode, len(text), budget)
        return text

    def _stands_down(self, caller: Caller) -> bool:
        """Whether another program hands this session over, and ours is not wanted beside it."""
        if self.settings.always_beside:
            return False
        if stands_down(beside(_config_dir(caller), self.home.data_dir), self.settings):
            return True
        return caller.path is not None and self._handed_by_another(caller.session_id, caller.path)

    def _handed_by_another(self, session_id: str, path: Path) -> bool:
        """Whether the other program has handed this session over; what was looked through once is not again."""
        size = path.stat().st_size if path.exists() else 0
        looked = self._looked.get(session_id, 0)
        if foreign_handoff(path, looked if looked <= size else 0):
            return True
        # The last line may not have been whole.
        self._looked[session_id] = max(0, size - 65_536)
        return False

    def _printed(self, at: SessionRow, claim: Claim, mode: str, units: int, budget: int) -> None:
        try:
            self.store.write(lambda db: claims.printed(db, claim, mode, units, budget))
        except sqlite3.Error as error:
            self._complain("handoff_not_noted", at.content_session_id, error)

    def _compose(self, at: SessionRow, claim: Claim, level: int) -> tuple[str, str, int]:
        """The text, the mode of what it names, the plan's budget.

        When the bottle cannot be rendered now, the one on disk serves, with the state fresh from the store.
        """
        budget = plan_budget(at.context_tokens, self.settings.plan_tokens) if level == 0 else 0
        stale = False
        bottle = self._current(at)
        if bottle is None:
            try:
                bottle = self.render(at)
            except Exception as error:
                if needs_reopening(error):
                    raise
                self._complain("bottle_not_written", at.content_session_id, error)
                bottle = last_bottle(self.home.bottles, at.content_session_id)
                stale = bottle is not None
        try:
            state, task = self._state(at, None if stale else bottle)
        except Exception as error:
            if bottle is None or needs_reopening(error):
                raise
            self._complain("state_not_derived", at.content_session_id, error)
            state, task = closing_of(bottle), ""
        text = compose(bottle, state, task, budget, claim.marker, stale=stale).text
        return text, bottle.mode if bottle is not None else "state", budget

    def _current(self, at: SessionRow) -> Bottle | None:
        """The bottle on disk, when it holds everything the session has: a seal has just made it."""
        fresh = self.is_rendered(at, _now() - FRESH_MS)
        bottle = last_bottle(self.home.bottles, at.content_session_id) if fresh else None
        if bottle is None or bottle.mode != MODE_FULL:
            return None
        text = self._texts.get(at.id)
        # It says where things are in it, so the file need not be gone through.
        known = text is not None and text.path == bottle.path
        return msgspec.structs.replace(bottle, offset=at.offset, text=text if known else bottle.text)

    def _state(self, at: SessionRow, bottle: Bottle | None) -> tuple[str, str]:
        """Where things stand and the current task, from a bottle that is up to date, else from the store."""
        if bottle is None:
            return self.store.read(lambda db: (clean_lines(closing(db, at).state), task_of(db, at)))
        if bottle.kept or bottle.mode == MODE_RECONSTRUCTED:
            return closing_of(bottle), task_in(parse(bottle.text.whole()))
        return closing_of(bottle), self.store.read(lambda db: task_of(db, at))


_BOTTLE = """
INSERT INTO bottles VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (session_id) DO UPDATE SET path = excluded.path,
  mode = excluded.mode, rendered_at = excluded.rendered_at, rendered_offset = excluded.rendered_offset,
  gap = excluded.gap
"""


def _now() -> int:
    return int(time.time() * 1000)
