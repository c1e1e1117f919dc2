"""What a store holds, table by table, whatever numbers its rows have: two stores with the same contents are equal."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

#: Row numbers of other tables, and what they stand for.
_NAMED = {
    "session_id": "(SELECT content_session_id FROM sessions s WHERE s.id = t.session_id)",
    "event_id": "(SELECT tool_use_id FROM tool_events e WHERE e.id = t.event_id)",
    "observation_id": "(SELECT e.tool_use_id || '/' || o.source || '/' || o.ordinal FROM observations o"
    " JOIN tool_events e ON e.id = o.event_id WHERE o.id = t.observation_id)",
}
#: When it was made, and the index, whose pages depend on how it was built.
_PASSED_OVER = ("migrations", "meta", "search", "sqlite_")


def contents(database: Path) -> dict[str, tuple[int, str]]:
    """For each table how many rows it has and a digest of them, in which their order and numbers play no part.

    The full-text index counts as a table ``search``: the rows that it holds, and what it finds for some words.
    """
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        found = {name: _table(db, name) for name in names if not name.startswith(_PASSED_OVER)}
        if "search_until" in names:
            found["search"] = _index(db)
        return found


def _table(db: sqlite3.Connection, name: str) -> tuple[int, str]:
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
    wanted = ", ".join(_NAMED.get(column, f"t.{column}") for column in columns if column != "id")
    count = total = 0
    for row in db.execute(f"SELECT {wanted} FROM {name} t"):
        count += 1
        total += int.from_bytes(blake2b(repr(row).encode("utf-8", "replace"), digest_size=16).digest(), "big")
    return count, f"{total % (1 << 128):032x}"


def _index(db: sqlite3.Connection) -> tuple[int, str]:
    (rows,) = db.execute("SELECT count(*) FROM search_docsize").fetchone()
    hits = [
        db.execute("SELECT count(*) FROM search WHERE search MATCH ?", (word,)).fetchone()[0]
        for word in ("test", "error", "file", "python", "the")
    ]
    return rows, repr(hits)
