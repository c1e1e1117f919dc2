"""A session's bottle from the store: document, text, file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from endless_mode.bottle.closing import closing
from endless_mode.bottle.entries import (
    MODE_FULL,
    MODE_RECONSTRUCTED,
    MODE_STORED,
    BoundaryMark,
    Document,
    Entry,
    GeneratedSummary,
    Happened,
    Header,
    Line,
    Speech,
)
from endless_mode.bottle.file import better_there, bottle_path, session_lock, write_atomic
from endless_mode.bottle.merge import entries
from endless_mode.bottle.predecessor import begins_with
from endless_mode.bottle.render import Rendered, render
from endless_mode.bottle.view import SessionRow, load_session
from endless_mode.collector import held_off
from endless_mode.privacy import clean, is_clean
from endless_mode.store import Store


class Bottle(Struct, frozen=True):
    """A bottle on disk (``path``) and how much of the session it holds: transcript bytes, events without observation.

    ``kept``: a better one was there already, and the rest tells of that.
    """

    path: Path
    mode: str
    offset: int
    gap: int
    rendered: Rendered
    kept: bool = False


def document(db: sqlite3.Connection, session: int, now: int | None = None) -> Document:
    """The bottle's document. ``now`` is the render stamp in milliseconds, the present by default."""
    at = load_session(db, session)
    notes, before = begins_with(db, at)
    body = _cleaned([*before, *entries(db, at)])
    request = next((e.text for e in body if isinstance(e, Speech) and e.role == "user" and e.kind in _REQUESTS), None)
    header = Header(
        content_session_id=at.content_session_id,
        project=clean(at.cwd),
        mode=_mode(at, body),
        legs=1 + sum(isinstance(e, BoundaryMark) for e in body),
        started=at.started_at,
        rendered=int(time.time() * 1000) if now is None else now,
        notes=[clean(note) for note in notes],
    )
    return Document(header, body, request, clean(closing(db, at).text))


def _mode(at: SessionRow, body: list[Entry]) -> str:
    if at.path and Path(at.path).exists():
        return MODE_FULL
    # What was said may have been dropped since, by the user's setting or for the database's size.
    return MODE_STORED if any(isinstance(entry, Speech) for entry in body) else MODE_RECONSTRUCTED


#: Kinds of user messages that ask for something.
_REQUESTS = ("prompt", "queued", "command", "plan")


def render_session(store: Store, session: int, now: int | None = None) -> Rendered:
    """The text of a session's bottle as the store has it now."""
    with held_off():
        return render(store.read(lambda db: document(db, session, now)))


def write_bottle(
    store: Store, session: int, directory: Path, locks: Path, make: Callable[[], Document] | None = None
) -> Bottle:
    """Render a session and put its bottle in place, one at a time per session, never a worse one over a better.

    ``make`` gives the document (default: what the store has); it is called while the session's lock is held.

    Raises:
        OSError: the file cannot be written; the old one stays.
        LockTimeout: another render of this session does not end.
    """
    at = store.read(lambda db: load_session(db, session))
    path = bottle_path(directory, at.content_session_id)
    with session_lock(locks, at.content_session_id):
        at, waiting = store.read(lambda db: (load_session(db, session), gap(db, session)))
        whole = store.read(lambda db: document(db, session)) if make is None else make()
        better = better_there(path, whole.header.mode)
        if better is not None:
            return Bottle(path, better.header.mode, at.offset, waiting, render(better), kept=True)
        rendered = render(whole)
        write_atomic(path, rendered.data)
        return Bottle(path, whole.header.mode, at.offset, waiting, rendered)


def gap(db: sqlite3.Connection, session: int) -> int:
    """Tool events of the session that an observer still has to answer for."""
    row = db.execute(
        "SELECT count(*) FROM tool_events WHERE session_id = ? AND state IN ('pending', 'claimed')",
        (session,),
    ).fetchone()
    return int(row[0])


def _cleaned(body: list[Entry]) -> list[Entry]:
    """Everything once more through the one filter: rows written by an older version are no exception."""
    found: list[Entry] = []
    for start in range(0, len(body), _AT_ONCE):
        part = body[start : start + _AT_ONCE]
        texts: list[str] = []
        for entry in part:
            if isinstance(entry, Happened):
                texts.extend([line.text for line in entry.lines])
            elif isinstance(entry, Speech | GeneratedSummary):
                texts.append(entry.text)
        found += part if is_clean(texts) else map(_clean, part)
    return found


#: Entries that are looked at as one text; only when something is found in it, each by itself.
_AT_ONCE = 64


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
