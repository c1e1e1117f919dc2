"""Checks of what becomes of past sessions: transcripts about to be deleted, and who else keeps bottles."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator

from endless_mode.claude_mem.beside import beside as look_beside
from endless_mode.claude_mem.beside import stands_down
from endless_mode.clients.claude_code import ClaudeCode
from endless_mode.importing import exclusion
from endless_mode.ingest.ingest import is_forgotten
from endless_mode.install.checks import Check, Context, plural
from endless_mode.retention import Vanishing, about_to_vanish
from endless_mode.store import open_reader
from endless_mode.tail import FileSource

#: Days before the client deletes a transcript at which it is mentioned; its own default for keeping them.
SOON, KEPT_DAYS = 7, 30
#: Transcripts that are named one by one.
NAMED = 10


def retention(at: Context) -> Check:
    """Transcripts that the client will delete soon are held in full."""
    if not at.settings.keep_conversation:
        return Check("retention", "ok", "KEEP_CONVERSATION is off: what the client deletes is not kept here either.")
    periods = [value.get("cleanupPeriodDays") for value in at.everywhere().values()]
    days = next((days for days in reversed(periods) if type(days) is int), KEPT_DAYS)
    with _reading(at) as db:
        going = [one for one in about_to_vanish(at.client_dir, db, days, soon=SOON) if _is_ours(at, db, one)]
    missing = [one for one in going if not one.held]
    keeps = f"The client keeps transcripts {plural(days, 'day')}"
    details = [_vanishing(one) for one in [*missing, *(one for one in going if one.held)]]
    if len(details) > NAMED:
        details[NAMED:] = [f"… and {len(details) - NAMED} more"]
    if not missing:
        rest = f"of those about to go, {len(going)} are held in full" if going else "none is about to go"
        return Check("retention", "ok", f"{keeps}; {rest}.", details=details)
    return Check(
        "retention",
        "warn",
        f"{keeps}; within {plural(SOON, 'day')} it deletes {plural(len(missing), 'transcript')} not held in full here"
        f" and {len(going) - len(missing)} that are.",
        "Run `endless import` to read them in, or raise `cleanupPeriodDays` in the client's settings.",
        details=details,
    )


def _is_ours(at: Context, db: sqlite3.Connection | None, one: Vanishing) -> bool:
    """Whether a transcript should be held: not one that was forgotten, is excluded, or is another program's."""
    if one.held:
        return True
    if "observer-sessions" in one.path.parent.name:
        return False
    if db is not None and is_forgotten(db, ClaudeCode.name, one.session_id):
        return False
    excluded = exclusion(at.settings.excluded_projects, at.home.data_dir)
    with contextlib.suppress(OSError):
        return not excluded(ClaudeCode().project(FileSource(one.path)))
    return True


def _vanishing(one: Vanishing) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(one.at))
    return f"{day}  {one.path}  {'held in full' if one.held else 'NOT held in full'}"


@contextlib.contextmanager
def _reading(at: Context) -> Iterator[sqlite3.Connection | None]:
    """A connection to the store, ``None`` when there is none that can be read."""
    db = None
    with contextlib.suppress(sqlite3.Error):
        db = open_reader(at.home.database) if at.home.database.exists() else None
    try:
        yield db
    finally:
        if db is not None:
            db.close()


def beside(at: Context) -> Check:
    """Who else works on compactions here."""
    there = look_beside(at.client_dir, at.home.data_dir)
    if down := stands_down(there, at.settings):
        return Check(
            "beside", "warn", f"Endless Mode hands nothing over here: {down}.",
            "Turn that off in claude-mem, or have both with CLAUDE_MEM_ENDLESS_BESIDE=always.",
        )  # fmt: skip
    if there.hands_over:
        return Check(
            "beside", "warn", f"Each compaction gets two handoffs: claude-mem hands over too ({there.hands_over}).",
            "That is what CLAUDE_MEM_ENDLESS_BESIDE=always says. With `auto` Endless Mode leaves it to claude-mem.",
        )  # fmt: skip
    if there.installed:
        version = f" {there.version}" if there.version else ""
        worker = f", its worker runs (pid {there.worker})" if there.worker else ""
        return Check(
            "beside", "ok", f"claude-mem{version} works here too ({', '.join(there.how)}{worker}); they do not mind each other."
        )  # fmt: skip
    if there.database is not None:
        return Check("beside", "ok", "There is a database of claude-mem; bottles draw on it, and it is only read.")
    return Check("beside", "ok", "Nobody else works on compactions here.")
