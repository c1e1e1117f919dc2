"""Where things stand: the closing part, derived from the store, never generated."""

from __future__ import annotations

import sqlite3

from endless_mode.bottle.view import SessionRow


def closing(db: sqlite3.Connection, session: SessionRow) -> str:
    """The closing part of a session's bottle."""
    return ""
