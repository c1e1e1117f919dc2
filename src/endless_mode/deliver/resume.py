"""Going on with a session in a fresh context.

The new session is known before it begins: the client is started with an id of our choosing, and the handoff waits for
exactly that id. So it cannot go to another session that starts in the same directory at the same time, nothing is typed
in the user's name, and nothing stays in the system prompt. The first hook of the new session claims it.

The new session remembers its predecessor: its bottle begins with where that one stood, and names its bottle.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from pathlib import Path

from msgspec import Struct

from endless_mode.bottle.entries import Document
from endless_mode.bottle.file import bottle_path, read_header
from endless_mode.bottle.parse import parse
from endless_mode.bottle.predecessor import KEY
from endless_mode.bottle.session import SessionDocument, gap
from endless_mode.bottle.text import BottleText
from endless_mode.bottle.view import SessionRow, load_session
from endless_mode.bottle.write import Bottle
from endless_mode.clients.claude_code import ClaudeCode
from endless_mode.deliver.claims import new_marker
from endless_mode.deliver.desk import Desk
from endless_mode.deliver.handoff import compose, plan_budget, task_of
from endless_mode.deliver.ladder import best_document, state_of, task_in
from endless_mode.deliver.reading import PLATFORM
from endless_mode.errors import BadRequest
from endless_mode.home import Home
from endless_mode.ingest.ingest import ensure_session
from endless_mode.store import Store

#: What such a delivery is bound to instead of a compaction's boundary.
BOUND = "resume"


class Resumed(Struct, frozen=True, rename="camel"):
    """A session that is about to begin with another's handoff. ``cwd`` is the directory to begin it in."""

    session: str
    predecessor: str
    cwd: str
    bottle_path: str
    mode: str


def take_up(desk: Desk, session_id: str, config_dir: Path | None) -> Resumed:
    """Name a new session and let a session's handoff wait for it, by whatever rung of the ladder holds.

    Raises:
        BadRequest: nothing is known of the session.
        Forgotten: the user had it forgotten.
    """
    path = _transcript(desk.store, session_id, config_dir)
    if path is None:  # a name nobody knows leaves no row behind
        _best(desk, session_id, config_dir)
    at = desk.tail(session_id, path)
    made = _best(desk, session_id, config_dir)
    bottle = desk.render(at, config_dir)
    return _waits(desk.store, at, bottle, made)


def _best(desk: Desk, session_id: str, config_dir: Path | None) -> Document | SessionDocument:
    best = best_document(desk.home, desk.store, session_id, config_dir=config_dir, enriched=desk.settings.enrich)
    if best.document is None:
        raise BadRequest(
            "no_such_session", f"Nothing is known of session {session_id}: {best.why}.", "See `endless sessions`.", 404
        )
    return best.document


def claim(desk: Desk, session_id: str, event: str) -> str:
    """The handoff that waits for this session, once, whichever hook comes first; empty for any other session."""
    store = desk.store
    if store.read(lambda db: db.execute(_WAITS, (PLATFORM, session_id, BOUND)).fetchone()) is None:
        return ""
    row = store.write(lambda db: db.execute(_CLAIM, (_now(), event, BOUND, PLATFORM, session_id)).fetchone())
    if row is None:
        return ""
    delivery, marker, predecessor = row
    at = store.read(lambda db: _session(db, predecessor))
    if at is None:
        return ""
    bottle = _on_disk(store, desk.home, at)
    state, task, widest = store.read(lambda db: (_state(db, delivery), task_of(db, at), _widest(db, at)))
    if not task and bottle is not None:
        task = task_in(parse(bottle.text.whole()))
    made = compose(bottle, state, task, plan_budget(widest, desk.settings.plan_tokens), marker)
    tokens = sum(page.tokens for page in made.plan)
    noted = (bottle.mode if bottle else "state", len(made.text), tokens, delivery)
    store.write(
        lambda db: db.execute("UPDATE deliveries SET mode = ?, units = ?, plan_tokens = ? WHERE id = ?", noted).rowcount
    )
    return made.text


_WAITS = """
SELECT 1 FROM deliveries d JOIN sessions s ON s.id = d.session_id
WHERE s.platform_source = ? AND s.content_session_id = ? AND d.boundary_key = ? AND d.consumed_at IS NULL
"""
_CLAIM = """
UPDATE deliveries SET consumed_at = ?, consumed_offset = 0, event = ? WHERE consumed_at IS NULL AND boundary_key = ?
  AND session_id = (SELECT id FROM sessions WHERE platform_source = ? AND content_session_id = ?)
RETURNING id, marker, (SELECT predecessor FROM sessions WHERE sessions.id = deliveries.session_id)
"""


def _waits(store: Store, at: SessionRow, bottle: Bottle, made: Document | SessionDocument) -> Resumed:
    """Make the new session's row, with what it will need of its predecessor, and arm its handoff."""
    # claude-mem has a project's name alone, which is no directory.
    place = made.header.project if Path(made.header.project).is_absolute() else ""
    new, cwd = str(uuid.uuid4()), at.cwd or place
    state = state_of(made)

    def write(db: sqlite3.Connection) -> None:
        now = _now()
        row = ensure_session(db, PLATFORM, new)
        db.execute("UPDATE sessions SET predecessor = ?, cwd = ? WHERE id = ?", (at.content_session_id, cwd, row))
        db.execute(
            "INSERT INTO summaries (session_id, key, gen, offset, idx, who, text, at) VALUES (?, ?, 0, -1, 0, ?, ?, ?)",
            (row, KEY, f"Endless Mode: where session {at.content_session_id} stood", state, now),
        )
        db.execute(
            "INSERT INTO deliveries (session_id, marker, armed_at, armed_offset, gap, boundary_key)"
            " VALUES (?, ?, ?, 0, ?, ?)",
            (row, new_marker(), now, bottle.gap, BOUND),
        )

    store.write(write)
    return Resumed(new, at.content_session_id, cwd, str(bottle.path), bottle.mode)


def _transcript(store: Store, session_id: str, config_dir: Path | None) -> Path | None:
    """A session's transcript where it was last seen, or else under the client's directory."""
    ask = (
        "SELECT path FROM transcripts t JOIN sessions s ON s.id = t.session_id"
        " WHERE content_session_id = ? AND agent = ''"
    )
    row = store.read(lambda db: db.execute(ask, (session_id,)).fetchone())
    if row is not None and Path(row[0]).exists():
        return Path(row[0])
    return ClaudeCode().find_transcript(session_id, config_dir) if config_dir is not None else None


def _session(db: sqlite3.Connection, content_id: str) -> SessionRow | None:
    row = db.execute(
        "SELECT id FROM sessions WHERE platform_source = ? AND content_session_id = ?", (PLATFORM, content_id)
    ).fetchone()
    return load_session(db, row[0]) if row else None


def _state(db: sqlite3.Connection, delivery: int) -> str:
    """Where the predecessor stood when the handoff was armed."""
    row = db.execute(
        "SELECT text FROM summaries m JOIN deliveries d ON d.session_id = m.session_id WHERE d.id = ? AND m.key = ?",
        (delivery, KEY),
    ).fetchone()
    return str(row[0]) if row else ""


def _widest(db: sqlite3.Connection, at: SessionRow) -> int:
    """The largest context the session had: the new one starts with room for as much."""
    (most,) = db.execute("SELECT max(pre_tokens) FROM boundaries WHERE session_id = ?", (at.id,)).fetchone()
    return max(at.context_tokens, most or 0)


def _on_disk(store: Store, home: Home, at: SessionRow) -> Bottle | None:
    """The bottle that :func:`take_up` left: rendering it once more could take longer than the hook has."""
    path = bottle_path(home.bottles, at.content_session_id)
    header = read_header(path)
    if header is None:
        return None
    return Bottle(path, header.mode, at.offset, store.read(lambda db: gap(db, at.id)), BottleText(path))


def _now() -> int:
    return int(time.time() * 1000)
