"""What a session's bottle has of the session it goes on from."""

from __future__ import annotations

import sqlite3

from endless_mode.bottle.entries import GeneratedSummary
from endless_mode.bottle.view import SessionRow

#: Key of the summary row that keeps the predecessor's closing state as it was when the session began.
KEY = "predecessor"

#: Of a row ``s`` of ``sessions``, as SQL: it has begun. One that was prepared to go on from another may never begin.
BEGUN = "(s.predecessor = '' OR EXISTS (SELECT 1 FROM transcripts born WHERE born.session_id = s.id))"


def begins_with(db: sqlite3.Connection, at: SessionRow) -> tuple[list[str], list[GeneratedSummary]]:
    """Notes for the header, and the predecessor's closing state as a first entry; nothing when there is none."""
    if not at.predecessor:
        return [], []
    told = db.execute("SELECT who, text FROM summaries WHERE session_id = ? AND key = ?", (at.id, KEY)).fetchall()
    return [goes_on_from(db, at)], [GeneratedSummary(who, text) for who, text in told]


def goes_on_from(db: sqlite3.Connection, at: SessionRow) -> str:
    """One line that names the predecessor and its bottle; empty when there is none."""
    if not at.predecessor:
        return ""
    row = db.execute(
        "SELECT path FROM bottles b JOIN sessions s ON s.id = b.session_id WHERE content_session_id = ?",
        (at.predecessor,),
    ).fetchone()
    where = f", whose bottle is {row[0]}" if row else ""
    return f"Goes on from session {at.predecessor}{where}"
