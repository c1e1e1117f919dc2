"""What happened between boundaries: did the model go on, did it make progress, who is compacting."""

from __future__ import annotations

import sqlite3

from endless_mode.bottle.view import Cut, SessionRow, cuts

#: A leg with fewer finished tool uses than this, and no finished turn, made no progress.
LITTLE = 8
#: Lines the client may still write late for what happened before a handoff (measured: one, 16 to 82 ms late).
LATE_LINES = 4


def newest_boundary(db: sqlite3.Connection, at: SessionRow) -> Cut | None:
    """The last compaction of the main line."""
    found = cuts(db, at)
    return found[-1] if found else None


def pressure(db: sqlite3.Connection, at: SessionRow, end: int) -> int:
    """How many legs in a row before ``end`` made no progress: 0 normal, 1 give state only, 2 give nothing.

    Progress is a finished turn or :data:`LITTLE` finished tool uses. Long turns of many tool uses between compactions
    are normal work, not thrashing.
    """
    level = 0
    for start in reversed([c.offset for c in cuts(db, at) if c.offset < end]):
        if _progress(db, at, start, end):
            break
        level += 1
        end = start
    return level


def in_subagent(db: sqlite3.Connection, at: SessionRow) -> bool:
    """Whether the main line waits for a foreground subagent: then a compaction is the subagent's, not the session's.

    Clients before 2.1.332 send no ``agent_id`` with the hooks of a subagent's compaction.
    """
    row = db.execute(
        "SELECT max(offset) FROM tool_events WHERE session_id = ? AND gen = ? AND status = 'open' AND agent_id = ''"
        " AND rewound = '' AND name IN ('Agent', 'Task')",
        (at.id, at.gen),
    ).fetchone()
    if row[0] is None:
        return False
    later = db.execute(
        "SELECT 1 FROM messages WHERE session_id = ?1 AND gen = ?2 AND offset > ?3 AND withdrawn = '' AND kind NOT IN"
        " ('queued', 'text') UNION ALL SELECT 1 FROM boundaries WHERE session_id = ?1 AND gen = ?2 AND offset > ?3",
        (at.id, at.gen, row[0]),
    ).fetchone()
    return later is None


def fresh(db: sqlite3.Connection, at: SessionRow, cut: Cut) -> bool:
    """Whether the model has done nothing since the boundary."""
    return _did(db, at, cut.offset, at.offset + 1) == (0, 0)


def went_on(db: sqlite3.Connection, at: SessionRow, start: int, end: int, since: int) -> bool:
    """Whether the model did anything new from ``start`` on, past a few lines written late for what was before."""
    rows, newer = _did(db, at, start - 1, end, since)
    return newer > 0 or rows > LATE_LINES


def _did(db: sqlite3.Connection, at: SessionRow, after: int, before: int, since: int = 0) -> tuple[int, int]:
    """What the model said and called on the main line between two offsets: rows, and those later than ``since``."""
    row = db.execute(
        "SELECT count(*), count(CASE WHEN at IS NULL OR at > ?5 THEN 1 END) FROM (SELECT at FROM messages WHERE"
        " session_id = ?1 AND gen = ?2 AND offset > ?3 AND offset < ?4 AND role = 'assistant' UNION ALL SELECT at FROM"
        " tool_events WHERE session_id = ?1 AND gen = ?2 AND offset > ?3 AND offset < ?4 AND agent_id = '')",
        (at.id, at.gen, after, before, since),
    ).fetchone()
    return int(row[0]), int(row[1])


def _progress(db: sqlite3.Connection, at: SessionRow, start: int, end: int) -> bool:
    done, last_use = db.execute(
        "SELECT count(CASE WHEN status <> 'open' THEN 1 END), coalesce(max(offset), -1) FROM tool_events"
        " WHERE session_id = ? AND gen = ? AND offset > ? AND offset < ? AND agent_id = ''",
        (at.id, at.gen, start, end),
    ).fetchone()
    if done >= LITTLE:
        return True
    first, last = db.execute(
        "SELECT min(offset), max(offset) FROM messages WHERE session_id = ? AND gen = ? AND offset > ? AND offset < ?"
        " AND role = 'assistant'",
        (at.id, at.gen, start, end),
    ).fetchone()
    if first is None:
        return False
    if last > last_use:
        return True  # the model ended with words: its turn was over
    row = db.execute(
        "SELECT 1 FROM messages WHERE session_id = ? AND gen = ? AND offset > ? AND offset < ? AND role = 'user'"
        " AND kind IN ('prompt', 'command') AND withdrawn = ''",
        (at.id, at.gen, first, end),
    ).fetchone()
    return row is not None
