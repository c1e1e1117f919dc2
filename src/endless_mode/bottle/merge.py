"""Conversation and observations merged by position: the entries of a bottle."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterable, Iterator
from operator import attrgetter

from endless_mode.bottle.entries import BoundaryMark, Entry, Happened, Line, Mark, Speech
from endless_mode.bottle.view import (
    Cut,
    Done,
    Place,
    Rewind,
    Said,
    SessionRow,
    cuts,
    happened,
    messages,
    rewinds,
)

#: A run of like lines is broken before it gets longer than this, in characters.
RUN_CHARS = 700

_place = attrgetter("offset", "index")


def entries(db: sqlite3.Connection, session: SessionRow, since: int = -1, leg: int = 1) -> Iterator[tuple[int, Entry]]:
    """The conversation part of a session's bottle in order, with the transcript's offset each entry ends at.

    From offset ``since`` on, where leg number ``leg`` goes on; a message must stand there.
    """
    last_typed = _last_typed(db, session)
    streams: list[Iterable[Place]] = [
        messages(db, session, since),
        happened(db, session, since),
        [cut for cut in cuts(db, session) if cut.offset >= since],
        sorted((r for r in rewinds(db, session) if r.offset >= since), key=_place),
    ]
    block: list[Done] = []
    for place in heapq.merge(*streams, key=_place):
        if isinstance(place, Done):
            if not _spoken(place):
                block.append(place)
            continue
        if block:
            yield block[-1].offset, Happened(_lines(block, last_typed))
            block = []
        match place:
            case Said():
                yield place.offset, _said(place)
            case Cut():
                leg += 1
                yield place.offset, BoundaryMark(leg, place.trigger, place.pre_tokens, place.at)
            case Rewind():
                yield place.offset, Mark("rewound", place.at)
    if block:
        yield block[-1].offset, Happened(_lines(block, last_typed))


def _said(place: Said) -> Entry:
    if place.kind == "interrupt":
        return Mark("interrupted", place.at)
    if place.kind == "private":
        return Mark("private", place.at)
    return Speech(place.role, place.kind, place.text, place.at)


def _spoken(event: Done) -> bool:
    """Questions and plans stand in the conversation, with what the user said to them."""
    return event.kind in ("question", "plan") and event.status in ("ok", "open", "denied")


def _lines(block: list[Done], last_typed: int) -> list[Line]:
    lines: list[Line] = []
    run: list[Done] = []
    for event in block:
        if run and (not event.run or event.run != run[0].run or _length(run) + len(event.subtitle) > RUN_CHARS):
            lines.append(_run_line(run))
            run = []
        if event.run and event.id:
            run.append(event)
        else:
            lines.append(_line(event, last_typed))
    if run:
        lines.append(_run_line(run))
    return lines


def _length(run: list[Done]) -> int:
    return sum(len(e.subtitle) + 2 for e in run)


def _run_line(run: list[Done]) -> Line:
    if len(run) == 1:
        return _line(run[0], -1)
    subtitles = list(dict.fromkeys(_with_outcome(e.subtitle, e.outcome) for e in run))
    return Line([str(e.id) for e in run], f"{run[0].run} {'; '.join(subtitles)}")


def _line(event: Done, last_typed: int) -> Line:
    if event.id:
        return Line([str(event.id)], _with_outcome(event.title, event.outcome))
    if event.status == "open" and event.offset < last_typed:
        return Line([], f"{_brief(event)} — no result recorded")
    return Line([], _brief(event), pending=True, at=event.at)


def _brief(event: Done) -> str:
    return f"{event.name} — {event.title}" if event.title else event.name


def _with_outcome(title: str, outcome: str) -> str:
    return f"{title} — {outcome}" if outcome else title


def _last_typed(db: sqlite3.Connection, session: SessionRow) -> int:
    row = db.execute(
        "SELECT max(offset) FROM messages WHERE session_id = ? AND gen = ? AND role = 'user' AND withdrawn = '' AND"
        " rewound = '' AND kind IN ('prompt', 'queued', 'command', 'shell', 'plan')",
        (session.id, session.gen),
    ).fetchone()
    return row[0] if row and row[0] is not None else -1
