"""A document as the text of a bottle file. The same document gives the same bytes.

The head counts nothing that grows with the body, so the line numbers of earlier pages stay valid.
"""

from __future__ import annotations

import re
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

_DAY = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()
_TOO_LATE = (date.max.toordinal() + 1 - _EPOCH) * _DAY
_DEFAULT_KIND = {"user": "prompt", "assistant": "text"}

_ODD_IN_ID = re.compile(r"[^A-Za-z0-9_.:-]")
_ODD_IN_TRIGGER = re.compile(r"[^a-z_-]")
_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})")
_LIKE_AN_ID = re.compile(r"\\*(?:\[#|⏳)")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Rendered(Struct, frozen=True):
    """A rendered bottle: its text in UTF-8, and where things are (1-based line numbers).

    ``entry_lines`` has the first line of each entry of the document, for a message its speaker line.
    ``index`` is empty when the bottle fits one Read.
    """

    _text: str | None
    data: bytes
    index: list[IndexLine]
    entry_lines: list[int]
    closing_line: int

    @property
    def text(self) -> str:
        """The text; made when asked for, because that of a long session takes more room than all else here."""
        return self.data.decode() if self._text is None else self._text


def render(document: Document) -> Rendered:
    """The bottle of ``document``; any that keeps to its types has one. Lone surrogates become U+FFFD."""
    times = _Times()
    parts = [_bytes(_entry(entry, times)) for entry in document.entries]
    head = _bytes(_head(document, 0))
    line = head.count(b"\n") + 1
    entry_lines = []
    for part in parts:
        entry_lines.append(line + (1 if part.startswith(b"---\n") else 0))
        line += part.count(b"\n")
    whole = _place_of_request(document)
    if whole is not None:
        head = _bytes(_head(document, entry_lines[whole]))

    parts.insert(0, head)
    closing = _bytes(f"{CLOSING}\n{encode(document.closing, closing=True)}\n")
    index = [] if _is_short(parts, closing) else _index(document, entry_lines)
    if index:
        listed = "".join([f"- line {e.line} · {_full_minute(e.at)} · {e.text}\n" for e in index])
        parts.append(_bytes(f"{INDEX}\n{listed}\n"))
        line += len(index) + 2
    parts.append(closing)
    return Rendered(None, b"".join(parts), index, entry_lines, line)


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def _is_short(parts: list[bytes], closing: bytes) -> bool:
    # The first test spares joining a long bottle for the second.
    return sum(map(len, parts)) < ONE_READ_BYTES and fits_one_read(b"".join([*parts, closing]))


def _index(document: Document, entry_lines: list[int]) -> list[IndexLine]:
    return [
        IndexLine(line, _beginning(entry.text), entry.at)
        for entry, line in zip(document.entries, entry_lines, strict=True)
        if isinstance(entry, Speech) and entry.role == "user"
    ]


# The head


def _head(document: Document, whole_at: int) -> str:
    """Header, original request (a long one stands whole at line ``whole_at``), first heading."""
    request = document.original_request
    shown = ""
    if request is not None and len(request) > REQUEST_SHOWN and _place_of_request(document) is not None:
        pointer = f"[the first 2,000 of {len(request):,} characters; the whole stands at line {whole_at}]"
        shown = f"{REQUEST}\n{encode(request[:REQUEST_SHOWN])}\n{pointer}\n\n"
    elif request is not None:
        shown = f"{REQUEST}\n{encode(request)}\n\n"
    return f"{_header(document.header)}\n{shown}---\n\n{CONVERSATION}\n\n"


def _place_of_request(document: Document) -> int | None:
    request = document.original_request
    if request is None or len(request) <= REQUEST_SHOWN:
        return None
    for place, entry in enumerate(document.entries):
        if isinstance(entry, Speech) and entry.role == "user" and entry.text == request:
            return place
    return None


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

    def __init__(self) -> None:
        self._day = -1

    def minute(self, at: int | None) -> str:
        return self._short(at, _clock(at)[:5])

    def second(self, at: int | None) -> str:
        return self._short(at, _clock(at))

    def _short(self, at: int | None, clock: str) -> str:
        if at is None or not clock:
            return "—"
        day = at // _DAY
        if day == self._day:
            return clock
        self._day = day
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
