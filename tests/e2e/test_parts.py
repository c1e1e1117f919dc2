"""The laboratory's own parts, without a client."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest

from .answers import Answer, Tool, bash, call, overloaded, say
from .messages_api import MessagesApi
from .plan import HANDOFF_HEADER, follow_plan, planned_reads
from .recorded import SUMMARISER_MARK, Request, texts_of
from .side import fill

TOOLS = [{"name": "Bash", "input_schema": {}}]


def body(*texts: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text} for text in texts]
    return {"model": "m", "max_tokens": 100, "messages": messages, "tools": TOOLS, **more}


def post(api: MessagesApi, request: dict[str, Any], path: str = "/v1/messages", **headers: str) -> str:
    asked = urllib.request.Request(api.url + path, json.dumps(request).encode(), headers)
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return str(answer.read().decode())


def test_a_script_answers_the_main_line_alone() -> None:
    with MessagesApi([say("first"), say("second")], otherwise=say("over")) as api:
        said = [json.loads(post(api, body("hello")))["content"][0]["text"] for _ in range(2)]
        post(api, body("x", f"{SUMMARISER_MARK}. Do not call tools."))
        post(api, body("title?", tools=[]))
        post(api, body("inner"), **{"x-claude-code-agent-id": "a1"})
        assert "over" in post(api, body("hello"))
    assert said == ["first", "second"]
    assert [r.kind for r in api.requests] == ["main", "main", "summariser", "side", "subagent", "main"]
    assert api.after_compaction().number == 5


def test_a_stream_ends_with_the_reported_usage() -> None:
    with MessagesApi([call(bash("ls")).full()]) as api:
        lines = post(api, body("go", stream=True)).splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert events[0]["message"]["usage"]["input_tokens"] == 198_000
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    partial = next(e["delta"] for e in events if e["type"] == "content_block_delta")
    assert json.loads(partial["partial_json"])["command"] == "ls"


def test_errors_keep_the_apis_shape() -> None:
    with MessagesApi([overloaded()]) as api:
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(api, body("go"))
        assert json.loads(caught.value.read())["error"]["type"] == "overloaded_error"
    assert caught.value.code == 529


def test_tokens_are_counted_and_unknown_paths_refused() -> None:
    with MessagesApi() as api:
        counted = json.loads(post(api, body("x" * 400), "/v1/messages/count_tokens"))
        assert counted["input_tokens"] >= 100
        with pytest.raises(urllib.error.HTTPError):
            post(api, body("x"), "/v1/other")
    assert api.requests == []


def test_an_answer_can_be_held_back() -> None:
    gate, said = threading.Event(), []
    with MessagesApi([say("late").held(gate)]) as api:
        asking = threading.Thread(target=lambda: said.append(post(api, body("go"))))
        asking.start()
        api.wait(lambda api: len(api.main) == 1)
        assert said == []
        gate.set()
        asking.join(10)
    assert "late" in said[0]


def test_a_failing_script_fails_the_test() -> None:
    def broken(request: Request) -> Answer:
        raise ValueError("wrong")

    def ask() -> None:
        with MessagesApi(broken) as api, pytest.raises(urllib.error.HTTPError):
            post(api, body("go"))

    with pytest.raises(AssertionError, match="wrong"):
        ask()


def test_every_text_the_model_sees_is_found() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "five"}]}
    used = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "four"}}
    request = {
        "system": [{"type": "text", "text": "one"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "two"}]},
            {"role": "system", "content": "three"},
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [result, {"type": "image", "source": {}}]},
        ],
    }
    assert [(part.role, part.where) for part in texts_of(request)] == [
        ("system", "system"),
        ("user", "text"),
        ("system", "text"),
        ("assistant", "tool_use"),
        ("user", "tool_result"),
    ]
    assert "five" in Request(0, "main", request, {}).text


def test_a_plan_is_read_from_the_handoff() -> None:
    handoff = (
        f'{HANDOFF_HEADER}\n1. Read(file_path="/a b/x.md", offset=11, limit=20)\n'
        '2. `Read(file_path="/a b/x.md")` and not Read(it)'
    )
    assert planned_reads(handoff) == [
        Tool("Read", {"file_path": "/a b/x.md", "offset": 11, "limit": 20}),
        Tool("Read", {"file_path": "/a b/x.md"}),
    ]


def test_following_a_plan_waits_for_the_handoff_and_ends() -> None:
    step = follow_plan(together=1)
    plain = Request(0, "main", body("nothing here"), {})
    handoff = f'{HANDOFF_HEADER}\nRead(file_path="/x", offset=1, limit=2)\nRead(file_path="/y")'
    pointed = Request(1, "main", body("before", handoff), {})
    assert step(plain) is None
    first, second = step(pointed), step(pointed)
    assert first is not None and second is not None
    assert (first.stay, second.stay) == (True, False)
    assert [tool.input["file_path"] for tool in step.issued] == ["/x", "/y"]


def test_a_schema_is_filled_with_the_smallest_value() -> None:
    properties = {"title": {"type": "string"}, "isNew": {"type": "boolean"}, "kind": {"enum": ["a", "b"]}}
    assert fill({"type": "object", "properties": properties}) == {
        "title": "Laboratory work",
        "isNew": False,
        "kind": "a",
    }
