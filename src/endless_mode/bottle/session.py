"""A session's bottle from the store: document, text, file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from endless_mode.bottle.closing import closing
from endless_mode.bottle.entries import (
    MODE_FULL,
    MODE_RECONSTRUCTED,
    MODE_STORED,
    Document,
    Entry,
    GeneratedSummary,
    Happened,
    Header,
    Line,
    Speech,
)
from endless_mode.bottle.merge import entries
from endless_mode.bottle.predecessor import begins_with
from endless_mode.bottle.render import Head, Rendered, Start, Written, write
from endless_mode.bottle.view import SessionRow, cuts, first_request, is_spoken, last_request, load_session
from endless_mode.collector import held_off
from endless_mode.privacy import clean, clean_lines, is_clean
from endless_mode.store import Store


class SessionDocument(Struct):
    """A session's document, whose conversation is read from the store while it is written.

    Good for as long as the read of the store goes on in which it was made. ``before``: entries from elsewhere.
    """

    db: Any
    at: SessionRow
    header: Header
    before: list[Entry]
    original_request: str | None
    closing: str

    def placed(self, start: Start | None = None) -> Iterator[tuple[int, Entry]]:
        """The entries with their places in the transcript, all or those from a point on."""
        if start is None:
            return _cleaned(chain(((-1, entry) for entry in self.before), entries(self.db, self.at)))
        return _cleaned(entries(self.db, self.at, start.offset, start.leg))

    @property
    def entries(self) -> Iterator[Entry]:
        """The entries, read anew each time."""
        return (entry for _, entry in self.placed())

    def last_request(self) -> str:
        """What the user asked for last; empty when that is nothing."""
        said = last_request(self.db, self.at)
        return said.text if said is not None else ""

    def whole(self) -> Document:
        """The same in memory."""
        return Document(self.header, list(self.entries), self.original_request, self.closing)


def session_document(db: sqlite3.Connection, session: int, now: int | None = None) -> SessionDocument:
    """The bottle's document. ``now`` is the render stamp in milliseconds, the present by default."""
    at = load_session(db, session)
    notes, before = begins_with(db, at)
    request = first_request(db, at)
    header = Header(
        content_session_id=at.content_session_id,
        project=clean(at.cwd),
        mode=_mode(db, at),
        legs=1 + len(cuts(db, at)),
        started=at.started_at,
        rendered=int(time.time() * 1000) if now is None else now,
        notes=[clean(note) for note in notes],
    )
    asked = None if request is None else clean(request.text)
    return SessionDocument(db, at, header, [*before], asked, clean_lines(closing(db, at).text))


def document(db: sqlite3.Connection, session: int, now: int | None = None) -> Document:
    """The same with its conversation in memory."""
    return session_document(db, session, now).whole()


def _mode(db: sqlite3.Connection, at: SessionRow) -> str:
    if at.path and Path(at.path).exists():
        return MODE_FULL
    # What was said may have been dropped since, by the user's setting or for the database's size.
    return MODE_STORED if is_spoken(db, at) else MODE_RECONSTRUCTED


def write_document(
    made: Document | SessionDocument,
    sink: Callable[[bytes], object],
    start: Start | None = None,
    prefix: Callable[[], object] | None = None,
) -> Written:
    """Write a bottle piece by piece, as :func:`endless_mode.bottle.render.write` does."""
    head = Head(made.header, made.original_request)
    if isinstance(made, Document):
        return write(head, ((-1, entry) for entry in made.entries), made.closing, sink)
    with held_off():
        return write(head, made.placed(start), made.closing, sink, start, prefix)


def render_session(store: Store, session: int, now: int | None = None) -> Rendered:
    """The text of a session's bottle as the store has it now, in memory."""
    parts: list[bytes] = []
    with store.reading() as db:
        done = write_document(session_document(db, session, now), parts.append)
    return Rendered(b"".join(parts), done.shape, done.index)


def gap(db: sqlite3.Connection, session: int) -> int:
    """Tool events of the session that an observer still has to answer for."""
    row = db.execute(
        "SELECT count(*) FROM tool_events WHERE session_id = ? AND state IN ('pending', 'claimed')",
        (session,),
    ).fetchone()
    return int(row[0])


#: Entries that are looked at as one text; only when something is found in it, each by itself.
_AT_ONCE = 64


def _cleaned(body: Iterable[tuple[int, Entry]]) -> Iterator[tuple[int, Entry]]:
    """Everything once more through the one filter: rows written by an older version are no exception."""
    waiting = iter(body)
    while part := list(islice(waiting, _AT_ONCE)):
        texts: list[str] = []
        for _, entry in part:
            if isinstance(entry, Happened):
                texts.extend([line.text for line in entry.lines])
            elif isinstance(entry, Speech | GeneratedSummary):
                texts.append(entry.text)
        yield from part if is_clean(texts) else [(offset, _clean(entry)) for offset, entry in part]


def _clean(entry: Entry) -> Entry:
    match entry:
        case Speech():
            text = clean(entry.text)
            return entry if text is entry.text else msgspec.structs.replace(entry, text=text)
        case GeneratedSummary(who, text):
            return GeneratedSummary(who, clean(text))
        case Happened(lines):
            return Happened([_clean_line(line) for line in lines])
        case _:
            return entry


def _clean_line(line: Line) -> Line:
    text = clean(line.text)
    return line if text is line.text else msgspec.structs.replace(line, text=text)
