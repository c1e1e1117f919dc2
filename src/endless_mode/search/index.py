"""The full-text index: built after the fact, step by step, and never at ingest.

``search`` is an FTS5 table without a copy of the texts; the row of a message is twice its id, that of an observation
twice its id and one. What was indexed so far is two numbers, because ids only grow. Rows that change or go later take
their words with them by triggers, which need the old text at that moment; they fire on such changes alone, so an
ordinary insert costs nothing. An SQLite without FTS5 has no index, and the search looks through the texts themselves.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from itertools import chain

from msgspec import Struct

from endless_mode.store import Store

#: Rows to one transaction.
STEP = 400


class _Kind(Struct, frozen=True):
    """A table that is indexed: which of its columns, and what to add to twice the id."""

    table: str
    watched: str
    title: str
    body: str
    odd: int

    def values(self, row: str) -> str:
        """Row number, title and body of a row, as SQL."""
        return f"{row}.id * 2 + {self.odd}, {self.title.format(row=row)}, {self.body.format(row=row)}"


_KINDS = {
    "message": _Kind("messages", "text", "''", "{row}.text", 0),
    "observation": _Kind(
        "observations",
        "title, subtitle, narrative, files_read, files_modified",
        "{row}.title",
        "{row}.subtitle || char(10) || {row}.narrative || char(10) || {row}.files_read || {row}.files_modified",
        1,
    ),
}
_TABLES = (
    "CREATE VIRTUAL TABLE search USING fts5"
    "(title, body, content = '', tokenize = 'porter unicode61 remove_diacritics 2')",
    "CREATE TABLE search_until (kind TEXT PRIMARY KEY, id INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "INSERT INTO search_until VALUES ('message', 0), ('observation', 0)",
)


def _triggers(name: str, kind: _Kind) -> tuple[str, str]:
    indexed = f"old.id <= (SELECT id FROM search_until WHERE kind = '{name}')"
    take_out = f"INSERT INTO search (search, rowid, title, body) VALUES ('delete', {kind.values('old')});"
    # The highest ids of a table may be given out again once they are gone.
    lower = (
        f"UPDATE search_until SET id = min(id, (SELECT coalesce(max(id), 0) FROM {kind.table})) WHERE kind = '{name}';"
    )
    return (
        f"CREATE TRIGGER search_{name}_changed AFTER UPDATE OF {kind.watched} ON {kind.table} WHEN {indexed}"
        f" BEGIN {take_out} INSERT INTO search (rowid, title, body) VALUES ({kind.values('new')}); END",
        f"CREATE TRIGGER search_{name}_gone AFTER DELETE ON {kind.table} WHEN {indexed} BEGIN {take_out} {lower} END",
    )


def exists(db: sqlite3.Connection) -> bool:
    """Whether the index has been made."""
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'search_until'").fetchone() is not None


def ensure(db: sqlite3.Connection) -> bool:
    """Make the index's tables if they are missing; False when this SQLite has no FTS5."""
    if exists(db):
        return True
    db.execute("SAVEPOINT make_search")
    try:
        for statement in chain(_TABLES, *(_triggers(name, kind) for name, kind in _KINDS.items())):
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
    """How many rows the index does not hold yet."""
    counts = "SELECT count(*) FROM {} WHERE id > ?"
    return sum(db.execute(counts.format(kind.table), (until(db, name),)).fetchone()[0] for name, kind in _KINDS.items())


def step(db: sqlite3.Connection, rows: int = STEP) -> bool:
    """Index up to ``rows`` rows, inside the caller's transaction; True when there may be more."""
    if not ensure(db):
        return False
    left = rows
    for name in _KINDS:
        if left > 0:
            left -= _append(db, name, left)
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
    """Drop the words of rows that are gone from the index's own pages.

    FTS5 marks what is taken out and drops it when it merges; ``optimize`` merges everything.
    """
    if exists(db):
        db.execute("INSERT INTO search (search) VALUES ('optimize')")


def _append(db: sqlite3.Connection, name: str, rows: int) -> int:
    kind, start = _KINDS[name], until(db, name)
    fresh = [
        row for (row,) in db.execute(f"SELECT id FROM {kind.table} WHERE id > ? ORDER BY id LIMIT ?", (start, rows))
    ]
    if fresh:
        db.execute(
            f"INSERT INTO search (rowid, title, body) SELECT {kind.values('t')}"
            f" FROM {kind.table} t WHERE id > ? AND id <= ?",
            (start, fresh[-1]),
        )
        db.execute("UPDATE search_until SET id = ? WHERE kind = ?", (fresh[-1], name))
    return len(fresh)
