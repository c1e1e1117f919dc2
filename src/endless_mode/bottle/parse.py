"""The text of a bottle file back as a document: what :mod:`render` wrote, exactly."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import NamedTuple, cast

from endless_mode.bottle import escape
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
    MarkKind,
    Speech,
)
from endless_mode.bottle.escape import CLOSING, CONVERSATION, HAPPENED, INDEX, MARKS, REQUEST, decode
from endless_mode.model import MessageKind, Role

_DAY = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()
#: A run of ids longer than this is no run anybody wrote.
_LONGEST_RUN = 100_000

_SECOND = r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} UTC|—"
_TITLE = re.compile(escape.TITLE)
_PROJECT = re.compile(rf"project: (.*) · started: ({_SECOND}) · legs: ([0-9]+) · rendered: ({_SECOND})")
_SPEAKER = re.compile(escape.SPEAKER)
_BOUNDARY = re.compile(escape.BOUNDARY)
_HAPPENED = re.compile(re.escape(HAPPENED))
_MARK = re.compile(escape.MARK)
_SUMMARY = re.compile(escape.SUMMARY)
_TRUNCATED = re.compile(escape.TRUNCATED)
_ELSEWHERE = re.compile(escape.ELSEWHERE)
_OBSERVED = re.compile(escape.OBSERVED)
_PENDING = re.compile(escape.PENDING)
_INDEX_LINE = re.compile(escape.INDEX_LINE)
_ESCAPED_ID = re.compile(r"\\+(?:\[#|⏳)")
_RUN = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})–([0-9]{1,18})")

_START = f"\n---\n\n{CONVERSATION}\n\n"
_MARK_KINDS: dict[str, MarkKind] = {words: kind for kind, words in MARKS.items()}


class BadBottle(ValueError):
    """The text is no bottle (``not_a_bottle``) or a damaged one (``damaged_bottle``)."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.code = code
        self.message = message
        self.hint = hint


def parse(text: str) -> Document:
    """Reads a bottle. Raises :class:`BadBottle` for anything that :func:`render` did not write."""
    parts = _split(text)
    header, request = _read_head(parts.head)
    entries, lines = _read_entries(parts.conversation, parts.first_line)
    return Document(
        header=header,
        entries=entries,
        original_request=_read_request(request, entries, lines),
        closing=decode(parts.closing, closing=True),
        index=_read_index(parts.index_part),
    )


def parse_header(text: str) -> Header:
    """The header alone; the beginning of a bottle is enough. Raises :class:`BadBottle`."""
    return _read_head(text.split("\n\n", 1)[0] + "\n\n")[0]


def conversation_part(text: str) -> str:
    """The conversation part as it stands in the bottle, without its heading. Raises :class:`BadBottle`."""
    return _split(text).conversation


class _Parts(NamedTuple):
    head: str
    conversation: str
    index_part: str
    closing: str
    first_line: int


def _split(text: str) -> _Parts:
    """Cuts at the headings, which no message can hold as a line."""
    _check_title(text)
    start = text.find(_START)
    if start < 0:
        raise _damaged("it has no conversation part")
    begin = start + len(_START)
    end = text.find(f"\n{CLOSING}\n", begin - 1)
    if end < 0 or not text.endswith("\n"):
        raise _damaged("its end is missing")
    index_at = text.find(f"\n{INDEX}\n", begin - 1, end + 1)
    stop = end + 1 if index_at < 0 else index_at + 1
    return _Parts(
        head=text[: start + 1],
        conversation=text[begin:stop],
        index_part=text[stop : end + 1],
        closing=text[end + len(CLOSING) + 2 : -1],
        first_line=text.count("\n", 0, begin) + 1,
    )


def _damaged(what: str) -> BadBottle:
    return BadBottle("damaged_bottle", f"The bottle is damaged: {what}.", "Render it again from its session.")


def _check_title(text: str) -> str:
    title = _TITLE.fullmatch(text.split("\n", 1)[0])
    if title is None:
        raise BadBottle(
            "not_a_bottle",
            "This is no bottle: it does not begin with '# Session bottle — <id>'.",
            "Name a file that this program rendered.",
        )
    return title["id"]


# The head


def _read_head(head: str) -> tuple[Header, str | None]:
    """Header and the encoded body of the original request."""
    session_id = _check_title(head)
    lines, _, rest = head.partition("\n\n")
    _, project_line, mode, *notes = [*lines.split("\n"), "", ""]
    project = _PROJECT.fullmatch(project_line)
    if project is None or not mode.startswith("mode: "):
        raise _damaged("its header is not complete")
    notes = [note for note in notes if note]
    if not all(note.startswith("note: ") for note in notes):
        raise _damaged("its header has a line of no known kind")
    header = Header(
        content_session_id=session_id,
        project=project[1],
        mode=mode[6:],
        legs=_number(project[3]),
        started=_full_time(project[2]),
        rendered=_full_time(project[4]),
        notes=[note[6:] for note in notes],
    )
    if not rest:
        return header, None
    if not rest.startswith(f"{REQUEST}\n") or not rest.endswith("\n\n"):
        raise _damaged("its original request is not where it belongs")
    return header, rest[len(REQUEST) + 1 : -2]


def _read_request(body: str | None, entries: list[Entry], lines: list[int]) -> str | None:
    if body is None:
        return None
    pointer = _ELSEWHERE.fullmatch(body.rpartition("\n")[2])
    if pointer is None:
        return decode(body)
    line = _number(pointer["line"])
    entry = entries[lines.index(line)] if line in lines else None
    if not isinstance(entry, Speech):
        raise _damaged(f"line {line} should hold the original request")
    return entry.text


def _read_index(text: str) -> list[IndexLine]:
    if not text:
        return []
    found = [_INDEX_LINE.fullmatch(line) for line in text.split("\n")[1:-2]]
    if not text.endswith("\n\n") or None in found:
        raise _damaged("its index has a line of no known kind")
    return [IndexLine(_number(m["line"]), m["text"], _full_time(m["time"])) for m in found if m]


# Entries


def _read_entries(text: str, first_line: int) -> tuple[list[Entry], list[int]]:
    """The entries, and for each the number of its first line (of a message, its speaker line)."""
    if not text:
        return [], []
    lines = text.split("\n")
    starts: list[tuple[int, int, _Read, re.Match[str]]] = []
    for at, line in enumerate(lines):
        if line[:1] in _BY_FIRST:
            for shape, read in _BY_FIRST[line[:1]]:
                match = shape.fullmatch(line)
                if match:
                    from_user = read is _read_speech and match["role"] == "User"
                    starts.append((at - from_user, at, read, match))
    if not starts or starts[0][0] != 0 or not text.endswith("\n\n"):
        raise _damaged("its conversation does not begin and end as it should")
    times = _Times()
    entries = []
    ends = [start for start, *_ in starts[1:]] + [len(lines) - 1]
    for (start, at, read, match), end in zip(starts, ends, strict=True):
        if (start < at and lines[start] != "---") or end - 1 <= at or lines[end - 1]:
            raise _damaged(f"line {first_line + at} does not begin or end an entry as it should")
        body = lines[at + 1 : end - 1]
        if body and read in (_read_boundary, _read_mark):
            raise _damaged(f"line {first_line + at + 1} belongs to nothing")
        entries.append(read(match, body, times))
    return entries, [first_line + at for _, at, *_ in starts]


def _read_speech(match: re.Match[str], body: list[str], times: _Times) -> Speech:
    role = cast("Role", match["role"].lower())
    kind = cast("MessageKind", match["kind"] or ("prompt" if role == "user" else "text"))
    cut = _TRUNCATED.fullmatch(body[-1]) if len(body) > 1 else None
    text = decode("\n".join(body[:-1] if cut else body))
    if not body:
        raise _damaged("a message has no text")
    return Speech(role, kind, text, times.read(match["time"]), _number(cut["chars"]) if cut else None)


def _read_happened(_match: re.Match[str], body: list[str], times: _Times) -> Happened:
    return Happened([_read_line(line, times) for line in body])


def _read_line(line: str, times: _Times) -> Line:
    match = _PENDING.fullmatch(line) if line.startswith("- ⏳") else None
    if match:
        ids = _ids(match["ids"]) if match["ids"] else []
        return Line(ids, _plain(match["text"], ids), True, times.read(match["time"] or "—"))
    match = _OBSERVED.fullmatch(line)
    if match:
        return Line(_ids(match["ids"]), match["text"])
    if not line.startswith("- "):
        raise _damaged("a line among what happened is of no known kind")
    return Line([], _plain(line[2:], []))


def _plain(text: str, ids: list[str]) -> str:
    return text[1:] if not ids and _ESCAPED_ID.match(text) else text


def _ids(text: str) -> list[str]:
    if "," not in text and "–" not in text:
        return [text]
    ids: list[str] = []
    for part in text.split(","):
        run = _RUN.fullmatch(part)
        if run is None:
            ids.append(part)
            continue
        first, last = int(run[2]), int(run[3])
        if not first < last < first + _LONGEST_RUN:
            raise _damaged("a run of observation ids makes no sense")
        ids.extend(f"{run[1]}{number}" for number in range(first, last + 1))
    return ids


def _read_boundary(match: re.Match[str], _body: list[str], times: _Times) -> BoundaryMark:
    tokens = match["tokens"]
    count = None if tokens is None else _number(tokens.rstrip("k")) * (1000 if tokens[-1] == "k" else 1)
    return BoundaryMark(_number(match["leg"]), match["trigger"] or "", count, times.read(match["time"]))


def _read_mark(match: re.Match[str], _body: list[str], times: _Times) -> Mark:
    return Mark(_MARK_KINDS[match["words"]], times.read(match["time"]))


def _read_summary(match: re.Match[str], body: list[str], _times: _Times) -> GeneratedSummary:
    if not body or not all(line.startswith("> ") for line in body):
        raise _damaged("a generated summary has a line that is not quoted")
    return GeneratedSummary(match["who"], decode("\n".join([line[2:] for line in body])))


_Read = Callable[[re.Match[str], list[str], "_Times"], Entry]

#: Shapes by the first character of the line.
_BY_FIRST: dict[str, list[tuple[re.Pattern[str], _Read]]] = {
    "*": [(_SPEAKER, _read_speech), (_HAPPENED, _read_happened), (_MARK, _read_mark)],
    "=": [(_BOUNDARY, _read_boundary)],
    ">": [(_SUMMARY, _read_summary)],
}


# Numbers and times


class _Times:
    """Reads clock times in document order; a time without a date is of the last date seen."""

    def __init__(self) -> None:
        self._day: int | None = None

    def read(self, text: str) -> int | None:
        if text == "—":
            return None
        day, _, clock = text.rpartition(" ")
        if day:
            self._day = _day(day)
        return None if self._day is None else self._day * _DAY + _milliseconds(clock)


def _full_time(text: str) -> int | None:
    """``2026-01-22 14:00``, with or without seconds and ``UTC``."""
    if text == "—":
        return None
    day, clock = text.split(" ")[:2]
    return _day(day) * _DAY + _milliseconds(clock)


@lru_cache(maxsize=256)
def _day(text: str) -> int:
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError:
        raise _damaged("it has a date that does not exist") from None


def _milliseconds(clock: str) -> int:
    return (int(clock[:2]) * 3600 + int(clock[3:5]) * 60 + int(clock[6:] or 0)) * 1000


def _number(digits: str) -> int:
    if len(digits) > 18:
        raise _damaged("it has a number that makes no sense")
    return int(digits)
