"""What a bottle holds, in document order.

Times are milliseconds since the epoch, ``None`` where unknown. A bottle shows them in UTC: messages to the
minute, pending lines to the second, so a parsed document has them rounded down to that.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from endless_mode.model import MessageKind, Role

MODE_FULL = "full (transcript + observations)"
MODE_STORED = "full (stored conversation + observations)"
MODE_RECONSTRUCTED = (
    "reconstructed (transcript unavailable) — user messages verbatim; "
    "assistant messages not preserved; summaries are generated"
)

MarkKind = Literal["interrupted", "private", "rewound"]


class Speech(Struct, frozen=True, gc=False, tag=True):
    """Words of the user or the assistant, verbatim; of a cut text ``truncated_at`` characters survive."""

    role: Role
    kind: MessageKind
    text: str
    at: int | None = None
    truncated_at: int | None = None


class Line(Struct, frozen=True, gc=False):
    """One line of what happened: one observation (``["12"]``), a run of them, or a tool event without any.

    ``text`` is one line (control characters and line separators become spaces). ``at`` is shown, and survives
    parsing, on pending lines only.
    """

    ids: list[str]
    text: str
    pending: bool = False
    at: int | None = None


class Happened(Struct, frozen=True, gc=False, tag=True):
    """Tool activity between two messages."""

    lines: list[Line]


class BoundaryMark(Struct, frozen=True, gc=False, tag=True):
    """The client compacted here and leg number ``leg`` begins (the first leg is 1).

    ``pre_tokens`` is shown, and survives parsing, in thousands from 1,000 on.
    """

    leg: int
    trigger: str = ""
    pre_tokens: int | None = None
    at: int | None = None


class Mark(Struct, frozen=True, gc=False, tag=True):
    """Something worth knowing that nobody said."""

    kind: MarkKind
    at: int | None = None


class GeneratedSummary(Struct, frozen=True, gc=False, tag=True):
    """Text written by ``who`` (a program or its model), never the words of a speaker."""

    who: str
    text: str


Entry = Speech | Happened | BoundaryMark | Mark | GeneratedSummary


class Header(Struct, frozen=True):
    """The head of a bottle. Texts are one line each; times survive parsing to the second."""

    content_session_id: str
    project: str
    mode: str
    legs: int = 1
    started: int | None = None
    rendered: int | None = None
    notes: list[str] = []


class IndexLine(Struct, frozen=True, gc=False):
    """Where a user turn stands: 1-based line of its speaker line, time, how it begins."""

    line: int
    text: str
    at: int | None = None


class Document(Struct):
    """A whole bottle. ``index`` is derived when rendering; what is given there is ignored."""

    header: Header
    entries: list[Entry]
    original_request: str | None = None
    closing: str = ""
    index: list[IndexLine] = []
