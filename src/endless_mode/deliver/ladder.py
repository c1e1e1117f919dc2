"""The ladder: the best bottle there is of a session, whatever has survived of it.

1. ``transcript``: the transcript is there; it is read into the store before.
2. ``stored``: it is gone, the store has its conversation (or, where that was given up and nobody else has any of it,
   what was done alone).
3. ``claude-mem``: claude-mem's database has prompts or observations of the session; what the client's record of typed
   prompts has besides stands among them.
4. ``history``: the client's record alone has prompts of it.
5. ``nothing``: then the caller has the project's timeline, or keeps silent.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from msgspec import Struct

from endless_mode.bottle.closing import part_heading
from endless_mode.bottle.entries import MODE_FULL, MODE_STORED, Document, Speech
from endless_mode.bottle.session import SessionDocument, session_document
from endless_mode.claude_mem.enrich import enrich
from endless_mode.claude_mem.reader import PLATFORM, ClaudeMem, default_path
from endless_mode.claude_mem.reconstruct import reconstructed
from endless_mode.claude_mem.session import MemSession
from endless_mode.claude_mem.snapshot import ClaudeMemError
from endless_mode.clients.claude_code.history import Record, record
from endless_mode.deliver.handoff import task_line
from endless_mode.deliver.kept_work import kept_work, woven
from endless_mode.deliver.remembered import remembered
from endless_mode.home import Home
from endless_mode.model import ASKING
from endless_mode.paths import client_of

T = TypeVar("T")

Rung = Literal["transcript", "stored", "claude-mem", "history", "nothing"]


class Readable(Protocol):
    """A store, as far as it is read here."""

    def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``fn`` on a connection."""


class Best(Struct, frozen=True):
    """The best document of a session (``None`` on rung ``nothing``), and in plain words why no better one.

    ``session`` is the row id in the store, when it is known there.
    """

    document: Document | SessionDocument | None
    rung: Rung
    why: str
    session: int | None = None


def best_document(
    home: Home,
    store: Readable | None,
    content_session_id: str,
    *,
    config_dir: Path | None = None,
    enriched: bool = True,
    now: int | None = None,
) -> Best:
    """Walk down the ladder for a session; a transcript must have been read into ``store`` before.

    What the store has is read while it is written: call within a read of it that goes on until then.

    What claude-mem has is never a reason to fail: a database that cannot be used counts as none, and ``why`` says so.

    Args:
        config_dir: the client's configuration directory (default: where the transcript was, else the usual one).
        enriched: show claude-mem's observations beside ours (the setting ``ENRICH``).
        now: the render stamp in milliseconds, the present by default.
    """
    known = _Known() if store is None else store.read(lambda db: _known(db, content_session_id))
    if store is not None and known.row is not None and known.holds and known.talk:
        made = store.read(lambda db: session_document(db, known.row or 0, now))
        return _own(_enriched(home, made) if enriched and not known.spared else made, known.row)
    if known.forgotten:
        return Best(None, "nothing", "the session was forgotten on request", known.row)
    left = _left(home, store, content_session_id, known, config_dir)
    if store is not None and known.row is not None and (known.holds or known.read):
        row = known.row
        if left.session is not None and known.holds and left.session.prompts:
            whole = woven(reconstructed(left.session, now), store.read(lambda db: kept_work(db, row)))
            return Best(whole, left.rung, f"what was said was given up when the transcript went; {left.why}", row)
        if left.session is None or known.holds:
            # A transcript in which nobody has said anything yet, or what was said is gone everywhere.
            return _own(store.read(lambda db: session_document(db, row, now)), row)
    if left.session is None:
        missing = f"no transcript, no stored conversation, {left.why}"
        return Best(None, "nothing", missing, known.row)
    why = f"no transcript and no stored conversation; {left.why}"
    return Best(reconstructed(left.session, now), left.rung, why, known.row)


def _own(made: Document | SessionDocument, row: int) -> Best:
    if made.header.mode == MODE_FULL:
        return Best(made, "transcript", "the transcript is there", row)
    if made.header.mode == MODE_STORED:
        return Best(made, "stored", "the transcript is gone; its conversation was stored", row)
    return Best(made, "stored", "the transcript is gone and what was said with it; what was done was stored", row)


def holds_something(home: Home, store: Readable, content_session_id: str, *, config_dir: Path | None = None) -> bool:
    """Whether :func:`best_document` would find anything, at the cost of a look."""
    known = store.read(lambda db: _known(db, content_session_id))
    if known.holds or known.forgotten:
        return known.holds
    return _left(home, store, content_session_id, known, config_dir).session is not None


def state_of(made: Document | SessionDocument) -> str:
    """Where things stand, as far as it goes into a handoff: the closing part before its working set."""
    return made.closing.partition(f"\n\n{part_heading(1)}")[0]


def task_in(made: Document | SessionDocument) -> str:
    """The current task in one line: the last thing the user asked for."""
    if isinstance(made, SessionDocument):
        return task_line(made.last_request())
    asked = (e for e in reversed(made.entries) if isinstance(e, Speech) and e.role == "user" and e.kind in ASKING)
    last = next(asked, None)
    return task_line(last.text if last else "")


def database(home: Home) -> Path:
    """claude-mem's database for a home of ours: in the same data directory, else where claude-mem keeps it."""
    beside = home.data_dir / "claude-mem.db"
    return beside if _is_there(beside) else default_path()


def _is_there(path: Path) -> bool:
    """Whether a file exists; one that may not be looked at does, and is told of when it is read."""
    try:
        return path.exists()
    except OSError:
        return True


class _Known(Struct, frozen=True):
    """What the store knows of a session: its row, whether anything is in it, whether it was to be forgotten.

    ``talk``: nothing that was said was given up. ``read``: a transcript of it was read. ``spared``: the user had texts
    forgotten since it began, which others may have too. ``path``: where its transcript is or was.
    """

    row: int | None = None
    holds: bool = False
    talk: bool = False
    read: bool = False
    forgotten: bool = False
    spared: bool = False
    path: str = ""


def _known(db: sqlite3.Connection, content_id: str) -> _Known:
    gone = db.execute("SELECT 1 FROM tombstones WHERE content_session_id = ?", (content_id,)).fetchone() is not None
    row = db.execute(
        "SELECT id, EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id),"
        " EXISTS (SELECT 1 FROM tool_events e WHERE e.session_id = s.id), started_at,"
        " (SELECT path FROM transcripts t WHERE t.session_id = s.id AND t.agent = '') FROM sessions s"
        " WHERE content_session_id = ? ORDER BY platform_source <> ?, id LIMIT 1",
        (content_id, PLATFORM),
    ).fetchone()
    if row is None:
        return _Known(forgotten=gone)
    number, said, done, began, path = row
    there = path is not None and Path(path).exists()
    return _Known(
        number,
        bool(said or done),
        bool(said) or there,
        path is not None,
        gone,
        gone or forgot_since(db, began),
        path or "",
    )


def forgot_since(db: sqlite3.Connection, began: int | None) -> bool:
    """Whether the user had texts forgotten since a session began."""
    try:
        found = db.execute("SELECT 1 FROM forgotten WHERE at >= ? LIMIT 1", (began or 0,)).fetchone()
    except sqlite3.OperationalError:
        # A database of an older version, in which nothing could be forgotten by its text.
        return False
    return found is not None


class _Left(Struct, frozen=True):
    """What others have of a session, and who, or why nothing of it can be used."""

    session: MemSession | None
    rung: Rung
    why: str


def _left(home: Home, store: Readable | None, content_id: str, known: _Known, config_dir: Path | None) -> _Left:
    """What claude-mem's database and the client's record of typed prompts have, as one session."""
    told, problem = _told(home, content_id)
    told = None if told is None or told.empty else told
    typed = next((found for place in _clients(known, config_dir) if (found := record(place, content_id)).prompts), None)
    whole = remembered(told, typed or Record(), content_id)
    if whole is None:
        nothing = problem or "nothing of it in the database of claude-mem"
        return _Left(None, "nothing", f"{nothing}, nothing in the client's record of typed prompts")
    began = whole.started
    if known.spared or (store is not None and store.read(lambda db: forgot_since(db, began))):
        why = "texts were forgotten on request since it began, which the copies others have may hold"
        return _Left(None, "nothing", why)
    both = " and the client's record of typed prompts" if typed else ""
    if told is not None:
        return _Left(whole, "claude-mem", f"the database of claude-mem{both} {'have' if both else 'has'} the session")
    return _Left(whole, "history", "the client's record of typed prompts has what the user typed, nothing else")


def _clients(known: _Known, config_dir: Path | None) -> list[Path]:
    """Configuration directories whose record may know the session, each once."""
    places = [config_dir] if config_dir is not None else []
    if known.path and (place := client_of(Path(known.path))) is not None:
        places.append(place)
    if not places:
        places.append(Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude"))
    return list(dict.fromkeys(places))


def _told(home: Home, content_id: str) -> tuple[MemSession | None, str]:
    """What claude-mem has of a session, and what is wrong with its database if anything is."""
    path = database(home)
    if not _is_there(path):
        return None, "no claude-mem database"
    try:
        return ClaudeMem(path).session(content_id), ""
    except ClaudeMemError as error:
        return None, f"claude-mem's database cannot be used ({error.code})"


def _enriched(home: Home, made: SessionDocument) -> Document | SessionDocument:
    told, _ = _told(home, made.header.content_session_id)
    return made if told is None or told.empty else enrich(made.whole(), told)
