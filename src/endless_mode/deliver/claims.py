"""Exactly one handoff per boundary, whoever comes first.

A *delivery* is armed by a seal (or made on demand) and consumed by the one hook that prints it. It stores the
transcript offset at which it was consumed; the boundary line follows later (the client writes it after SessionStart),
so the first main-line boundary at or after that offset is bound to it, unless the model went on in between: then that
compaction was given up and the delivery is void. What the transcript itself records of our handoffs (a *proof*) counts
like a delivery, so a lost database delivers nothing twice.

Clocks are not trusted to order events: they jump. Order comes from offsets and from counting deliveries.

Every function runs inside one transaction of the one writer; that is what makes a claim exclusive.
"""

from __future__ import annotations

import secrets
import sqlite3

from msgspec import Struct

from endless_mode.bottle.view import Cut, SessionRow, cuts
from endless_mode.deliver.legs import fresh, newest_boundary, went_on

#: ``boundary_key`` of a delivery whose compaction did not come.
VOID = "void"

#: An armed marker. One bound beforehand is no compaction's: it waits for a session that goes on with another.
_MARKER = "consumed_at IS NULL AND boundary_key = ''"


class Claim(Struct, frozen=True):
    """A delivery that is the caller's to print. ``end``: offset where the last leg before it ends."""

    id: int
    marker: str
    end: int


class Ask(Struct, frozen=True):
    """Who asks for a handoff: the hook event with its source, the time in milliseconds, and a name for the request.

    The same request once more (a worker died while answering) gets the same delivery.
    """

    event: str
    now: int
    request: str = ""

    @property
    def name(self) -> str:
        """What a delivery remembers of who consumed it."""
        return f"{self.event} {self.request}" if self.request else self.event


def handed(db: sqlite3.Connection, session: int) -> int:
    """How many deliveries of a session have been consumed."""
    row = db.execute(
        "SELECT count(*) FROM deliveries WHERE session_id = ? AND consumed_at IS NOT NULL", (session,)
    ).fetchone()
    return int(row[0])


def arm(db: sqlite3.Connection, at: SessionRow, gap: int, before: int, now: int) -> bool:
    """Arm the handoff of the compaction that is about to happen; a marker not yet consumed is armed anew.

    ``before`` is what :func:`handed` said when the seal began. Does nothing when a delivery was consumed since: then
    this seal comes too late (a second hook of the same compaction, or one that ran out of its time).
    """
    if handed(db, at.id) != before:
        return False
    changed = db.execute(
        f"UPDATE deliveries SET armed_at = ?, armed_offset = ?, gap = ? WHERE session_id = ? AND {_MARKER}",
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
    db.execute(f"DELETE FROM deliveries WHERE session_id = ? AND {_MARKER}", (session,))


def is_armed(db: sqlite3.Connection, session: int) -> bool:
    """Whether a marker waits to be claimed."""
    row = db.execute(f"SELECT 1 FROM deliveries WHERE session_id = ? AND {_MARKER}", (session,))
    return row.fetchone() is not None


def awaits_boundary(db: sqlite3.Connection, at: SessionRow) -> bool:
    """Whether a marker waits to be claimed, and the transcript has no boundary yet that it could be for."""
    row = db.execute(
        f"SELECT max(armed_offset) FROM deliveries WHERE session_id = ? AND {_MARKER}", (at.id,)
    ).fetchone()
    newest = newest_boundary(db, at)
    return row[0] is not None and (newest is None or newest.offset < row[0])


def claim_compaction(db: sqlite3.Connection, at: SessionRow, ask: Ask) -> Claim | None:
    """Claim the handoff of the compaction that just ended (SessionStart, source ``compact``).

    ``at`` must be fresh from a tail. With no armed marker one is made, unless the last delivery still waits for its
    boundary: then this is the same compaction once more.
    """
    if again := _again(db, at, ask):
        return again
    bind(db, at)
    newest = newest_boundary(db, at)
    here = newest is not None and fresh(db, at, newest) and not is_delivered(db, at, newest)
    row = db.execute(
        "UPDATE deliveries SET consumed_at = ?1, consumed_offset = ?2, event = ?3 WHERE session_id = ?4"
        f" AND {_MARKER} RETURNING id, marker, armed_offset",
        (ask.now, at.offset, ask.name, at.id),
    ).fetchone()
    if row is not None:
        delivery, marker = row[0], row[1]
        # A boundary from before the seal is another compaction's.
        here = here and newest is not None and newest.offset >= row[2]
    elif _waits_for_boundary(db, at) or (newest is not None and fresh(db, at, newest) and not here):
        return None
    else:
        delivery, marker = _made(db, at, ask)
    if here and newest is not None:
        _bound(db, delivery, newest.key)
        return Claim(delivery, marker, newest.offset)
    return Claim(delivery, marker, at.offset + 1)


def claim_missed(
    db: sqlite3.Connection, at: SessionRow, ask: Ask, installed_at: int, resumed: bool = False
) -> Claim | None:
    """Claim the handoff of the newest boundary when it got none (prompt, resume). ``at`` must be fresh from a tail.

    ``resumed``: a client starts anew from the transcript, so it holds only what the transcript does.
    """
    if again := _again(db, at, ask):
        return again
    bind(db, at)
    if resumed:
        give_up_waiting(db, at.id)
    newest = newest_boundary(db, at)
    if newest is None or newest.at is None or newest.at < installed_at:
        return None
    if is_delivered(db, at, newest) and not (resumed and _lost(db, at, ask, newest)):
        return None
    if _waits_for_boundary(db, at):
        return None
    row = db.execute(
        "UPDATE deliveries SET consumed_at = ?, consumed_offset = ?, event = ? WHERE session_id = ?"
        f" AND {_MARKER} AND armed_offset <= ? RETURNING id, marker",
        (ask.now, at.offset, ask.name, at.id, newest.offset),
    ).fetchone()
    delivery, marker = row if row is not None else _made(db, at, ask)
    _bound(db, delivery, newest.key)
    return Claim(delivery, marker, newest.offset)


def claim_always(db: sqlite3.Connection, at: SessionRow, ask: Ask) -> Claim | None:
    """A handoff at every resume, once per state of the transcript."""
    if again := _again(db, at, ask):
        return again
    if _resumed_here(db, at, ask):
        return None
    bind(db, at)
    give_up_waiting(db, at.id)
    newest = newest_boundary(db, at)
    delivery, marker = _made(db, at, ask)
    _bound(db, delivery, newest.key if newest is not None else f"resume@{at.offset}")
    return Claim(delivery, marker, -1)


def give_up_waiting(db: sqlite3.Connection, session: int) -> None:
    """A client starts with this session: what an earlier one was handed for a boundary it never wrote is lost."""
    db.execute(
        "UPDATE deliveries SET boundary_key = ? WHERE session_id = ? AND consumed_at IS NOT NULL AND boundary_key = ''",
        (VOID, session),
    )


def printed(db: sqlite3.Connection, claim: Claim, mode: str, units: int, plan_tokens: int) -> None:
    """Note what was handed over; ``mode`` is never empty, that is how a delivery counts as printed."""
    db.execute(
        "UPDATE deliveries SET mode = ?, units = ?, plan_tokens = ? WHERE id = ?", (mode, units, plan_tokens, claim.id)
    )


def unclaim(db: sqlite3.Connection, claim: Claim) -> None:
    """Give a claim back: nothing could be printed, so somebody else may."""
    db.execute("DELETE FROM deliveries WHERE id = ?", (claim.id,))


def release(db: sqlite3.Connection) -> int:
    """Give back what a worker that died had claimed and not printed; return how many."""
    claimed = "consumed_at IS NOT NULL AND mode = ''"
    kept = db.execute(
        "UPDATE deliveries SET consumed_at = NULL, consumed_offset = NULL, event = ''"
        f" WHERE {claimed} AND boundary_key = 'resume'"
    ).rowcount
    return kept + db.execute(f"DELETE FROM deliveries WHERE {claimed}").rowcount


def bind(db: sqlite3.Connection, at: SessionRow) -> None:
    """Bind deliveries that waited to the boundaries that have come since, in order."""
    # A transcript that lost its end goes on from there.
    db.execute(
        "UPDATE deliveries SET consumed_offset = ?1 WHERE session_id = ?2 AND boundary_key = ''"
        " AND consumed_offset > ?1",
        (at.offset, at.id),
    )
    waiting = db.execute(
        "SELECT id, consumed_offset, consumed_at FROM deliveries WHERE session_id = ? AND consumed_at IS NOT NULL"
        " AND boundary_key = '' ORDER BY consumed_offset, id",
        (at.id,),
    ).fetchall()
    if not waiting:
        return
    taken = {key for (key,) in db.execute("SELECT boundary_key FROM deliveries WHERE session_id = ?", (at.id,))}
    found = cuts(db, at)
    for delivery, offset, consumed_at in waiting:
        cut = next((c for c in found if c.offset >= offset and c.key not in taken), None)
        if cut is None:
            continue
        gone = went_on(db, at, offset, cut.offset, consumed_at)
        _bound(db, delivery, VOID if gone else cut.key)
        taken.add(VOID if gone else cut.key)


def is_delivered(db: sqlite3.Connection, at: SessionRow, cut: Cut) -> bool:
    """Whether a boundary has had its handoff: by a delivery bound to it, or by the transcript's own record.

    A fork copies its parent's boundaries with their uuids, so a delivery of any session counts; a key that is only an
    offset means this session's alone.
    """
    own = cut.key.startswith("@")
    bound = db.execute(
        "SELECT 1 FROM deliveries WHERE boundary_key = ? AND (session_id = ? OR ?)", (cut.key, at.id, not own)
    ).fetchone()
    return bound is not None or _proven(db, at, cut)


def new_marker() -> str:
    """A name for one delivery, unguessable, as it stands at the foot of the handoff."""
    return secrets.token_hex(4)


def _again(db: sqlite3.Connection, at: SessionRow, ask: Ask) -> Claim | None:
    """What this very request was given before."""
    if not ask.request:
        return None
    row = db.execute(
        "SELECT id, marker, consumed_offset, boundary_key FROM deliveries WHERE session_id = ? AND event = ?"
        " ORDER BY id DESC LIMIT 1",
        (at.id, ask.name),
    ).fetchone()
    if row is None:
        return None
    end = next((c.offset for c in cuts(db, at) if c.key == row[3]), row[2] + 1)
    return Claim(row[0], row[1], end)


def _resumed_here(db: sqlite3.Connection, at: SessionRow, ask: Ask) -> bool:
    """Whether a resume at this very state of the transcript had its handoff."""
    row = db.execute(
        "SELECT 1 FROM deliveries WHERE session_id = ? AND consumed_offset = ? AND event LIKE ?",
        (at.id, at.offset, f"{ask.event}%"),
    )
    return row.fetchone() is not None


def _lost(db: sqlite3.Connection, at: SessionRow, ask: Ask, cut: Cut) -> bool:
    """Whether a client died between a boundary and its record of our handoff: nothing follows the boundary at all."""
    return fresh(db, at, cut) and not _proven(db, at, cut) and not _resumed_here(db, at, ask)


def _proven(db: sqlite3.Connection, at: SessionRow, cut: Cut) -> bool:
    row = db.execute(
        "SELECT 1 FROM proofs WHERE session_id = ? AND gen = ? AND offset > ?", (at.id, at.gen, cut.offset)
    )
    return row.fetchone() is not None


def _made(db: sqlite3.Connection, at: SessionRow, ask: Ask) -> tuple[int, str]:
    marker = new_marker()
    cursor = db.execute(
        "INSERT INTO deliveries (session_id, marker, armed_at, armed_offset, consumed_at, consumed_offset, event)"
        " VALUES (?1, ?2, ?3, ?4, ?3, ?4, ?5)",
        (at.id, marker, ask.now, at.offset, ask.name),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid, marker


def _bound(db: sqlite3.Connection, delivery: int, key: str) -> None:
    db.execute("UPDATE deliveries SET boundary_key = ? WHERE id = ?", (key, delivery))


def _waits_for_boundary(db: sqlite3.Connection, at: SessionRow) -> bool:
    """Whether the last delivery's boundary is still to come: the model has not gone on since it was consumed."""
    row = db.execute(
        "SELECT consumed_offset, consumed_at FROM deliveries WHERE session_id = ? AND consumed_at IS NOT NULL"
        " AND boundary_key = '' ORDER BY consumed_offset DESC, id DESC LIMIT 1",
        (at.id,),
    ).fetchone()
    return row is not None and not went_on(db, at, row[0], at.offset + 1, row[1])
