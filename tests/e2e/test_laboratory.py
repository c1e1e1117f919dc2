"""The laboratory proves itself: the real client does in it what it is known to do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .answers import agent, bash, call, prompt_too_long, rate_limited, read, say
from .client import Client
from .home import Home, wait_until
from .messages_api import MessagesApi
from .plan import HANDOFF_HEADER, follow_plan, handoffs_in
from .recording import record_session, turn

pytestmark = pytest.mark.e2e

EVENTS = ("PreCompact", "SessionStart", "UserPromptSubmit", "Stop", "PostCompact", "SubagentStop")
MARK = "MARKER-of-the-compact-hook"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def boundaries(path: Path) -> list[dict[str, Any]]:
    return [line for line in lines_of(path) if line.get("subtype") == "compact_boundary"]


def test_a_tool_call_runs_and_its_result_reaches_the_model(client: Client, api: MessagesApi) -> None:
    api.script([call(bash("printf %s-%s real shell")), say("The shell is real.")])
    result = client.run("Try the shell", skip_permissions=True)
    assert (result.exit, result.text) == (0, "The shell is real."), result.stderr
    assert [part.text for part in api.main[1].tool_results()] == ["real-shell"]
    assert "Try the shell" in client.home.transcript(result.session_id).read_text()


def test_hooks_of_an_auto_compaction_in_mid_turn_come_in_order(client: Client, api: MessagesApi) -> None:
    client.home.note_hooks(*EVENTS, "SessionStart:compact", says={"SessionStart:compact": MARK, "PreCompact": ""})
    api.script([call(bash("echo one")), call(bash("echo two")).full(), say("Through.")])
    result = client.run("Work until full", skip_permissions=True)
    assert result.text == "Through.", result.stderr
    order = [note.event for note in client.home.hook_notes()]
    assert order == [
        "SessionStart:startup",
        "UserPromptSubmit",
        "PreCompact:auto",
        "SubagentStop",
        "SessionStart:compact",
        "SessionStart:compact",
        "PostCompact:auto",
        "Stop",
    ]
    assert len(api.summariser) == 1
    assert api.summariser[0].count(MARK) == 0
    assert api.after_compaction().count(MARK) == 1
    assert api.after_compaction().count("Work until full") == 0
    assert len(boundaries(client.home.transcript(result.session_id))) == 1


def test_stdout_of_precompact_reaches_the_summariser(client: Client, api: MessagesApi) -> None:
    client.home.note_hooks("PreCompact", says={"PreCompact": MARK})
    api.script([call(bash("echo one")), call(bash("echo two")).full(), say("Through.")])
    client.run("Work until full", skip_permissions=True)
    assert api.summariser[0].count(MARK) == 1
    assert api.after_compaction().count(MARK) == 0


def test_a_prompt_too_long_compacts_and_goes_on(client: Client, api: MessagesApi) -> None:
    client.home.note_hooks("PreCompact", "PostCompact")
    api.script([call(bash("echo one")), call(bash("echo two")), prompt_too_long(), say("Through.")])
    result = client.run("Work until too long", skip_permissions=True)
    assert result.text == "Through.", result.stderr
    assert [note.event for note in client.home.hook_notes()] == ["PreCompact:auto", "PostCompact:auto"]


def test_the_clients_files_can_live_elsewhere(client: Client, api: MessagesApi) -> None:
    home = Home(api.url, config_elsewhere=True)
    try:
        home.note_hooks("Stop")
        result = replace(client, home=home).run("Where do you write?")
        assert home.transcript(result.session_id).is_relative_to(home.root / "config")
        assert [note.event for note in home.hook_notes()] == ["Stop"]
        assert not (home.home / ".claude").exists()
    finally:
        home.close()


def test_a_rate_limit_is_waited_out(client: Client, api: MessagesApi) -> None:
    api.script([rate_limited(retry_after=0), say("At last.")])
    assert client.run("Patience").text == "At last."
    assert len(api.main) == 2


def test_several_prompts_in_one_process_share_a_session(client: Client, api: MessagesApi) -> None:
    client.home.note_hooks("UserPromptSubmit", "Stop", "SessionEnd")
    with client.stream() as stream:
        for number in range(3):
            api.then(say(f"answer {number}"))
            assert stream.ask(f"prompt {number}")["result"] == f"answer {number}"
        stream.finish()
    assert [n.event for n in client.home.hook_notes()] == ["UserPromptSubmit", "Stop"] * 3 + ["SessionEnd:other"]
    assert all(api.main[2].count(f"prompt {number}") == 1 for number in range(3))


def test_a_recorded_session_holds_its_compactions(client: Client, api: MessagesApi) -> None:
    recording = record_session(
        client,
        api,
        [
            turn("first task", bash("echo one"), bash("echo two"), compact=True, end="one done"),
            turn("second task", bash("echo three"), end="two done"),
            turn("third task", bash("echo four"), bash("echo five"), compact=True, end="three done"),
        ],
    )
    assert len(boundaries(recording.transcript)) == 2
    assert [result["result"] for result in recording.results] == ["one done", "two done", "three done"]


def test_resume_after_a_compaction_keeps_what_the_hook_said(client: Client, api: MessagesApi) -> None:
    client.home.note_hooks("SessionStart:compact", "SessionStart:resume", says={"SessionStart:compact": MARK})
    first = record_session(client, api, [turn("first task", bash("echo 1"), bash("echo 2"), compact=True)])
    seen = len(api.main)
    api.script([say("Back again.")])
    result = client.run("Where were we?", resume=first.session_id)
    assert result.session_id == first.session_id
    assert client.home.hook_notes()[-1].event == "SessionStart:resume"
    assert api.main[seen].count(MARK) == 1
    assert api.main[seen].count("first task") == 0
    continued = client.run("And now?", proceed=True)
    assert continued.session_id == first.session_id


def test_a_fork_gets_a_new_id_and_the_history(client: Client, api: MessagesApi) -> None:
    first = record_session(client, api, [turn("remember the heron", end="Noted.")])
    before = first.transcript.read_bytes()
    seen = len(api.main)
    fork = client.run("What was it?", resume=first.session_id, fork=True)
    assert fork.session_id != first.session_id
    assert api.main[seen].count("remember the heron") == 1
    assert first.transcript.read_bytes() == before
    copied = {line.get("uuid") for line in lines_of(client.home.transcript(fork.session_id))}
    prompts = [line["uuid"] for line in lines_of(first.transcript) if line["type"] == "user"]
    assert set(prompts) <= copied


def test_kill_9_in_a_tool_leaves_the_call_without_a_result(client: Client, api: MessagesApi) -> None:
    started = client.home.root / "started"
    api.script([call(bash(f"touch {started} && sleep 100"))])
    with client.start("Hang", skip_permissions=True) as running:
        wait_until(started.exists, 10, "the tool's start")
        transcript = client.home.transcripts()[0]
        wait_until(lambda: '"tool_use"' in transcript.read_text(), 5, "the call's line")
        running.kill9()
    assert running.process.returncode == -9
    assert "tool_result" not in transcript.read_text()
    api.script([say("Picked up.")])
    assert client.run("Go on", resume=transcript.stem).text == "Picked up."
    calls = [part for part in api.main[-1].seen if part.where == "tool_use"]
    assert len(calls) == len(api.main[-1].tool_results()), "2.1.197 drops the call, 2.1.332 answers it"


def test_a_model_that_follows_a_plan_reads_outside_the_project(client: Client, api: MessagesApi) -> None:
    bottle = client.home.home / ".endless" / "bottle.md"
    bottle.parent.mkdir()
    bottle.write_text("".join(f"line {number} of the bottle\n" for number in range(1, 301)))
    reads = [f'Read(file_path="{bottle}", offset={start}, limit=100)' for start in (201, 101, 1)]
    client.home.allow("Read(~/.endless/**)")
    client.home.note_hooks(
        "SessionStart:compact",
        says={"SessionStart:compact": "\n".join([HANDOFF_HEADER, "Read these:", *reads])},
    )
    plan = follow_plan(together=2)
    api.script([call(bash("echo one")), call(bash("echo two")).full(), plan, say("I know it all again.")])
    result = client.run("Work until full")
    assert result.text == "I know it all again.", result.stderr
    assert [tool.input["offset"] for tool in plan.issued] == [201, 101, 1]
    results = "".join(part.text for part in api.main[-1].tool_results())
    assert all(results.count(f"line {number} of the bottle") == 1 for number in range(1, 301))
    assert len(handoffs_in(api.after_compaction())) == 1
    assert api.steps_left == 0


def test_a_plan_is_not_permitted_without_a_rule(client: Client, api: MessagesApi) -> None:
    bottle = client.home.home / "bottle.md"
    bottle.write_text("secret line\n")
    api.script([call(read(bottle)), say("Not allowed.")])
    client.run("Read it")
    assert "haven't granted it" in api.main[-1].tool_results()[0].text


def test_a_subagent_is_told_from_the_main_line(client: Client, api: MessagesApi) -> None:
    api.script([call(agent("Count the herons")), say("Started."), say("Finished.")])
    api.script_subagents([call(bash("echo heron")), say("One heron.")])
    client.run("Send somebody", skip_permissions=True)
    assert len(api.subagent) == 2
    assert all("Count the herons" in request.conversation for request in api.subagent)
    assert "One heron." in api.main[-1].conversation


def test_the_interactive_client_asks_and_resumes(client: Client, api: MessagesApi, terminal: None) -> None:
    first = record_session(client, api, [turn("remember the heron", end="Noted.")])
    api.script([say("It was the heron.")])
    client.home.note_hooks("SessionEnd", "SessionStart")
    seen = len(api.main)
    with client.tui(resume=first.session_id) as tui:
        tui.wait_for("remember the heron")
        tui.ready().enter("what was it?")
        tui.wait_for("It was the heron.")
        tui.keys("C-u")
        tui.leave()
    assert api.main[seen].count("remember the heron") == 1
    assert [n.event for n in client.home.hook_notes()] == [
        "SessionStart:resume",
        "SessionEnd:prompt_input_exit",
    ]


def test_kill_9_of_the_interactive_client_runs_no_session_end(client: Client, api: MessagesApi, terminal: None) -> None:
    client.home.note_hooks("SessionEnd", "SessionStart")
    with client.tui() as tui:
        tui.ready()
        wait_until(lambda: client.home.hook_notes("SessionStart"), 10, "the start hook")
        tui.kill9()
        assert not tui.alive
    assert [n.event for n in client.home.hook_notes()] == ["SessionStart:startup"]


def test_compact_typed_into_the_terminal(client: Client, api: MessagesApi, terminal: None) -> None:
    client.home.note_hooks(*EVENTS, "SessionEnd", says={})
    client.home.note_hooks("SessionStart:compact", says={"SessionStart:compact": MARK})
    api.script([say("First answer."), say("Second answer."), say("Third answer.")])
    with client.tui() as tui:
        tui.ready().enter("first prompt")
        tui.answered("First answer.")
        tui.enter("second prompt")
        tui.answered("Second answer.")
        tui.enter("/compact keep it short")
        api.wait(lambda api: len(api.summariser) == 1)
        tui.wait_for("Compacted")
        tui.enter("third prompt")
        tui.answered("Third answer.")
        tui.leave()
    events = [note.event for note in client.home.hook_notes()]
    assert events[:3] == ["SessionStart:startup", "UserPromptSubmit", "Stop"]
    compaction = events[events.index("PreCompact:manual") :]
    assert compaction[:5] == [
        "PreCompact:manual",
        "SubagentStop",
        "SessionStart:compact",
        "SessionStart:compact",
        "PostCompact:manual",
    ]
    assert api.summariser[0].count("keep it short") == 1
    assert api.summariser[0].count(MARK) == 0
    assert api.main[2].count(MARK) == 1
