"""Ways in which a transcript line can be broken."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.reader.files import FIXTURES
from tests.reader.transcript import read_bytes

_NAMES = (
    "recorded/2.1.197/interactive-rewind-bash-slash-paste.jsonl",
    "recorded/2.1.197/queued-prompt-interrupt.jsonl",
    "recorded/2.1.197/background-task-continue-resume.jsonl",
    "recorded/2.1.197/three-compactions-auto-and-manual.jsonl",
    "public/2.1.42-interrupts-notifications.jsonl.gz",
    "public/1.0.108-japanese-sidechains.jsonl.gz",
    "public/2.1.63-plan.jsonl.gz",
)
LINES = [line for name in _NAMES for line in read_bytes(FIXTURES / name).split(b"\n") if 0 < len(line) < 20_000]

#: JSON values that are of the wrong type for nearly every field.
WRONG: list[Any] = [
    None, True, False, 0, -1, 2**63, 10**40, 1.5, float("nan"), float("inf"), "", "x", "\ud800", "null", "a\x00b",
    "2026-01-01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", [], {}, [[]], [{}], [None, 1, "x"],
    {"type": []}, {"type": {}}, {"text": []}, [{"type": "text", "text": 1}], [{"type": {}}], [{"type": "tool_use"}],
    [{"type": "tool_use", "id": [], "name": {}, "input": []}], [{"type": "tool_use", "id": "a", "name": "Bash", "input": 3}],
    [{"type": "tool_result", "tool_use_id": {}, "content": {}}], [{"type": "image"}, {"type": "document", "title": []}],
]  # fmt: skip
KEYS = [
    "type",
    "subtype",
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "sessionId",
    "timestamp",
    "isMeta",
    "isSidechain",
    "isCompactSummary",
    "planContent",
    "message",
    "toolUseResult",
    "origin",
    "operation",
    "content",
    "attachment",
    "compactMetadata",
    "data",
    "agentId",
    "cwd",
    "version",
    "gitBranch",
    "customTitle",
    "aiTitle",
    "summary",
    "promptId",
    "id",
    "model",
    "usage",
    "text",
    "name",
    "input",
    "tool_use_id",
    "is_error",
    "title",
    "kind",
    "prompt",
    "commandMode",
    "hookEvent",
    "stdout",
    "trigger",
    "preTokens",
    "preservedSegment",
    "tailUuid",
    "answers",
    "questions",
    "command",
    "file_path",
    "structuredPatch",
    "lines",
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything inside a JSON value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = deepcopy(new)


@st.composite
def wrong_fields(draw: Any) -> bytes:
    """A real line with some of its fields of another type, and others it should not have."""
    entry = json.loads(draw(st.sampled_from(LINES)))
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            put(entry, draw(st.sampled_from(places(entry))), draw(st.sampled_from(WRONG)))
        else:
            put(entry, (draw(st.sampled_from(KEYS)),), draw(st.sampled_from(WRONG)))
    return json.dumps(entry).encode()


@st.composite
def broken_bytes(draw: Any) -> bytes:
    """A real line with bytes taken out, put in or changed."""
    line = bytearray(draw(st.sampled_from(LINES)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(line) - 1)))
        junk = draw(
            st.sampled_from(
                [b"", b"\xff", b"\xed\xa0\x80", b"\x00", b"NaN", b'"', b"{", b"}", b"\\ud83d", b"\r", b"\n"]
            )
        )
        line[at : at + draw(st.integers(0, 3))] = junk
    return bytes(line)


@st.composite
def torn(draw: Any) -> bytes:
    """The beginning of a line, alone or with a whole one behind it on the same line."""
    line = draw(st.sampled_from(LINES))
    head = line[: draw(st.integers(0, len(line)))]
    return head + draw(st.sampled_from([b"", b" ", *LINES[:40]]))


def nested(depth: int) -> list[bytes]:
    """Lines that are deeper than anybody reads."""
    deep = b"[" * depth + b"]" * depth
    dicts = b'{"a":' * depth + b"1" + b"}" * depth
    return [
        deep, dicts,
        b'{"type":"user","uuid":"d","message":{"content":' + deep + b"}}",
        b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"d","name":"Bash","input":{"command":' + dicts + b"}}]}}",
        b'{"type":"user","toolUseResult":' + dicts + b',"message":{"content":[{"type":"tool_result","tool_use_id":"d","content":' + deep + b"}]}}",
        b'\xef\xbb\xbf{"type":"progress","data":{"type":"agent_progress","message":' + dicts + b"}}",
        b'{"type":"attachment","attachment":{"type":"queued_command","prompt":' + deep + b"}}",
    ]  # fmt: skip


lines = st.one_of(
    st.sampled_from(LINES),
    wrong_fields(),
    broken_bytes(),
    torn(),
    st.tuples(st.sampled_from(LINES), st.sampled_from(LINES)).map(b"".join),
    st.sampled_from(LINES).map(lambda line: b"\xef\xbb\xbf" + line),
    st.binary(max_size=80),
    st.recursive(
        st.sampled_from(WRONG), lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=5), max_leaves=12
    ).map(lambda value: json.dumps(value).encode()),
    st.sampled_from([line for depth in (40, 400, 3_000, 200_000) for line in nested(depth)]),
)
files = st.lists(lines, max_size=12).flatmap(
    lambda found: st.sampled_from([b"\n", b"\r\n", b"\n\n"]).map(lambda end: end.join(found) + end)
)
