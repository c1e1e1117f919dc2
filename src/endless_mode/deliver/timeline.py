"""The timeline: what happened lately in a project. The ladder's last rung before silence, and a help at startup."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

from endless_mode.bottle.predecessor import BEGUN
from endless_mode.bottle.short import quote, within
from endless_mode.privacy import clean

#: UTF-16 units the timeline keeps to; well below the client's limit.
LIMIT = 3_000
_SESSIONS, _LINES = 5, 14


def timeline(db: sqlite3.Connection, cwd: str, but: str = "") -> str:
    """Recent sessions of a directory and their last observations, as text; empty when there are none.

    ``but`` is the content session id to leave out (the one that asks).
    """
    sessions = db.execute(
        f"SELECT id, content_session_id, title, last_at FROM sessions s WHERE cwd = ? AND content_session_id <> ? AND {BEGUN}"
        " ORDER BY last_at DESC LIMIT ?",
        (cwd, but, _SESSIONS),
    ).fetchall()
    if not sessions:
        return ""
    parts = ["# Endless Mode — recent work in this project", ""]
    for row, content_id, title, last_at in sessions:
        request = db.execute(
            "SELECT text FROM messages WHERE session_id = ? AND role = 'user' AND kind IN ('prompt', 'command', 'plan')"
            " AND withdrawn = '' AND rewound = '' ORDER BY offset DESC LIMIT 1",
            (row,),
        ).fetchone()
        asked = quote(request[0] if request else title, 160)
        parts.append(f"- {_when(last_at)} session {content_id[:8]}: {asked}")
    latest = sessions[0][0]
    lines = db.execute(
        "SELECT id, title FROM observations WHERE session_id = ? AND type IN ('change', 'command', 'decision', 'task')"
        " ORDER BY id DESC LIMIT ?",
        (latest, _LINES),
    ).fetchall()
    if lines:
        parts += ["", "Last steps of the newest, newest first:"]
        parts += [f"- [#{number}] {quote(title, 140)}" for number, title in lines]
    return within((clean(part) for part in parts), LIMIT)


def _when(at: int | None) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M") if at is not None else "—"
