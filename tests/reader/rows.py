"""The whole store as plain rows, to compare two stores."""

from __future__ import annotations

import sqlite3
from typing import Any

from endless_mode.store import Store

#: What tells how the rows came, not what they say: the generation (how often a file was found truncated or replaced),
#: where the file lay, what the reader remembers (it forgets second copies it met in an earlier process), and
#: counters of the last look alone.
HOW = {"gen", "device", "inode", "path", "state", "lines", "objects", "skipped"}
#: Tables that do not come from transcripts.
OTHER = {"migrations", "sqlite_sequence", "sqlite_stat1"}


def rows(store: Store, live: bool = False) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table without the columns of :data:`HOW`; ``live`` leaves out rows of files since replaced."""
    return store.read(lambda db: _rows(db, live))


def _rows(db: sqlite3.Connection, live: bool) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        if table in OTHER:
            continue
        columns = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]
        shown = [c for c in columns if c not in HOW]
        where = ""
        if live and "gen" in columns:
            where = f" WHERE gen = (SELECT max(gen) FROM transcripts t WHERE t.session_id = {table}.session_id)"
        elif live and table == "observations":
            where = (
                " WHERE event_id IN (SELECT id FROM tool_events e WHERE gen ="
                " (SELECT max(gen) FROM transcripts t WHERE t.session_id = e.session_id))"
            )
        found[table] = sorted(db.execute(f"SELECT {', '.join(shown)} FROM {table}{where}").fetchall(), key=repr)
    return found
