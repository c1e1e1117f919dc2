"""Forgetting: rows, bottles, archives, index; and tombstones, so that nothing of it is read in again.

By session, project or time whole sessions go. By a text the single messages, tool uses and observations go that hold
it, and the bottles of their sessions are made anew without it. The client's own transcripts are not ours and stay.

What is deleted is overwritten with zeros in the database (``secure_delete``), merged out of the index, and cut off the
write-ahead log; ``shrink`` then copies the database without its free pages. Blocks that the file system gave up are
beyond any program's reach.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct, field

from endless_mode.bottle.file import session_lock
from endless_mode.bottle.view import load_session
from endless_mode.bottle.write import write_bottle
from endless_mode.errors import BadRequest
from endless_mode.home import Home
from endless_mode.ingest.batch import title_key
from endless_mode.names import is_session_id
from endless_mode.search.index import purge
from endless_mode.store import Store

PLATFORM = "claude"


class Selection(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is to be forgotten; what is given must all hold. Times are milliseconds.

    ``project`` is a directory with those below. A session was active ``since``/``until`` when any of it falls into
    that time.
    """

    session: str = ""
    project: str = ""
    since: int | None = None
    until: int | None = None
    text: str = ""


class Doomed(Struct, rename="camel"):
    """A session of which something goes: everything (``whole``), or so many messages and tool uses.

    Of one that is not ``stored`` there is nothing here but bottles made from what others keep; it gets a tombstone, so
    that no other is made.
    """

    session: str
    project: str
    at: int | None
    messages: int
    events: int
    whole: bool
    stored: bool = True


class Forgot(Struct, rename="camel"):
    """What was, or would be, forgotten. ``files`` are bottles, archives and other copies in the home."""

    sessions: list[Doomed] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def plan(db: sqlite3.Connection, home: Home, selection: Selection) -> Forgot:
    """What would go; changes nothing.

    Raises:
        BadRequest: nothing was selected.
    """
    if selection == Selection():
        raise BadRequest(
            "nothing_selected", "Nothing says what to forget.", "Name a session, --project, --since, --until or --text."
        )
    doomed = [one for row in _sessions(db, selection) if (one := _doomed(db, row, selection.text)) is not None]
    if not doomed and selection == Selection(session=selection.session) and _may_be_elsewhere(db, selection.session):
        doomed = [Doomed(selection.session, "", None, 0, 0, whole=True, stored=False)]
    found = Forgot(doomed)
    for name in [*(one.session for one in doomed), *_successors(db, doomed)]:
        found.files += [str(path) for path in _files_of(home, name) if str(path) not in found.files]
    found.files += [str(path) for path in _copies(home, selection, doomed) if str(path) not in found.files]
    return found


def forget(store: Store, home: Home, selection: Selection, *, now: bool = False) -> Forgot:
    """Forget what the selection names, and return what that was.

    One transaction a session, so that others get their turn. ``now`` also copies the database without its free pages,
    which takes seconds a gigabyte and as much disk again while it runs.
    """
    found = store.read(lambda db: plan(db, home, selection))
    for one in found.sessions:
        with session_lock(home.run / "locks", one.session):
            if one.whole:
                store.write(partial(_forget_session, content_id=one.session))
            else:
                store.write(partial(_forget_text, content_id=one.session, text=selection.text))
    for path in found.files:
        Path(path).unlink(missing_ok=True)
    _render_again(store, home, found)
    store.write(purge)
    store.alone(lambda db: scrub(db, shrink=now))
    return found


def scrub(db: sqlite3.Connection, *, shrink: bool) -> None:
    """Leave no old page behind: copy the database without free pages (``shrink``), and cut the write-ahead log."""
    if shrink:
        db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


Rows = list[tuple[object, ...]]


def tombstones(db: sqlite3.Connection) -> tuple[Rows, Rows]:
    """Everything that was forgotten: sessions, and single things."""
    return db.execute("SELECT * FROM tombstones").fetchall(), db.execute("SELECT * FROM forgotten").fetchall()


def lay_tombstones(db: sqlite3.Connection, sessions: Rows, texts: Rows) -> None:
    """Let another store keep away the same."""
    db.executemany("INSERT OR IGNORE INTO tombstones VALUES (?, ?, ?, ?, ?)", sessions)
    db.executemany("INSERT OR IGNORE INTO forgotten VALUES (?, ?, ?)", texts)


# What is meant

_IN_TEXT = {
    "messages": "instr(text, :text) > 0",
    "tool_events": "instr(digest, :json) > 0 OR id IN (SELECT event_id FROM observations"
    " WHERE session_id = :session AND"
    " (instr(title, :text) > 0 OR instr(subtitle, :text) > 0 OR instr(narrative, :text) > 0 OR instr(run, :text) > 0"
    " OR instr(facts || concepts || files_read || files_modified, :json) > 0))",
    "summaries": "instr(text, :text) > 0",
}


def _sessions(db: sqlite3.Connection, chosen: Selection) -> list[sqlite3.Row]:
    return db.execute(
        "SELECT id, content_session_id, cwd, coalesce(last_at, started_at), title FROM sessions"
        " WHERE (:session = ''"
        " OR content_session_id = :session) AND (:project = '' OR cwd = :project OR"
        " substr(cwd, 1, length(:project) + 1) = :project || '/')"
        " AND (:since IS NULL OR coalesce(last_at, started_at) >= :since)"
        " AND (:until IS NULL OR coalesce(started_at, last_at) <= :until) ORDER BY id",
        {
            "session": chosen.session,
            "project": chosen.project.rstrip("/"),
            "since": chosen.since,
            "until": chosen.until,
        },
    ).fetchall()


def _may_be_elsewhere(db: sqlite3.Connection, content_id: str) -> bool:
    """Whether a session that is not stored can be known to others, and was not forgotten yet."""
    if not is_session_id(content_id):
        return False
    return db.execute("SELECT 1 FROM tombstones WHERE content_session_id = ?", (content_id,)).fetchone() is None


def _doomed(db: sqlite3.Connection, row: sqlite3.Row, text: str) -> Doomed | None:
    session, content_id, cwd, at, title = row
    counts = {}
    for table, condition in _IN_TEXT.items():
        where = f"session_id = :session AND ({condition})" if text else "session_id = :session"
        counts[table] = db.execute(f"SELECT count(*) FROM {table} WHERE {where}", _given(session, text)).fetchone()[0]
    if text and not any(counts.values()) and text not in title:
        return None
    return Doomed(content_id, cwd, at, counts["messages"], counts["tool_events"], not text)


def _given(session: int, text: str) -> dict[str, object]:
    """A text as it stands in columns, and as it stands inside JSON."""
    return {"session": session, "text": text, "json": msgspec.json.encode(text).decode()[1:-1]}


def _successors(db: sqlite3.Connection, doomed: list[Doomed]) -> list[str]:
    """Sessions that were begun with the closing state of one that goes: their bottles quote it."""
    found: list[str] = []
    for one in doomed:
        rows = db.execute("SELECT content_session_id FROM sessions WHERE predecessor = ?", (one.session,))
        found += [content_id for (content_id,) in rows]
    return found


def _files_of(home: Home, content_id: str) -> list[Path]:
    """A session's bottle, archived bottles and leftovers of writing them."""
    name = f"{content_id}.md"
    found = [home.bottles / name, *home.bottles.glob(f".{name}.*.tmp")]
    found += [path for path in home.archive.glob(f"*-{name}") if path.name.split("-", 1)[-1] == name]
    return [path for path in found if path.exists()]


def _copies(home: Home, chosen: Selection, doomed: list[Doomed]) -> list[Path]:
    """Files that are no single session's but may hold what goes: databases put aside, kept events, bottles."""
    found = sorted(home.root.glob(f"{home.database.name}.damaged-*")) if doomed or chosen.text else []
    marks = [one.session.encode() for one in doomed]
    places = list(home.spool.glob("*"))
    if chosen.text:
        marks += [chosen.text.encode(), msgspec.json.encode(chosen.text)[1:-1]]
        places += [*home.bottles.glob("*.md"), *home.archive.glob("*.md"), *home.bottles.glob(".*.tmp")]
    for path in places:
        with contextlib.suppress(OSError):
            data = path.read_bytes() if path.is_file() else b""
            if any(mark in data for mark in marks):
                found.append(path)
    return found


# Doing it


def _forget_session(db: sqlite3.Connection, content_id: str) -> None:
    db.execute(
        "INSERT INTO tombstones (platform_source, content_session_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (PLATFORM, content_id, _now()),
    )
    # What a successor was told of it goes too.
    db.execute(
        "DELETE FROM summaries WHERE key = 'predecessor'"
        " AND session_id IN (SELECT id FROM sessions WHERE predecessor = ?)",
        (content_id,),
    )
    db.execute("UPDATE sessions SET predecessor = '' WHERE predecessor = ?", (content_id,))
    db.execute("DELETE FROM sessions WHERE content_session_id = ?", (content_id,))


def _forget_text(db: sqlite3.Connection, content_id: str, text: str) -> None:
    session, title = db.execute("SELECT id, title FROM sessions WHERE content_session_id = ?", (content_id,)).fetchone()
    given = _given(session, text)
    for table, column in (("messages", "key"), ("summaries", "key"), ("tool_events", "tool_use_id")):
        where = f"session_id = :session AND ({_IN_TEXT[table]})"
        keys = [key for (key,) in db.execute(f"SELECT {column} FROM {table} WHERE {where}", given)]
        for key in keys:
            _keep_away(db, content_id, key)
        db.executemany(f"DELETE FROM {table} WHERE session_id = ? AND {column} = ?", [(session, key) for key in keys])
    if text in title:
        _keep_away(db, content_id, title_key(title))
        db.execute("UPDATE sessions SET title = '' WHERE id = ?", (session,))


def _keep_away(db: sqlite3.Connection, content_id: str, key: str) -> None:
    """A tombstone for one thing. The client's ids are the same in every copy of a session; places in a file are not."""
    own = content_id if key.startswith(("@", "!@", "predecessor")) else ""
    db.execute("INSERT INTO forgotten VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (own, key, _now()))


def _render_again(store: Store, home: Home, found: Forgot) -> None:
    """Bottles that went because of a part of them come back without it."""
    gone = {Path(name).name for name in found.files}
    rows = store.read(lambda db: db.execute("SELECT id, content_session_id FROM sessions").fetchall())
    for session, content_id in rows:
        if f"{content_id}.md" in gone and store.read(partial(load_session, session=session)).gen > 0:
            write_bottle(store, session, home.bottles, home.run / "locks")


def _now() -> int:
    return int(time.time() * 1000)
