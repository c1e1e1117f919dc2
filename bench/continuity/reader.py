"""A small reader of transcripts, the bench's own, so that a fault of the product's reader shows.

File order is the spine, the first copy of each uuid counts, sidechain lines are left out. What the model saw
becomes an `Event`; everything else (progress, snapshots, thinking, synthetic lines) is dropped.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
_DECODER = json.JSONDecoder()

ENVELOPES = (
    '{"task_id"',
    "<agent-notification>",
    "<task-notification>",
    "<teammate-message",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<command-name>",
    "<command-message>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "[Request interrupted by user",
    "Caveat: The messages below",
    "This session is being continued from a previous conversation",
)
_NOTE = re.compile(r"<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics)>.*?</\1>", re.S)


@dataclass(frozen=True, slots=True)
class FileSlice:
    """What one Read showed of a file: lines from `start` (1-based) out of `total`."""

    path: str
    content: str
    start: int
    total: int


@dataclass(slots=True)
class Event:
    """One thing the model saw or did.

    kind: `user` (a person's words), `assistant` (text), `call`, `result`, `plan` (written by the client as a
    prompt), `injected` (anything else in a user line), `summary`, `boundary`.
    `offset` is the byte offset of its line.
    """

    kind: str
    text: str
    offset: int
    uuid: str = ""
    name: str = ""
    call_id: str = ""
    input: Json = field(default_factory=dict)
    error: bool = False
    file: FileSlice | None = None
    preserved: tuple[str, ...] = ()


@dataclass(slots=True)
class Session:
    """A transcript: its bytes, its events, and (offset, tokens in context) of each assistant line."""

    name: str
    data: bytes
    events: list[Event]
    usage: list[tuple[int, int]]
    cwds: tuple[str, ...]
    branches: tuple[str, ...]


def load(path: Path) -> bytes:
    """The transcript's bytes, unpacked when the name ends in .gz."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def objects(data: bytes) -> Iterator[tuple[int, Json]]:
    """(byte offset of the line, object) for every JSON object; what does not parse is skipped."""
    offset = 0
    for raw in data.split(b"\n"):
        line = raw.decode("utf-8", "replace").strip()
        at = 0
        while at < len(line):
            try:
                value, at = _DECODER.raw_decode(line, at)
            except ValueError:
                break
            if isinstance(value, dict):
                yield offset, value
            while at < len(line) and line[at].isspace():
                at += 1
        offset += len(raw) + 1


def parse(name: str, data: bytes) -> Session:
    """Read a whole transcript."""
    kept = list(_first_copies(objects(data)))
    typed = {t.strip() for _, d in kept if d.get("type") == "user" for t in texts(_content(d))}
    events: list[Event] = []
    usage: list[tuple[int, int]] = []
    cwds: dict[str, None] = {}
    branches: dict[str, None] = {}
    waiting: list[Event] = []
    for offset, d in kept:
        cwds.setdefault(str(d.get("cwd") or ""))
        branches.setdefault(str(d.get("gitBranch") or ""))
        if d.get("type") == "queue-operation":
            _queue(d, offset, typed, events, waiting)
            continue
        events.extend(_events(d, offset))
        if total := _usage(d):
            usage.append((offset, total))
    _name_results(events)
    return Session(name, data, events, usage, tuple(c for c in cwds if c), tuple(b for b in branches if b))


def texts(content: object) -> list[str]:
    """The text parts of a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [str(b.get("text") or "") for b in content if isinstance(b, dict) and b.get("type") == "text"]


def _content(d: Json) -> object:
    message = d.get("message")
    return message.get("content") if isinstance(message, dict) else None


def _first_copies(pairs: Iterator[tuple[int, Json]]) -> Iterator[tuple[int, Json]]:
    seen: set[str] = set()
    for offset, d in pairs:
        if d.get("isSidechain"):
            continue
        uuid = d.get("uuid")
        if isinstance(uuid, str):
            if uuid in seen:
                continue
            seen.add(uuid)
        yield offset, d


def _events(d: Json, offset: int) -> Iterator[Event]:
    kind = d.get("type")
    if kind == "user":
        yield from _user(d, offset)
    elif kind == "assistant":
        yield from _assistant(d, offset)
    elif kind == "system" and d.get("subtype") == "compact_boundary":
        kept = _part(_part(d, "compactMetadata"), "preservedMessages").get("uuids")
        kept = kept if isinstance(kept, list) else []
        yield Event("boundary", "", offset, str(d.get("uuid") or ""), preserved=tuple(map(str, kept)))
    elif kind == "attachment":
        yield from _attachment(d, offset)


def _user(d: Json, offset: int) -> Iterator[Event]:
    content, uuid = _content(d), str(d.get("uuid") or "")
    results = (
        [b for b in content if isinstance(b, dict) and b.get("type") == "tool_result"]
        if isinstance(content, list)
        else []
    )
    for block in results:
        text = "\n".join(texts(block.get("content")))
        yield Event(
            "result",
            text,
            offset,
            uuid,
            call_id=str(block.get("tool_use_id") or ""),
            error=bool(block.get("is_error")),
            file=_slice(d.get("toolUseResult")),
        )
    parts = texts(content)
    whole = "\n".join(parts)
    if not whole.strip():
        return
    if d.get("isCompactSummary"):
        yield Event("summary", whole, offset, uuid)
    elif d.get("planContent"):
        yield Event("plan", str(d["planContent"]), offset, uuid)
    elif results or d.get("isMeta") or _part(d, "origin").get("kind") not in (None, "human"):
        yield Event("injected", whole, offset, uuid)
    else:
        own = "\n".join(t for t in (_NOTE.sub("", p).strip() for p in parts) if t)
        spoken = bool(own) and not own.startswith(ENVELOPES)
        yield Event("user" if spoken else "injected", own if spoken else whole, offset, uuid)


def _assistant(d: Json, offset: int) -> Iterator[Event]:
    message = _part(d, "message")
    if message.get("model") == "<synthetic>" or d.get("isApiErrorMessage"):
        return
    uuid = str(d.get("uuid") or "")
    blocks = message.get("content")
    for block in blocks if isinstance(blocks, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") == "text" and str(block.get("text") or "").strip():
            yield Event("assistant", str(block["text"]), offset, uuid)
        elif block.get("type") == "tool_use":
            given = block.get("input")
            yield Event(
                "call",
                "",
                offset,
                uuid,
                str(block.get("name") or ""),
                str(block.get("id") or ""),
                given if isinstance(given, dict) else {},
            )


def _attachment(d: Json, offset: int) -> Iterator[Event]:
    attachment = _part(d, "attachment")
    uuid = str(d.get("uuid") or "")
    if attachment.get("type") == "queued_command":
        text = "\n".join(texts(attachment.get("prompt")))
        human = _part(attachment, "origin").get("kind") in (None, "human")
        person = attachment.get("commandMode", "prompt") == "prompt" and human
        if text.strip():
            yield Event("user" if person else "injected", text, offset, uuid)
    elif isinstance(attachment.get("content"), str):
        yield Event("injected", attachment["content"], offset, uuid)


def _queue(d: Json, offset: int, typed: set[str], events: list[Event], waiting: list[Event]) -> None:
    """Typed while the model worked: a prompt unless it stands in a user line or was taken back (`popAll`)."""
    operation = d.get("operation")
    if operation == "popAll":
        for event in waiting:
            events.remove(event)
    if operation in ("popAll", "remove", "dequeue"):
        waiting.clear()
    text = "\n".join(texts(d.get("content")))
    if (
        operation == "enqueue"
        and text.strip()
        and text.strip() not in typed
        and not text.lstrip().startswith((*ENVELOPES, "/"))
    ):
        event = Event("user", text, offset)
        events.append(event)
        waiting.append(event)


def _slice(result: object) -> FileSlice | None:
    found = result.get("file") if isinstance(result, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("content"), str):
        return None
    lines = found["content"].count("\n") + 1
    return FileSlice(
        str(found.get("filePath") or ""),
        found["content"],
        _number(found.get("startLine")) or 1,
        _number(found.get("totalLines")) or lines,
    )


def _usage(d: Json) -> int:
    if d.get("type") != "assistant":
        return 0
    usage = _part(_part(d, "message"), "usage")
    keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    return sum(_number(usage.get(k)) for k in keys)


def _part(value: Json, key: str) -> Json:
    """An object within an object; an empty one when it is something else."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _name_results(events: list[Event]) -> None:
    names = {e.call_id: e.name for e in events if e.kind == "call"}
    for event in events:
        if event.kind == "result":
            event.name = names.get(event.call_id, "")
