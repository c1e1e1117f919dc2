"""One transcript line as a typed entry: fast decode first, tolerant decode when that fails.

Ladder (client versions 1.0.98 to 2.1.332): msgspec straight into :class:`Entry`, which skips everything not
declared here; then the standard library, which accepts NaN, lone surrogates (scrubbed), bad UTF-8 (replaced),
a byte order mark and several objects on one line; then the line is counted and skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from endless_mode.clients.base import Source
from endless_mode.clients.claude_code.detail import Detail

T = TypeVar("T")

_BOM = b"\xef\xbb\xbf"
_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)


class Block(Struct, gc=False):
    """A content block; which fields are set depends on ``type``."""

    type: str = ""
    text: Any = None
    id: Any = None
    name: Any = None
    input: Any = None
    tool_use_id: Any = None
    content: Any = None
    is_error: Any = None
    title: Any = None


class Usage(Struct, gc=False):
    input_tokens: Any = 0
    cache_creation_input_tokens: Any = 0
    cache_read_input_tokens: Any = 0
    output_tokens: Any = 0


class Body(Struct, gc=False):
    """The ``message`` of a user or assistant entry."""

    id: Any = None
    model: Any = None
    content: str | list[Block] | None = None
    usage: Usage | None = None


class Origin(Struct, gc=False):
    kind: Any = None


class Attachment(Struct, gc=False):
    type: Any = None
    prompt: Any = None
    commandMode: Any = None
    origin: Origin | None = None
    hookName: Any = None
    hookEvent: Any = None
    content: Any = None
    stdout: Any = None


class Segment(Struct, gc=False):
    tailUuid: Any = None


class Compact(Struct, gc=False):
    trigger: Any = None
    preTokens: Any = None
    preservedSegment: Segment | None = None


class Progress(Struct, gc=False):
    type: Any = None
    agentId: Any = None
    message: msgspec.Raw = msgspec.Raw()


class Entry(Struct, gc=False):
    """The keys of a transcript object that mean something to us; the rest is skipped undecoded."""

    type: Any = None
    subtype: Any = None
    uuid: Any = None
    parentUuid: Any = None
    logicalParentUuid: Any = None
    sessionId: Any = None
    timestamp: Any = None
    promptId: Any = None
    isMeta: Any = None
    isSidechain: Any = None
    isCompactSummary: Any = None
    planContent: Any = None
    message: Body | None = None
    toolUseResult: Detail | str | list[Any] | None = None
    origin: Origin | None = None
    operation: Any = None
    content: Any = None
    attachment: Attachment | None = None
    compactMetadata: Compact | None = None
    data: Progress | None = None
    agentId: Any = None
    cwd: Any = None
    version: Any = None
    gitBranch: Any = None
    customTitle: Any = None
    aiTitle: Any = None
    summary: Any = None


class Link(Struct, gc=False):
    """What the look back for rewound branches needs of an entry."""

    type: Any = None
    subtype: Any = None
    uuid: Any = None
    parentUuid: Any = None
    logicalParentUuid: Any = None
    isMeta: Any = None
    isSidechain: Any = None
    compactMetadata: Compact | None = None
    message: Body | None = None


_entry = msgspec.json.Decoder(Entry)
_link = msgspec.json.Decoder(Link)
_scan = json.JSONDecoder(strict=False)


def decode(data: bytes, offset: int) -> list[tuple[int, Entry]] | None:
    """The entries of one line with their byte offsets; ``None`` for a line that holds none."""
    try:
        entry = _entry.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _tolerant(data, offset, Entry) or None
    if data[0] != 0x7B:
        offset += len(data) - len(data.lstrip())
    return [(offset, entry)]


def decode_link(data: bytes) -> list[Link]:
    """The same ladder for the look back."""
    try:
        return [_link.decode(data)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return [e for _, e in _tolerant(data, 0, Link)]


def is_whole(data: bytes) -> bool:
    """Whether a line without its newline is complete all the same: it ends with a whole object."""
    text = data.strip()
    if not text.endswith(b"}"):
        return False
    try:
        objects, clean = _objects(data)
    except RecursionError:
        return False
    return clean and bool(objects)


def _objects(data: bytes) -> tuple[list[tuple[int, dict[str, Any]]], bool]:
    """All objects on a line with their byte offsets in it, and whether nothing else stood there."""
    text = data.decode("utf-8", "surrogateescape")
    at, clean = (1 if data.startswith(_BOM) else 0), True
    found: list[tuple[int, dict[str, Any]]] = []
    while at < len(text):
        if text[at] in " \t\r\n\x00":
            at += 1
            continue
        try:
            value, end = _scan.raw_decode(text, at)
        except ValueError:
            clean = False
            value, at, end = _last_object(text, at)
            if end < 0:
                return found, False
        if isinstance(value, dict):
            found.append((len(text[:at].encode("utf-8", "surrogateescape")), value))
        else:
            clean = False
        at = end
    return found, clean


def _last_object(text: str, at: int) -> tuple[Any, int, int]:
    """A whole object at the end of a line that begins with a torn one: a writer died and the next one appended."""
    length = len(text.rstrip())
    for _ in range(256):
        at = text.find('{"', at + 1)
        if at < 0:
            break
        try:
            value, end = _scan.raw_decode(text, at)
        except ValueError:
            continue
        if end == length and isinstance(value, dict) and "type" in value:
            return value, at, end
    return None, at, -1


def _tolerant(data: bytes, offset: int, kind: type[T]) -> list[tuple[int, T]]:
    try:
        objects, _ = _objects(data)
        return [(offset + at, _convert(scrub(value), kind)) for at, value in objects]
    except RecursionError:
        return []


def scrub(value: Any) -> Any:
    """The same JSON value without lone surrogates (each becomes U+FFFD)."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {scrub(k): scrub(v) for k, v in value.items()}
    if isinstance(value, list):
        return [scrub(v) for v in value]
    return value


def _convert(value: dict[str, Any], kind: type[T]) -> T:
    """A dict as a struct; fields of the wrong shape are left out one by one instead of losing the entry."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except (msgspec.ValidationError, RecursionError):
        pass
    fields = {f.encode_name: f for f in msgspec.structs.fields(kind)}  # type: ignore[arg-type]
    kept: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in value:
            continue
        raw = _mend(value[name]) if name == "message" else value[name]
        try:
            kept[field.name] = msgspec.convert(raw, field.type, strict=False)
        except (msgspec.ValidationError, RecursionError):
            continue
    return kind(**kept)


def _mend(message: Any) -> Any:
    """A message whose content holds bare strings or other odd things among its blocks, or whose usage is odd."""
    if not isinstance(message, dict):
        return message
    usage = message.get("usage")
    message = {**message, "usage": usage if isinstance(usage, dict) else None}
    if not isinstance(message.get("content"), list):
        return message
    blocks = [
        {"type": "text", "text": b}
        if isinstance(b, str)
        else {k: v for k, v in b.items() if k != "type" or isinstance(v, str)}
        for b in message["content"]
        if isinstance(b, str | dict)
    ]
    return {**message, "content": blocks}


def iter_blocks(body: Body | None, kind: str) -> Iterator[tuple[int, Block]]:
    """The blocks of one type with their places."""
    if body is not None and isinstance(body.content, list):
        for n, block in enumerate(body.content):
            if block.type == kind:
                yield n, block


def entries_at(source: Source, offset: int) -> list[Entry]:
    """The entries of one line, and those that old clients' progress lines hold one level down."""
    try:
        with source.open(offset) as stream:
            data = stream.readline()
    except OSError:
        return []
    found: list[Entry] = []
    for _, entry in decode(data, offset) or ():
        found.append(entry)
        if entry.data is not None and bytes(entry.data.message):
            for _, inner in decode(bytes(entry.data.message), offset) or ():
                inner.cwd = inner.cwd or entry.cwd
                found.append(inner)
    return found


def key_of(entry: Entry, offset: int, index: int) -> str:
    """A line's uuid and the block's place; a line without uuid goes by its offset."""
    if isinstance(entry.uuid, str) and entry.uuid:
        return f"{entry.uuid}#{index}" if index else entry.uuid
    return f"@{offset}#{index}" if index else f"@{offset}"


def ms_of(timestamp: Any) -> int | None:
    """An ISO timestamp as milliseconds since the epoch; one without a zone is UTC, as the client writes them."""
    if not isinstance(timestamp, str) or len(timestamp) < 10:
        return None
    try:
        when = datetime.fromisoformat(timestamp)
        return ((when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None


def text_of(value: Any) -> str:
    """A string as it is, anything else as the empty one."""
    return value if isinstance(value, str) else ""


def count_of(value: Any) -> int | None:
    """A count of tokens as one can be; what no database would hold is none."""
    return value if isinstance(value, int) and 0 <= value < 1 << 50 else None
