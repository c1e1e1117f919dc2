"""A document as the text of a bottle file. The same document gives the same bytes.

The head counts nothing that grows with the body, so the line numbers of earlier pages stay valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date
from functools import lru_cache

from msgspec import Struct

from endless_mode.bottle.entries import (
    BoundaryMark,
    Document,
    Entry,
    GeneratedSummary,
    Happened,
    Header,
    IndexLine,
    Line,
    Mark,
    Speech,
)
from endless_mode.bottle.escape import CLOSING, CONVERSATION, HAPPENED, INDEX, MARKS, REQUEST, encode, flatten
from endless_mode.bottle.pages import ONE_READ_BYTES, fits_one_read

#: An original request up to this length stands whole at the head; a longer one only begins there.
REQUEST_SHOWN = 2000
#: Characters of a user turn shown in the index.
INDEX_SHOWN = 100
#: Bytes that are written at once.
_AT_ONCE = 65_536

_DAY = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()
_TOO_LATE = (date.max.toordinal() + 1 - _EPOCH) * _DAY
_DEFAULT_KIND = {"user": "prompt", "assistant": "text"}

_ODD_IN_ID = re.compile(r"[^A-Za-z0-9_.:-]")
_ODD_IN_TRIGGER = re.compile(r"[^a-z_-]")
_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})")
_LIKE_AN_ID = re.compile(r"\\*(?:\[#|⏳)")
_SURROGATE = re.compile("[\ud800-\udfff]")


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
    first = _bytes(_head(head, at > 0, 0))
    base = first.count(b"\n")
    if at:
        first = _bytes(_head(head, True, base + at))
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
    end = _bytes(f"{CLOSING}\n{encode(closing, closing=True)}\n")
    index: list[IndexLine] = []
    if talk.turns and not counted.is_short(end):
        index = [IndexLine(base + turn.line, turn.text, turn.at) for turn in talk.turns]
        listed = "".join([f"- line {e.line} · {_full_minute(e.at)} · {e.text}\n" for e in index])
        counted.write(_bytes(f"{INDEX}\n{listed}\n"))
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
        self._times = _Times(-1 if start is None else start.day)
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
                self.turns.append(IndexLine(line, _beginning(entry.text), entry.at))
                self.said = (users + 1, assistants)
            else:
                self.said = (users, assistants + 1)
        elif isinstance(entry, Happened):
            self._final = self._final and not any(one.pending for one in entry.lines)
        elif isinstance(entry, BoundaryMark):
            self._leg = entry.leg
        part = _bytes(_entry(entry, self._times))
        self.entry_lines.append(line)
        self.lines += part.count(b"\n")
        self._size += len(part)
        self._last = offset
        return part

    def _here(self, offset: int) -> Start:
        day, known = self._times.day, len(self.turns)
        return Start(offset, self._leg, self._size, self.lines, day, self.turns, known, self.said, self.request)


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


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
        f"project: {flatten(header.project)} · started: {_full_second(header.started)}"
        f" · legs: {max(header.legs, 0)} · rendered: {_full_second(header.rendered)}\n"
        f"mode: {flatten(header.mode)}\n{notes}"
    )


# Entries


def _entry(entry: Entry, times: _Times) -> str:
    match entry:
        case Speech():
            return _speech(entry, times)
        case Happened(lines):
            return f"{HAPPENED}\n{''.join([_line(line, times) for line in lines])}\n"
        case BoundaryMark():
            return _boundary(entry, times)
        case Mark(kind, at):
            return f"*— {MARKS[kind]} ({times.minute(at)}) —*\n\n"
        case GeneratedSummary(who, text):
            body = encode(text).replace("\n", "\n> ")
            return f"> Session summary (generated by {flatten(who)} — not verbatim)\n> {body}\n\n"


def _speech(speech: Speech, times: _Times) -> str:
    kind = "" if _DEFAULT_KIND[speech.role] == speech.kind else f", {speech.kind}"
    who = "---\n**User**" if speech.role == "user" else "**Assistant**"
    cut = "" if speech.truncated_at is None else f"[truncated at {speech.truncated_at} chars]\n"
    return f"{who} ({times.minute(speech.at)}{kind})\n{encode(speech.text)}\n{cut}\n"


def _line(line: Line, times: _Times) -> str:
    text = flatten(line.text)
    if line.ids:
        text = f"[#{_ids(line.ids)}] {text}"
    elif _LIKE_AN_ID.match(text):
        text = "\\" + text
    if not line.pending:
        return f"- {text}\n"
    at = times.second(line.at)
    return f"- ⏳ {text} ({'' if at == '—' else at + ', '}observation pending)\n"


def _ids(ids: list[str]) -> str:
    """``12``, ``12–14`` for neighbours, ``12,20–22,cm:7`` for a mixture."""
    if len(ids) == 1:
        return _id(ids[0])
    runs: list[tuple[str, str]] = []
    prefix, last = "", -2
    for id in map(_id, ids):
        numbered = _NUMBERED.fullmatch(id)
        if numbered and runs and numbered[1] == prefix and int(numbered[2]) == last + 1:
            runs[-1] = (runs[-1][0], numbered[2])
        else:
            runs.append((id, ""))
        prefix, last = (numbered[1], int(numbered[2])) if numbered else ("", -2)
    return ",".join(f"{first}–{end}" if end else first for first, end in runs)


def _id(id: str) -> str:
    return id if id.isalnum() and id.isascii() else _ODD_IN_ID.sub("_", id) or "_"


def _boundary(mark: BoundaryMark, times: _Times) -> str:
    trigger = _ODD_IN_TRIGGER.sub("", mark.trigger)
    about = [trigger] if trigger else []
    if mark.pre_tokens is not None and mark.pre_tokens >= 0:
        tokens = mark.pre_tokens
        about.append(f"≈{tokens if tokens < 1000 else f'{(tokens + 500) // 1000}k'} tokens")
    how = f" ({', '.join(about)})" if about else ""
    leg = max(mark.leg, 1)
    at = _full_minute(mark.at)
    times.minute(mark.at)
    return f"=== Compaction {leg - 1}{how} · {at} — leg {leg} begins ===\n\n"


def _beginning(text: str) -> str:
    start = " ".join(flatten(_SURROGATE.sub("\ufffd", text[: 4 * INDEX_SHOWN])).split())
    return start if len(start) <= INDEX_SHOWN else start[: INDEX_SHOWN - 1] + "…"


# Times


class _Times:
    """Clock times in document order: the date stands in front where it differs from the one before."""

    def __init__(self, day: int) -> None:
        self.day = day

    def minute(self, at: int | None) -> str:
        return self._short(at, _clock(at)[:5])

    def second(self, at: int | None) -> str:
        return self._short(at, _clock(at))

    def _short(self, at: int | None, clock: str) -> str:
        if at is None or not clock:
            return "—"
        day = at // _DAY
        if day == self.day:
            return clock
        self.day = day
        return f"{_date(day)} {clock}"


def _clock(at: int | None) -> str:
    """``HH:MM:SS``, empty for times nobody can have meant (before 1970, after 9999)."""
    if at is None or not 0 <= at < _TOO_LATE:
        return ""
    seconds = at % _DAY // 1000
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


@lru_cache(maxsize=256)
def _date(day: int) -> str:
    return date.fromordinal(_EPOCH + day).isoformat()


def _full_minute(at: int | None) -> str:
    clock = _clock(at)
    return f"{_date(at // _DAY)} {clock[:5]}" if at is not None and clock else "—"


def _full_second(at: int | None) -> str:
    clock = _clock(at)
    return f"{_date(at // _DAY)} {clock} UTC" if at is not None and clock else "—"
