"""Whatever a transcript holds: no digest raises, all are bounded, and cost does not grow with the output."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endless_mode.clients.claude_code.detail import Detail, FileDetail, TaskDetail
from endless_mode.clients.claude_code.digest import TOOLS, describe, digest
from endless_mode.model import Status, ToolEvent
from endless_mode.observe.rules import RulesObserver

NAMES = [*TOOLS, "mcp__a__b", "mcp__", "", "Nothing"]
KEYS = [
    "command",
    "file_path",
    "path",
    "pattern",
    "old_string",
    "new_string",
    "content",
    "edits",
    "todos",
    "questions",
    "query",
    "url",
    "prompt",
    "description",
    "subagent_type",
    "taskId",
    "task_id",
    "status",
    "subject",
    "notebook_path",
    "new_source",
    "output_mode",
    "glob",
    "offset",
    "limit",
    "skill",
    "plan",
    "operation",
    "filePath",
    "cell_id",
    "edit_mode",
    "bash_id",
    "uri",
    "replace_all",
    "addBlockedBy",
]
PIECES = st.sampled_from(
    [
        "Exit code 1\n",
        "FAILED a::b - x",
        "\n",
        "error: ",
        '  File "a.py", line 3\n',
        "a/b.py:12: ",
        "Found 3 files\n",
        "     1→",
        "<output>",
        "</output>",
        "<tool_use_error>",
        "\x1b[31m",
        "\r",
        "--- FAIL: ",
        "ok  \tx\t1s\n",
        "[main 1a2b3c4] x",
        "<<'EOF'\n",
        "EOF",
        "agentId: x",
        "\u2028",
        "\x85",
        "😀",
        "\ud800",
        "#1 [done] x\n",
        "## H\n",
        "12 passed in 1s",
        "`",
        "://",
        '{"title":"a","url":"b"}]',
        '"q"="a"',
        "diff --git a/x b/x\n",
        "| ",
        "; ",
        "&& git ",
        "pytest ",
    ]
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=12).map("".join))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda v: st.lists(v, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=8), v, max_size=4),
    max_leaves=8,
)
TODO = st.fixed_dictionaries(
    {},
    optional={
        "content": VALUES,
        "status": st.sampled_from(["pending", "completed", "odd"]) | VALUES,
        "id": VALUES,
    },
)
PATCH = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "lines": st.lists(TEXTS.map(lambda t: "+" + t) | VALUES, max_size=4) | VALUES,
            "newStart": VALUES,
        },
    )
    | VALUES,
    max_size=3,
)
QUESTION = st.fixed_dictionaries({}, optional={"question": VALUES, "header": VALUES, "options": VALUES})
ARGUMENTS = st.one_of(
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6),
    st.fixed_dictionaries(
        {},
        optional={
            "todos": st.lists(TODO, max_size=4),
            "questions": st.lists(QUESTION, max_size=3),
            "command": TEXTS,
            "pattern": TEXTS,
            "file_path": TEXTS,
            "output_mode": st.just("content"),
            "edits": st.lists(VALUES, max_size=3),
            "old_string": TEXTS,
            "new_string": TEXTS,
            "content": TEXTS,
        },
    ),
    VALUES,
)


def struct(kind: type[Any]) -> st.SearchStrategy[Any]:
    fields = {field.name: VALUES for field in msgspec.structs.fields(kind)}
    if kind is Detail:
        fields |= {
            "file": struct(FileDetail) | VALUES,
            "task": struct(TaskDetail) | VALUES,
            "structured_patch": PATCH,
        }
    return st.fixed_dictionaries({}, optional=fields).map(lambda found: kind(**found))


@st.composite
def events(draw: st.DrawFn) -> ToolEvent:
    return ToolEvent(
        "t",
        draw(st.sampled_from(NAMES) | TEXTS),
        0,
        0,
        draw(ARGUMENTS),
        result=draw(TEXTS | TEXTS | VALUES),
        detail=draw(struct(Detail) | VALUES),
        status=draw(st.sampled_from(get_args(Status))),
        words=draw(TEXTS),
        cwd=draw(TEXTS),
    )


def line(event: ToolEvent) -> str:
    observation = RulesObserver().observe(describe(event), event.cwd)
    outcome = observation.narrative.split("\n", 1)[0]
    for text in (observation.title, observation.subtitle, outcome, *observation.facts, *observation.concepts):
        assert len(text.splitlines()) <= 1
        assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text)
    assert observation.title == f"{observation.run} {observation.subtitle}" or not observation.run
    assert len(observation.title) <= 1_200
    assert len(outcome) <= 400
    assert len(observation.narrative) <= 6_000
    return f"{observation.title} — {outcome}"


@settings(max_examples=120, deadline=None)
@given(events())
def test_nothing_raises_and_every_line_is_one_line(event: ToolEvent) -> None:
    line(event)
    assert describe(event).kind


@pytest.mark.parametrize("name", NAMES)
def test_no_tool_fails_without_arguments(name: str) -> None:
    for status in get_args(Status):
        line(ToolEvent("t", name, 0, 0, {}, status=status))


@pytest.mark.parametrize("name", NAMES)
def test_numbers_too_long_to_print_are_left_out(name: str) -> None:
    huge = 10**5_000
    event = ToolEvent("t", name, 0, 0, dict.fromkeys(KEYS, huge), result=huge, detail=Detail(total_tokens=huge))  # type: ignore[arg-type]
    for status in get_args(Status):
        event.status = status
        line(event)


FILLERS = {
    "one long word": "a" * 300_000,
    "slashes": "a/" * 150_000,
    "empty lines": "\n" * 300_000,
    "spaces": " " * 300_000,
    "dots": "a.b" * 100_000,
    "errors": "x.py:1: error: y\n" * 20_000,
    "failures": "FAILED a::b\n" * 20_000,
    "digits": "1" * 300_000,
    "numbers": "12 passed, " * 30_000,
    "tabs and arrows": "     1→\tfunc \n" * 20_000,
    "quotes": '"' * 300_000,
    "brackets": "(" * 300_000,
    "colours": "\x1b[" * 100_000,
    "returns": "a\r" * 100_000,
    "pairs": '{"title":"' * 30_000,
    "heredocs": "<<EOF\n" * 50_000,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("filler", FILLERS.values(), ids=FILLERS)
def test_large_inputs_and_outputs_give_small_digests(name: str, filler: str) -> None:
    arguments = {key: filler for key in KEYS if key not in ("edits", "todos", "questions")}
    arguments["file_path"] = "a.ts"
    arguments |= {
        "todos": [{"content": filler}] * 80,
        "edits": [{"new_string": filler}] * 3,
        "questions": [{"question": filler}],
    }  # type: ignore[dict-item]
    patch = [{"newStart": 1, "lines": [f"+{filler[:400]}"] * 300}]
    detail = Detail(
        structured_patch=patch,
        answers={filler: filler},
        message=filler,
        plan=filler,
        task=TaskDetail(description=filler),
    )
    event = ToolEvent(
        "t", name, 0, 0, arguments, result=filler, detail=detail, status="failed", words=filler, cwd=filler
    )
    for status in get_args(Status):
        event.status = status
        made = describe(event)
        if name not in ("TodoWrite", "TaskList"):
            assert len(msgspec.json.encode(made)) < 24_000
        line(event)


def test_a_digest_survives_the_store() -> None:
    made = digest(ToolEvent("t", "Bash", 0, 0, {"command": "pytest"}, result="1 failed in 1s", status="failed"))
    assert msgspec.json.decode(msgspec.json.encode(made), type=type(made)) == made


def test_detail_skips_what_is_large_and_takes_any_shape() -> None:
    decoder = msgspec.json.Decoder(Detail | str | list[Any] | None)
    made = decoder.decode(
        b'{"type":"text","originalFile":"x","stdout":"y","file":{"filePath":"a","content":"z","totalLines":3},"task":{"output":"z","task_id":"b"},"shell_id":"s"}'
    )
    assert isinstance(made, Detail)
    assert made.file == FileDetail(file_path="a", total_lines=3)
    assert made.task == TaskDetail(task_id="b")
    assert made.killed_shell_id == "s"
    for odd in (
        b'{"file":[1],"task":"x","structuredPatch":3}',
        b'{"file":null,"task":2.5,"answers":[]}',
        b'"Error: x"',
        b'[{"type":"text"}]',
        b"null",
    ):
        decoder.decode(odd)
