"""A document as the text of a bottle file. The same document gives the same bytes.

The head counts nothing that grows with the body, so the line numbers of earlier pages stay valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from endless_mode.bottle.entries import BoundaryMark, Document, Entry, Happened, Header, IndexLine, Speech
from endless_mode.bottle.entry_text import as_bytes, beginning, entry_text
from endless_mode.bottle.escape import CLOSING, CONVERSATION, INDEX, REQUEST, encode, flatten
from endless_mode.bottle.pages import ONE_READ_BYTES, fits_one_read
from endless_mode.bottle.times import Times, full_minute, full_second

#: An original request up to this length stands whole at the head; a longer one only begins there.
REQUEST_SHOWN = 2000
#: Bytes that are written at once.
_AT_ONCE = 65_536


class Shape(Struct, frozen=True):
    """Where things are in a bottle: byte offsets, and lines counted from 1.

    The conversation part ends before ``talk_end``, with the line ``talk_lines``; then come index and closing part.
    """

    size: int
    talk_end: int
    talk_lines: int
    closing_at: int
    closing_line: int


class Start(Struct, frozen=True):
    """A point of the conversation from which rendering may go on: what stands before it is known.

    ``offset``: place in the transcript of the user's message that comes next; ``size`` and ``lines``: of the
    conversation part before it; ``day``: of the last time shown; ``turns``: user messages, the first ``known`` of which
    stand before it; ``said``: messages of user and assistant; ``request``: line of the one that the head quotes, or 0.
    """

    offset: int
    leg: int
    size: int
    lines: int
    day: int
    turns: list[IndexLine]
    known: int
    said: tuple[int, int]
    request: int


class Rendered(Struct, frozen=True):
    """A rendered bottle in memory: its text in UTF-8, and where things are (1-based line numbers).

    ``entry_lines`` has the first line of each entry of the document, for a message its speaker line.
    ``index`` is empty when the bottle fits one Read.
    """

    data: bytes
    shape: Shape
    index: list[IndexLine]
    entry_lines: list[int] = []

    @property
    def text(self) -> str:
        """The text; made when asked for."""
        return self.data.decode()


class Written(Struct, frozen=True):
    """What :func:`write` has written: shape, index, how many messages of user and assistant, and where a later
    rendering may begin. The conversation part begins at byte ``talk_at``."""

    shape: Shape
    index: list[IndexLine]
    said: tuple[int, int]
    talk_at: int
    start: Start | None = None


class Head(Struct, frozen=True):
    """What stands before the conversation."""

    header: Header
    request: str | None = None


def render(document: Document) -> Rendered:
    """The bottle of ``document``; any that keeps to its types has one. Lone surrogates become U+FFFD."""
    parts: list[bytes] = []
    lines: list[int] = []
    entries = ((-1, entry) for entry in document.entries)
    head = Head(document.header, document.original_request)
    done = write(head, entries, document.closing, parts.append, entry_lines=lines)
    return Rendered(b"".join(parts), done.shape, done.index, lines)


def write(
    head: Head,
    entries: Iterable[tuple[int, Entry]],
    closing: str,
    sink: Callable[[bytes], object],
    start: Start | None = None,
    prefix: Callable[[], object] | None = None,
    entry_lines: list[int] | None = None,
) -> Written:
    """Write a bottle piece by piece; ``entries`` come with their place in the transcript (-1: none).

    With ``start``, ``prefix`` writes the conversation part before it and ``entries`` begin there.
    """
    talk = _Talk(start)
    waiting = iter(entries)
    held: list[bytes] = []
    at = talk.request
    if head.request is not None and len(head.request) > REQUEST_SHOWN and not at:
        # The head names the line where the request stands whole, so nothing is written before that is known.
        for offset, entry in waiting:
            line = talk.line_of_next(entry)
            held.append(talk.add(offset, entry))
            if isinstance(entry, Speech) and entry.role == "user" and entry.text == head.request:
                at = talk.request = line
                break
    first = as_bytes(_head(head, at > 0, 0))
    base = first.count(b"\n")
    if at:
        first = as_bytes(_head(head, True, base + at))
    counted = _Counted(sink)
    counted.write(first)
    if start is not None and prefix is not None:
        counted.flush()
        prefix()
        counted.skip(start.size)
    for part in held:
        counted.write(part)
    for offset, entry in waiting:
        counted.write(talk.add(offset, entry))
    talk_end, talk_lines = counted.size, base + talk.lines
    end = as_bytes(f"{CLOSING}\n{encode(closing, closing=True)}\n")
    index: list[IndexLine] = []
    if talk.turns and not counted.is_short(end):
        index = [IndexLine(base + turn.line, turn.text, turn.at) for turn in talk.turns]
        listed = "".join([f"- line {e.line} · {full_minute(e.at)} · {e.text}\n" for e in index])
        counted.write(as_bytes(f"{INDEX}\n{listed}\n"))
    closing_line = talk_lines + 1 + (len(index) + 2 if index else 0)
    closing_at = counted.size
    counted.write(end)
    counted.flush()
    if entry_lines is not None:
        entry_lines += [base + line for line in talk.entry_lines]
    shape = Shape(counted.size, talk_end, talk_lines, closing_at, closing_line)
    return Written(shape, index, talk.said, len(first), talk.start)


class _Counted:
    """Hands pieces on in larger ones, counts them, and remembers the whole while it may be short."""

    def __init__(self, sink: Callable[[bytes], object]) -> None:
        self._sink = sink
        self._parts: list[bytes] = []
        self._waiting = 0
        self._whole: list[bytes] | None = []
        self.size = 0

    def write(self, part: bytes) -> None:
        self.size += len(part)
        self._waiting += len(part)
        self._parts.append(part)
        if self._waiting > _AT_ONCE:
            self.flush()

    def skip(self, size: int) -> None:
        """So much was written by another."""
        self.size += size
        self._whole = None

    def flush(self) -> None:
        data = b"".join(self._parts)
        self._parts, self._waiting = [], 0
        if self._whole is not None:
            self._whole.append(data)
            if self.size >= ONE_READ_BYTES:
                self._whole = None
        self._sink(data)

    def is_short(self, end: bytes) -> bool:
        """Whether all of it and ``end`` fit one Read."""
        if self._whole is None or self.size >= ONE_READ_BYTES:
            return False
        return fits_one_read(b"".join([*self._whole, *self._parts, end]))


class _Talk:
    """The conversation part while it grows: lines are counted from 1 at its beginning."""

    def __init__(self, start: Start | None) -> None:
        self._times = Times(-1 if start is None else start.day)
        self._last = -1
        self._leg = 1 if start is None else start.leg
        self._size = 0 if start is None else start.size
        self._final = True
        self.lines = 0 if start is None else start.lines
        self.turns: list[IndexLine] = [] if start is None else start.turns[: start.known]
        self.said = (0, 0) if start is None else start.said
        self.request = 0 if start is None else start.request
        self.start = start
        self.entry_lines: list[int] = []

    def line_of_next(self, entry: Entry) -> int:
        return self.lines + (2 if isinstance(entry, Speech) and entry.role == "user" else 1)

    def add(self, offset: int, entry: Entry) -> bytes:
        """The entry as it stands in the bottle."""
        line = self.lines + 1
        if isinstance(entry, Speech):
            users, assistants = self.said
            if entry.role == "user":
                if self._final and offset > self._last:
                    self.start = self._here(offset)
                line += 1
                self.turns.append(IndexLine(line, beginning(entry.text), entry.at))
                self.said = (users + 1, assistants)
            else:
                self.said = (users, assistants + 1)
        elif isinstance(entry, Happened):
            self._final = self._final and not any(one.pending for one in entry.lines)
        elif isinstance(entry, BoundaryMark):
            self._leg = entry.leg
        part = as_bytes(entry_text(entry, self._times))
        self.entry_lines.append(line)
        self.lines += part.count(b"\n")
        self._size += len(part)
        self._last = offset
        return part

    def _here(self, offset: int) -> Start:
        day, known = self._times.day, len(self.turns)
        return Start(offset, self._leg, self._size, self.lines, day, self.turns, known, self.said, self.request)


# The head


def _head(head: Head, pointed: bool, line: int) -> str:
    """Header, original request (``pointed``: it begins here, and stands whole at that line), first heading."""
    request, shown = head.request, ""
    if request is not None and pointed:
        pointer = f"[the first 2,000 of {len(request):,} characters; the whole stands at line {line}]"
        shown = f"{REQUEST}\n{encode(request[:REQUEST_SHOWN])}\n{pointer}\n\n"
    elif request is not None:
        shown = f"{REQUEST}\n{encode(request)}\n\n"
    return f"{_header(head.header)}\n{shown}---\n\n{CONVERSATION}\n\n"


def _header(header: Header) -> str:
    notes = "".join(f"note: {flatten(note)}\n" for note in header.notes)
    return (
        f"# Session bottle — {flatten(header.content_session_id)}\n"
        f"project: {flatten(header.project)} · started: {full_second(header.started)}"
        f" · legs: {max(header.legs, 0)} · rendered: {full_second(header.rendered)}\n"
        f"mode: {flatten(header.mode)}\n{notes}"
    )
