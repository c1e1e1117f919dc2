"""Exactly one handoff per boundary, whoever comes first.

A *delivery* is armed by a seal (or made on demand) and consumed by the one hook that prints it. It stores the transcript
offset at which it was consumed; the boundary line follows later (the client writes it after SessionStart), so the
first main-line boundary at or after that offset is bound to the delivery. What the transcript itself records of our
handoffs (a *proof*) counts like a delivery, so a lost database delivers nothing twice.

Every function runs inside one transaction of the one writer; that is what makes a claim exclusive.
"""

from __future__ import annotations

import secrets
import sqlite3

from msgspec import Struct

from endless_mode.bottle.view import Cut, SessionRow, cuts

#: A leg with fewer finished tool uses than this, and no finished turn, made no progress.
LITTLE = 8


class Claim(Struct, frozen=True):
    """A delivery that is the caller's to print."""

    id: int
    marker: str
    gap: int


def arm(db: sqlite3.Connection, at: SessionRow, gap: int, began: int, now: int) -> bool:
    """Arm the handoff of the compaction that is about to happen; a marker not yet consumed is armed anew.

    Does nothing when a handoff was consumed since ``began``: then this seal comes too late (a second hook of the same
    compaction that ran out of its time).
    """
    late = db.execute(
        "SELECT 1 FROM deliveries WHERE session_id = ? AND consumed_at >= ?", (at.id, began)
    ).fetchone()
    if late:
        return False
    changed = db.execute(
        "UPDATE deliveries SET armed_at = ?, armed_offset = ?, gap = ? WHERE session_id = ? AND consumed_at IS NULL",
        (now, at.offset, gap, at.id),
    ).rowcount
    if not changed:
        db.execute(
            "INSERT INTO deliveries (session_id, marker, armed_at, armed_offset, gap) VALUES (?, ?, ?, ?, ?)",
            (at.id, new_marker(), now, at.offset, gap),
        )
    return True


def disarm(db: sqlite3.Connection, session: int) -> None:
    """Drop a marker that nobody consumed: the compaction it was armed for did not come."""
    db.execute("DELETE FROM deliveries WHERE session_id = ? AND consumed_at IS NULL", (session,))


def claim_compaction(db: sqlite3.Connection, at: SessionRow, gap: int, event: str, now: int) -> Claim | None:
    """Claim the handoff of the compaction that just ended (SessionStart, source ``compact``).

    ``at`` must be fresh from a tail. With no armed marker one is made, unless the last delivery still waits for its
    boundary: then this is the same compaction once more.
    """
    bind(db, at)
    newest = newest_boundary(db, at)
    row = db.execute(
        "UPDATE deliveries SET consumed_at = ?1, consumed_offset = ?2, event = ?3 WHERE session_id = ?4"
        " AND consumed_at IS NULL RETURNING id, marker, gap",
        (now, at.offset, event, at.id),
    ).fetchone()
    if row is not None:
        claim = Claim(*row)
    elif _waits_for_boundary(db, at):
        return None
    elif newest is not None and _fresh(db, at, newest) and is_delivered(db, at, newest):
        return None
    else:
        claim = _made(db, at, gap, event, now)
    if newest is not None and _fresh(db, at, newest) and not is_delivered(db, at, newest, but=claim.id):
        db.execute("UPDATE deliveries SET boundary_key = ? WHERE id = ?", (newest.key, claim.id))
    return claim


def claim_missed(db: sqlite3.Connection, at: SessionRow, gap: int, event: str, now: int, installed_at: int) -> Claim | None:
    """Claim the handoff of the newest boundary when it got none (prompt, resume). ``at`` must be fresh from a tail."""
    bind(db, at)
    newest = newest_boundary(db, at)
    if newest is None or newest.at is None or newest.at < installed_at or is_delivered(db, at, newest):
        return None
    disarm(db, at.id)
    claim = _made(db, at, gap, event, now)
    db.execute("UPDATE deliveries SET boundary_key = ? WHERE id = ?", (newest.key, claim.id))
    return claim


def claim_always(db: sqlite3.Connection, at: SessionRow, gap: int, event: str, now: int) -> Claim | None:
    """A handoff at every resume, once per state of the transcript."""
    again = db.execute(
        "SELECT 1 FROM deliveries WHERE session_id = ? AND event = ? AND consumed_offset = ?", (at.id, event, at.offset)
    ).fetchone()
    if again:
        return None
    bind(db, at)
    newest = newest_boundary(db, at)
    claim = _made(db, at, gap, event, now)
    db.execute(
        "UPDATE deliveries SET boundary_key = ? WHERE id = ?", (newest.key if newest else f"resume@{at.offset}", claim.id)
    )
    return claim


def printed(db: sqlite3.Connection, claim: Claim, mode: str, units: int, plan_tokens: int) -> None:
    """Note what was handed over."""
    db.execute(
        "UPDATE deliveries SET mode = ?, units = ?, plan_tokens = ? WHERE id = ?", (mode, units, plan_tokens, claim.id)
    )


def unclaim(db: sqlite3.Connection, claim: Claim) -> None:
    """Give a claim back: nothing could be printed, so somebody else may."""
    db.execute(
        "UPDATE deliveries SET consumed_at = NULL, consumed_offset = NULL, event = '', boundary_key = '' WHERE id = ?",
        (claim.id,),
    )


def newest_boundary(db: sqlite3.Connection, at: SessionRow) -> Cut | None:
    """The last compaction of the main line."""
    found = cuts(db, at)
    return found[-1] if found else None


def bind(db: sqlite3.Connection, at: SessionRow) -> None:
    """Bind deliveries that waited to the boundaries that have come since."""
    waiting = db.execute(
        "SELECT id, consumed_offset FROM deliveries WHERE session_id = ? AND consumed_at IS NOT NULL AND boundary_key = ''"
        " ORDER BY id",
        (at.id,),
    ).fetchall()
    if not waiting:
        return
    taken = {key for (key,) in db.execute("SELECT boundary_key FROM deliveries WHERE session_id = ?", (at.id,))}
    for delivery, offset in waiting:
        cut = next((c for c in cuts(db, at) if c.offset >= offset and c.key not in taken), None)
        if cut is not None:
            taken.add(cut.key)
            db.execute("UPDATE deliveries SET boundary_key = ? WHERE id = ?", (cut.key, delivery))


def is_delivered(db: sqlite3.Connection, at: SessionRow, cut: Cut, but: int = 0) -> bool:
    """Whether a boundary has had its handoff: by a delivery bound to it, or by the transcript's own record."""
    bound = db.execute(
        "SELECT 1 FROM deliveries WHERE session_id = ? AND boundary_key = ? AND id <> ?", (at.id, cut.key, but)
    ).fetchone()
    if bound:
        return True
    proof = db.execute(
        "SELECT 1 FROM proofs WHERE session_id = ? AND gen = ? AND offset > ?", (at.id, at.gen, cut.offset)
    ).fetchone()
    return proof is not None


def pressure(db: sqlite3.Connection, at: SessionRow) -> int:
    """How many of the newest legs in a row made no progress: 0 normal, 1 give state only, 2 give nothing.

    Progress is a finished turn (the assistant spoke and a new prompt followed) or :data:`LITTLE` finished tool uses.
    Long turns of many tool uses between compactions are normal work, not thrashing.
    """
    ends = [c.offset for c in cuts(db, at)]
    level, end = 0, at.offset + 1
    if ends and not _anything(db, at, ends[-1], end):
        end = ends.pop()
    for start in reversed(ends):
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
        "SELECT 1 FROM messages WHERE session_id = ? AND gen = ? AND offset > ? AND withdrawn = '' AND kind NOT IN"
        " ('queued', 'text') UNION ALL SELECT 1 FROM boundaries WHERE session_id = ?1 AND gen = ?2 AND offset > ?3",
        (at.id, at.gen, row[0]),
    ).fetchone()
    return later is None


def new_marker() -> str:
    """A name for one delivery, unguessable, as it stands at the foot of the handoff."""
    return secrets.token_hex(4)


def _made(db: sqlite3.Connection, at: SessionRow, gap: int, event: str, now: int) -> Claim:
    marker = new_marker()
    cursor = db.execute(
        "INSERT INTO deliveries (session_id, marker, armed_at, armed_offset, gap, consumed_at, consumed_offset, event)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (at.id, marker, now, at.offset, gap, now, at.offset, event),
    )
    assert cursor.lastrowid is not None
    return Claim(cursor.lastrowid, marker, gap)


def _waits_for_boundary(db: sqlite3.Connection, at: SessionRow) -> bool:
    """Whether the last delivery's boundary is still to come: nothing was said since it was consumed."""
    row = db.execute(
        "SELECT consumed_offset FROM deliveries WHERE session_id = ? AND consumed_at IS NOT NULL AND boundary_key = ''"
        " ORDER BY id DESC LIMIT 1",
        (at.id,),
    ).fetchone()
    return row is not None and not _anything(db, at, row[0] - 1, at.offset + 1)


def _fresh(db: sqlite3.Connection, at: SessionRow, cut: Cut) -> bool:
    """Whether nothing has happened since the boundary."""
    return not _anything(db, at, cut.offset, at.offset + 1)


def _anything(db: sqlite3.Connection, at: SessionRow, after: int, before: int) -> bool:
    row = db.execute(
        "SELECT 1 FROM messages WHERE session_id = ?1 AND gen = ?2 AND offset > ?3 AND offset < ?4 AND role = 'assistant'"
        " UNION ALL SELECT 1 FROM tool_events WHERE session_id = ?1 AND gen = ?2 AND offset > ?3 AND offset < ?4",
        (at.id, at.gen, after, before),
    ).fetchone()
    return row is not None


def _progress(db: sqlite3.Connection, at: SessionRow, start: int, end: int) -> bool:
    (done,) = db.execute(
        "SELECT count(*) FROM tool_events WHERE session_id = ? AND gen = ? AND offset > ? AND offset < ? AND status <> 'open'",
        (at.id, at.gen, start, end),
    ).fetchone()
    if done >= LITTLE:
        return True
    row = db.execute(
        "SELECT 1 FROM messages u WHERE u.session_id = ?1 AND u.gen = ?2 AND u.offset > ?3 AND u.offset < ?4 AND u.role = 'user'"
        " AND u.kind IN ('prompt', 'command') AND u.withdrawn = '' AND EXISTS (SELECT 1 FROM messages a WHERE"
        " a.session_id = ?1 AND a.gen = ?2 AND a.offset > ?3 AND a.offset < u.offset AND a.role = 'assistant')",
        (at.id, at.gen, start, end),
    ).fetchone()
    return row is not None
