"""The full-text index: built after the fact, step by step, and never at ingest.

``search`` is an FTS5 table; the row of a message is twice its id, that of an observation twice its id and one. What was
indexed so far is two numbers (ids only grow); what has changed or gone since is written down by triggers that fire on
such changes alone, so an ordinary insert costs nothing. An SQLite without FTS5 has no index, and the search looks
through the texts themselves.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from endless_mode.store import Store

#: Rows to one transaction.
STEP = 400

_TABLES = (
    "CREATE VIRTUAL TABLE search USING fts5(title, body, tokenize = 'porter unicode61 remove_diacritics 2')",
    "CREATE TABLE search_stale (row INTEGER PRIMARY KEY) STRICT",
    "CREATE TABLE search_until (kind TEXT PRIMARY KEY, id INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "INSERT INTO search_until VALUES ('message', 0), ('observation', 0)",
    "CREATE TRIGGER search_message_changed AFTER UPDATE OF text ON messages WHEN old.text <> new.text"
    " BEGIN INSERT OR IGNORE INTO search_stale VALUES (old.id * 2); END",
    "CREATE TRIGGER search_message_gone AFTER DELETE ON messages BEGIN INSERT OR IGNORE INTO search_stale VALUES (old.id * 2); END",
    "CREATE TRIGGER search_observation_changed AFTER UPDATE OF title, narrative ON observations"
    " WHEN old.title <> new.title OR old.narrative <> new.narrative"
    " BEGIN INSERT OR IGNORE INTO search_stale VALUES (old.id * 2 + 1); END",
    "CREATE TRIGGER search_observation_gone AFTER DELETE ON observations"
    " BEGIN INSERT OR IGNORE INTO search_stale VALUES (old.id * 2 + 1); END",
)
_TEXTS = {
    "message": ("messages", "'', text", 0),
    "observation": ("observations", "title, subtitle || char(10) || narrative || char(10) || files_read || files_modified", 1),
}


def exists(db: sqlite3.Connection) -> bool:
    """Whether the index has been made."""
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'search_until'").fetchone() is not None


def ensure(db: sqlite3.Connection) -> bool:
    """Make the index's tables if they are missing; False when this SQLite has no FTS5."""
    if exists(db):
        return True
    db.execute("SAVEPOINT make_search")
    try:
        for statement in _TABLES:
            db.execute(statement)
    except sqlite3.OperationalError:
        db.execute("ROLLBACK TO make_search")
        return False
    finally:
        db.execute("RELEASE make_search")
    return True


def until(db: sqlite3.Connection, kind: str) -> int:
    """The highest id of a kind that is indexed (0: none, or no index)."""
    if not exists(db):
        return 0
    return int(db.execute("SELECT id FROM search_until WHERE kind = ?", (kind,)).fetchone()[0])


def missing(db: sqlite3.Connection) -> int:
    """How many rows the index does not hold as they are now."""
    count = 0
    for kind, (table, _, _) in _TEXTS.items():
        count += db.execute(f"SELECT count(*) FROM {table} WHERE id > ?", (until(db, kind),)).fetchone()[0]
    if exists(db):
        count += db.execute("SELECT count(*) FROM search_stale").fetchone()[0]
    return count


def step(db: sqlite3.Connection, rows: int = STEP) -> bool:
    """Index up to ``rows`` rows, inside the caller's transaction; True when there may be more."""
    if not ensure(db):
        return False
    left = rows - _refresh(db, rows)
    for kind in _TEXTS:
        if left > 0:
            left -= _append(db, kind, left)
    return left <= 0


def build(store: Store, seconds: float = float("inf"), pause: Callable[[], None] = lambda: None) -> bool:
    """Index what is missing, for at most ``seconds``; ``pause`` is called between steps. True when nothing is left."""
    if not store.read(missing):
        return True
    end = time.monotonic() + seconds
    while store.write(step):
        if time.monotonic() >= end:
            return False
        pause()
    return True


def purge(db: sqlite3.Connection) -> None:
    """Take out of the index everything that is gone from the store, down to its last trace in the index's own pages.

    FTS5 marks what is deleted and drops it when it merges; ``optimize`` merges everything.
    """
    if not exists(db):
        return
    while _refresh(db, STEP):
        pass
    db.execute("INSERT INTO search (search) VALUES ('optimize')")


def _refresh(db: sqlite3.Connection, rows: int) -> int:
    """Bring up to date what changed or went since it was indexed; return how many rows that were."""
    stale = [row for (row,) in db.execute("SELECT row FROM search_stale LIMIT ?", (rows,))]
    for row in stale:
        table, texts, odd = _TEXTS["observation" if row % 2 else "message"]
        db.execute("DELETE FROM search WHERE rowid = ?", (row,))
        db.execute(
            f"INSERT INTO search (rowid, title, body) SELECT id * 2 + {odd}, {texts} FROM {table} WHERE id = ? AND id <= ?",
            (row // 2, until(db, "observation" if odd else "message")),
        )
        db.execute("DELETE FROM search_stale WHERE row = ?", (row,))
    return len(stale)


def _append(db: sqlite3.Connection, kind: str, rows: int) -> int:
    table, texts, odd = _TEXTS[kind]
    # The highest ids may have gone, and are given out again then.
    (newest,) = db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
    start = min(until(db, kind), newest)
    fresh = [row for (row,) in db.execute(f"SELECT id FROM {table} WHERE id > ? ORDER BY id LIMIT ?", (start, rows))]
    end = fresh[-1] if fresh else start
    db.execute(
        f"INSERT INTO search (rowid, title, body) SELECT id * 2 + {odd}, {texts} FROM {table} WHERE id > ? AND id <= ?",
        (start, end),
    )
    db.execute("UPDATE search_until SET id = ? WHERE kind = ?", (end, kind))
    return len(fresh)
