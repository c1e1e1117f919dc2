"""What an error of the database means for who holds it."""

from __future__ import annotations

import sqlite3

from endless_mode.store.store import StoreError

_CORRUPT, _NOT_A_DATABASE, _CANNOT_OPEN, _IO_ERROR = 11, 26, 14, 10
_READONLY_DBMOVED = 8 | 4 << 8


def is_damage(error: BaseException) -> bool:
    """Whether the database's content is wrong, or may be: it is worth a close look."""
    return isinstance(error, sqlite3.Error) and _code(error) & 0xFF in (_CORRUPT, _NOT_A_DATABASE, _IO_ERROR)


def needs_reopening(error: BaseException) -> bool:
    """Whether this store will not work again, but a newly opened one may: damaged, deleted, moved away, closed."""
    if isinstance(error, StoreError):
        return error.code == "store_closed"
    if isinstance(error, sqlite3.ProgrammingError):
        return "closed" in str(error)
    if not isinstance(error, sqlite3.Error):
        return False
    return is_damage(error) or _code(error) == _READONLY_DBMOVED or _code(error) & 0xFF == _CANNOT_OPEN


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) or 0)
