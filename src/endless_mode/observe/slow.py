"""What a slow observer (one that asks a model) works with: events that wait, claims on them, confirmation per event.

An event is ``pending`` until an observer claims it, ``claimed`` while it is in flight, ``observed`` once confirmed. A
claim dies with the worker: at start everything claimed is pending again.
"""

from __future__ import annotations

import sqlite3
from typing import Protocol

import msgspec
from msgspec import Struct

from endless_mode.ingest.rows import OBSERVATION, observation_row, observe_again
from endless_mode.model import Digest, Observation

_digest = msgspec.json.Decoder(Digest)


class SlowObserver(Protocol):
    """An observer that works beside the worker's event loop."""

    name: str

    def standing_still(self, session_id: str) -> bool:
        """Whether it does not run for this session (paused by a quota, say). A seal never starts it."""
        ...


class Waiting(Struct, frozen=True):
    """An event to be observed."""

    id: int
    digest: Digest


def release(db: sqlite3.Connection) -> int:
    """Make everything claimed pending again; return how many."""
    return db.execute("UPDATE tool_events SET state = 'pending' WHERE state = 'claimed'").rowcount


def claim(db: sqlite3.Connection, session: int, most: int) -> list[Waiting]:
    """Take up to ``most`` of a session's oldest pending events."""
    rows = db.execute(
        "UPDATE tool_events SET state = 'claimed' WHERE id IN (SELECT id FROM tool_events WHERE session_id = ? AND"
        " state = 'pending' ORDER BY id LIMIT ?) RETURNING id, digest",
        (session, most),
    ).fetchall()
    return [Waiting(row[0], _digest.decode(row[1])) for row in sorted(rows)]


def confirm(db: sqlite3.Connection, session: int, source: str, seen: dict[int, list[Observation]]) -> None:
    """Store what an observer says of events it claimed; each is confirmed with 0..n observations."""
    for event, observations in seen.items():
        times = db.execute(
            "SELECT at, ended_at FROM tool_events WHERE id = ? AND session_id = ?", (event, session)
        ).fetchone()
        if times is None:
            continue
        for n, one in enumerate(observations):
            row = observation_row(session, source, event, one, 0, times[0], times[1], n)
            if not observe_again(db, row):
                db.execute(OBSERVATION, row)
        db.execute("UPDATE tool_events SET state = 'observed' WHERE id = ?", (event,))
