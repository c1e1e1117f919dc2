"""Tables of unknown shape: rows by column name, ``None`` for columns that are not there."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

#: Rows of one table that are read for one question; a session has thousands at most.
MOST_ROWS = 50_000


class Row(Struct, frozen=True):
    """One row. ``key`` is its id."""

    key: int
    cells: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.cells.get(name)


class Tables:
    """Reads tables of one connection, and remembers in :attr:`problems` what could not be read."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._columns: dict[str, tuple[str, ...]] = {}
        self.problems: list[str] = []
        names = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self._names = {name for (name,) in names}

    def columns(self, table: str) -> tuple[str, ...]:
        """The names of a table's columns, none when there is no such table."""
        if table not in self._columns:
            found = self._db.execute(f'PRAGMA table_info("{table}")').fetchall() if table in self._names else []
            self._columns[table] = tuple(str(row[1]) for row in found)
        return self._columns[table]

    def rows(self, table: str, where: Mapping[str, Any]) -> list[Row]:
        """Rows whose columns have the given values, in the order of their ids; damage ends the list early.

        A table or a column of the condition that is not there gives none.
        """
        columns = self.columns(table)
        if not columns or not all(name in columns for name in where):
            return []
        wanted = ", ".join(map(_quoted, columns))
        condition = " AND ".join(f"{_quoted(name)} IS ?" for name in where) or "1"
        query = f'SELECT rowid, {wanted} FROM "{table}" WHERE {condition} LIMIT {MOST_ROWS}'
        found: list[Row] = []
        try:
            for rowid, *values in self._db.execute(query, tuple(where.values())):
                cells = dict(zip(columns, values, strict=True))
                key = cells.get("id")
                found.append(Row(key if isinstance(key, int) else rowid, cells))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            self.problems.append(f"a part of claude-mem's table {table} could not be read")
        return sorted(found, key=lambda row: row.key)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
