"""What happened at the compaction boundaries of late: sealed, handed over, read, and read again. Only reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from endless_mode.bottle.predecessor import BEGUN
from endless_mode.bottle.view import Cut, SessionRow, cuts, load_session
from endless_mode.model import Digest

#: Tool uses after a boundary that are looked at for files read again.
WINDOW = 30
#: Bytes of transcript after a boundary that are searched for a Read of the bottle.
SEARCHED = 8 << 20
_FILES = ("read", "edit", "write")
_digest = msgspec.json.Decoder(Digest)
_line = msgspec.json.Decoder()


class BoundaryReport(Struct):
    """One compaction. Times are milliseconds; None means that it did not happen or is not known.

    ``bottle_read``: whether the model read the bottle in this leg, None when the transcript is gone or too long.
    ``reread`` of ``tools``: how many of the first tool uses after the boundary read a file known from before it.
    """

    at: int | None
    trigger: str
    pre_tokens: int | None
    sealed_at: int | None = None
    delivered_at: int | None = None
    delivered_by: str = ""
    mode: str = ""
    gap: int = 0
    bottle_read: bool | None = None
    reread: int = 0
    tools: int = 0


class SessionReport(Struct):
    """One session with its boundaries, oldest first."""

    session: str
    project: str
    last_at: int | None
    boundaries: list[BoundaryReport]


class Delivery(Struct):
    """A row of deliveries. ``offset`` is the end of the transcript when it was consumed, else when it was armed."""

    armed_at: int
    consumed_at: int | None
    offset: int
    event: str
    boundary_key: str
    mode: str
    gap: int


class Rereads(Struct):
    """Files read again after boundaries: in how many boundaries, of how many tool uses, which share of them."""

    boundaries: int = 0
    tools: int = 0
    reread: int = 0
    share: float | None = None


def compare(reports: Iterable[SessionReport], installed_at: int | None) -> tuple[Rereads, Rereads]:
    """Files read again after the boundaries from before the install, and after those since."""
    before, after = Rereads(), Rereads()
    for boundary in (b for one in reports for b in one.boundaries if b.at is not None):
        side = before if installed_at is None or (boundary.at or 0) < installed_at else after
        side.boundaries += 1
        side.tools += boundary.tools
        side.reread += boundary.reread
    for side in (before, after):
        side.share = round(side.reread / side.tools, 3) if side.tools else None
    return before, after


def sessions(db: sqlite3.Connection, limit: int, read_bottles: int) -> list[SessionReport]:
    """The sessions that were active last, newest first; the first ``read_bottles`` with a look into the transcript."""
    rows = db.execute(f"SELECT id FROM sessions s WHERE {BEGUN} ORDER BY last_at DESC LIMIT ?", (limit,)).fetchall()
    return [report(db, load_session(db, row), n < read_bottles) for n, (row,) in enumerate(rows)]


def report(db: sqlite3.Connection, at: SessionRow, look: bool) -> SessionReport:
    """What is known of one session's boundaries; ``look`` into the transcript for a Read of the bottle."""
    found = cuts(db, at)
    if not found:
        return SessionReport(at.content_session_id, at.cwd, at.last_at, [])
    bound = bind(found, _deliveries(db, at))
    counts = rereads(_uses(db, at), [cut.offset for cut in found])
    ends = [*(cut.offset for cut in found[1:]), None]
    reports = []
    for cut, end, (reread, tools) in zip(found, ends, counts, strict=True):
        one = BoundaryReport(cut.at, cut.trigger, cut.pre_tokens, reread=reread, tools=tools)
        delivery = bound.get(cut.key)
        if delivery is not None:
            _tell(one, delivery)
        else:
            _prove(db, at, cut, end, one)
        one.bottle_read = bottle_read(Path(at.path), cut.offset, end) if look and at.path else None
        reports.append(one)
    return SessionReport(at.content_session_id, at.cwd, at.last_at, reports)


def bind(found: list[Cut], deliveries: list[Delivery]) -> dict[str, Delivery]:
    """Boundary key → its delivery. One whose boundary line was not there yet belongs to the first that came after."""
    bound = {d.boundary_key: d for d in deliveries if d.boundary_key}
    for delivery in deliveries:
        if not delivery.boundary_key:
            cut = next((c for c in found if c.offset >= delivery.offset and c.key not in bound), None)
            if cut is not None:
                bound[cut.key] = delivery
    return bound


def rereads(uses: Iterable[tuple[int, str, str]], boundaries: list[int]) -> list[tuple[int, int]]:
    """For each boundary (reads of files known before it, tool uses looked at) among the first :data:`WINDOW`.

    ``uses`` are (offset, kind, path) of the main line's tool uses in order.
    """
    counts = [[0, 0] for _ in boundaries]
    known: set[str] = set()
    before: set[str] = set()
    leg = -1
    for offset, kind, path in uses:
        while leg + 1 < len(boundaries) and offset > boundaries[leg + 1]:
            leg += 1
            before = set(known)
        if leg >= 0 and counts[leg][1] < WINDOW:
            counts[leg][1] += 1
            counts[leg][0] += kind == "read" and path in before
        if kind in _FILES and path:
            known.add(path)
    return [(again, seen) for again, seen in counts]


def bottle_read(path: Path, start: int, end: int | None) -> bool | None:
    """Whether the transcript between two places has a Read of a bottle of ours; None when that cannot be told."""
    try:
        with path.open("rb") as stream:
            stream.seek(start)
            data = stream.read(SEARCHED if end is None else min(end - start, SEARCHED))
    except OSError:
        return None
    for line in data.splitlines():
        if b"/endless/bottles/" in line and b'"tool_use"' in line and _reads_bottle(line):
            return True
    return None if len(data) == SEARCHED else False


def _reads_bottle(line: bytes) -> bool:
    try:
        content = _line.decode(line)["message"]["content"]
    except (msgspec.DecodeError, KeyError, TypeError, UnicodeDecodeError):
        return False
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_use" and block.get("name") == "Read":
            given = block.get("input")
            if isinstance(given, dict) and "/endless/bottles/" in str(given.get("file_path")):
                return True
    return False


def _tell(one: BoundaryReport, delivery: Delivery) -> None:
    made_on_demand = delivery.armed_at == delivery.consumed_at
    one.sealed_at = None if made_on_demand else delivery.armed_at
    one.delivered_at, one.delivered_by = delivery.consumed_at, delivery.event
    one.mode, one.gap = delivery.mode, delivery.gap


def _prove(db: sqlite3.Connection, at: SessionRow, cut: Cut, end: int | None, one: BoundaryReport) -> None:
    """What the transcript itself records of a handoff in this leg."""
    row = db.execute(
        "SELECT at, event FROM proofs WHERE session_id = ? AND gen = ? AND offset > ? AND offset < ?"
        " ORDER BY offset LIMIT 1",
        (at.id, at.gen, cut.offset, end if end is not None else 1 << 62),
    ).fetchone()
    if row is not None:
        one.delivered_at, one.delivered_by = row


def _deliveries(db: sqlite3.Connection, at: SessionRow) -> list[Delivery]:
    rows = db.execute(
        "SELECT armed_at, consumed_at, coalesce(consumed_offset, armed_offset), event, boundary_key, mode, gap"
        " FROM deliveries WHERE session_id = ? ORDER BY id",
        (at.id,),
    )
    return [Delivery(*row) for row in rows]


def _uses(db: sqlite3.Connection, at: SessionRow) -> Iterable[tuple[int, str, str]]:
    rows = db.execute(
        "SELECT offset, digest FROM tool_events WHERE session_id = ?1 AND (gen = ?2 OR offset >= ?3) AND rewound = ''"
        " AND agent_id = '' ORDER BY offset, idx",
        (at.id, at.gen, at.offset),
    )
    for offset, digest in rows:
        known = _digest.decode(digest)
        yield offset, known.kind, known.target
