"""Noticing that rows changed which somebody remembers.

What was made of a session's rows up to a place in its transcript may be kept as long as none of them changes. A watch
is a row in a temporary table of the one writing connection; temporary triggers remove it at the first change before its
place, whoever makes it. They cost nothing until the first watch, and little for sessions nobody watches.

To keep what is made from a read: :meth:`Watch.begin` first, then read, then :meth:`Watch.settle` with the place up to
which it holds; a change in between ends the watch at once.
"""

from __future__ import annotations

import sqlite3
from functools import partial

from endless_mode.store.store import Store

#: A place behind every other.
_ANYWHERE = (1 << 63) - 1

#: A number is never given twice: a watch that has ended must not come back as another.
_TABLE = "CREATE TEMP TABLE watched (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id INTEGER NOT NULL, until INTEGER NOT NULL)"

#: Rows that stand at a place of their own: table → columns by which a row comes or goes that is not new.
_PLACED = {"messages": ("rewound", "withdrawn"), "tool_events": ("rewound",), "boundaries": ("rewound",)}


def _triggers() -> list[str]:
    made = []
    for table, columns in _PLACED.items():
        turned = " OR ".join(f"new.{column} <> old.{column}" for column in columns)
        # A branch that is left or taken up again shows at other places than its rows.
        made += [
            _trigger(table, "INSERT", "new", "until > new.offset"),
            _trigger(table, "DELETE", "old", "until > old.offset"),
            _trigger(table, "UPDATE", "new", f"until > min(old.offset, new.offset) OR {turned}"),
        ]
    for change, row in (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old")):
        place = f"(SELECT offset FROM main.tool_events WHERE id = {row}.event_id)"
        made.append(_trigger("observations", change, row, f"until > coalesce({place}, -1)"))
        made.append(_trigger("summaries", change, row, "1"))
    return made


def _trigger(table: str, change: str, row: str, told: str) -> str:
    mine = f"session_id = {row}.session_id"
    return (
        f"CREATE TEMP TRIGGER watch_{table}_{change.lower()} AFTER {change} ON main.{table}"
        f" WHEN EXISTS (SELECT 1 FROM watched WHERE {mine})"
        f" BEGIN DELETE FROM watched WHERE {mine} AND ({told}); END"
    )


class Watch:
    """Watches over the sessions of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, session: int) -> int:
        """Watch everything of a session from now on; returns the watch's number."""
        return self._store.write(partial(_begin, session=session))

    def settle(self, watch: int, until: int) -> bool:
        """Watch from now on only what stands before ``until``; False when something has changed already."""
        return self._store.write(lambda db: db.execute(_SETTLE, (until, watch)).rowcount > 0)

    def holds(self, watch: int) -> bool:
        """Whether nothing has changed."""
        return self._store.write(lambda db: db.execute(_HOLDS, (watch,)).fetchone() is not None)

    def end(self, watch: int) -> None:
        """Watch no longer."""
        self._store.write(lambda db: db.execute(_END, (watch,)).rowcount)


_SETTLE = "UPDATE watched SET until = ? WHERE id = ?"
_HOLDS = "SELECT 1 FROM watched WHERE id = ?"
_END = "DELETE FROM watched WHERE id = ?"


def _begin(db: sqlite3.Connection, session: int) -> int:
    there = db.execute("SELECT 1 FROM sqlite_temp_master WHERE name = 'watched'").fetchone()
    if there is None:
        for statement in (_TABLE, *_triggers()):
            db.execute(statement)
    row = db.execute("INSERT INTO watched (session_id, until) VALUES (?, ?)", (session, _ANYWHERE))
    assert row.lastrowid is not None
    return row.lastrowid
