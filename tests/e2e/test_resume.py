"""`endless resume` with the real client: a fresh session begins with the old one's handoff, whatever is left of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.claude_mem.files import FRESH, SESSIONS, database, untouched

from .answers import bash, call, say
from .client import Client
from .home import wait_until
from .messages_api import MessagesApi
from .plan import HANDOFF_HEADER, follow_plan, handoffs_in
from .recording import record_session, turn

pytestmark = pytest.mark.e2e


def programs(client: Client) -> None:
    """Put this client on the PATH of its home, as `claude`."""
    folder = client.home.root / "bin"
    folder.mkdir()
    (folder / "claude").symlink_to(client.path)
    client.home.extra_env["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def capture(client: Client, api: MessagesApi, endless: Path) -> Any:
    """A session of two turns that ran with the hooks installed."""
    programs(client)
    assert client.home.command([endless, "install"]).returncode == 0
    turns = [
        turn("count the herons", bash("echo 17 herons"), end="Seventeen."),
        turn("and the storks?", end="None at all."),
    ]
    recording = record_session(client, api, turns)
    bottle = client.home.home / ".claude-mem/endless/bottles" / f"{recording.session_id}.md"
    wait_until(lambda: bottle.exists() and "None at all." in bottle.read_text(), what="the session's bottle")
    return recording


def resume(client: Client, endless: Path, *words: str, prompt: str = "Go on.") -> dict[str, Any]:
    """`endless resume … -- -p PROMPT`, as a user types it; the client's result object."""
    output = ["--output-format", "json", "--dangerously-skip-permissions"]
    done = client.home.command([endless, "resume", *words, "--", "-p", prompt, *output], seconds=60)
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_session_whose_transcript_is_gone_is_resumed_in_a_fresh_context(
    client: Client, api: MessagesApi, endless_bin: Path
) -> None:
    old = capture(client, api, endless_bin)
    old.transcript.unlink()
    seen = len(api.main)
    plan = follow_plan()
    api.script([plan, say("Seventeen herons, no storks.")])
    result = resume(client, endless_bin, old.session_id)
    assert result["result"] == "Seventeen herons, no storks."
    assert result["session_id"] != old.session_id
    first = api.main[seen]
    assert len(handoffs_in(first)) == 1
    assert first.count(HANDOFF_HEADER) == 1
    assert "None at all." in handoffs_in(first)[0]
    assert first.last_user_text.strip().endswith("Go on.")
    read = "\n".join(part.text for part in api.main[-1].tool_results())
    assert plan.issued and "count the herons" in read and "Seventeen." in read


def test_the_resumed_session_compacts_and_its_bottle_holds_both(
    client: Client, api: MessagesApi, endless_bin: Path
) -> None:
    old = capture(client, api, endless_bin)
    seen = len(api.main)
    api.script([call(bash("echo one")), call(bash("echo two")).full(), follow_plan(), say("Through.")])
    result = resume(client, endless_bin, "--last", prompt="Now count the cranes")
    assert result["result"] == "Through.", result
    assert len(handoffs_in(api.main[seen])) == 1
    after = api.after_compaction()
    assert len(handoffs_in(after)) == 1
    assert result["session_id"] in handoffs_in(after)[0]
    bottle = client.home.home / ".claude-mem/endless/bottles" / f"{result['session_id']}.md"
    wait_until(lambda: "Through." in bottle.read_text(), what="the bottle after the end")
    text = bottle.read_text()
    assert f"note: Goes on from session {old.session_id}, whose bottle is " in text
    assert f"Goes on from session {old.session_id}" in handoffs_in(after)[0]
    assert f"where session {old.session_id} stood" in text
    assert "None at all." in text
    assert "Now count the cranes" in text
    conversation = text.partition("## Conversation")[2]
    assert (
        conversation.index("None at all.") < conversation.index("Now count the cranes") < conversation.index("Through.")
    )


def test_another_session_in_the_same_directory_does_not_get_the_handoff(
    client: Client, api: MessagesApi, endless_bin: Path
) -> None:
    old = capture(client, api, endless_bin)
    ready = client.home.command([endless_bin, "resume", "--print", old.session_id])
    assert ready.returncode == 0, ready.stderr
    assert ready.stdout.startswith(f"cd {client.home.project} && claude --session-id ")
    seen = len(api.main)
    api.script([say("Hello."), say("Back again.")])
    client.run("Something else")
    assert handoffs_in(api.main[seen]) == []
    new = ready.stdout.split()[-1]
    client.run("Where were we?", "--session-id", new)
    assert len(handoffs_in(api.main[seen + 1])) == 1


def test_a_session_that_only_claude_mems_database_knows_is_resumed_with_the_degraded_handoff(
    client: Client, api: MessagesApi, endless_bin: Path
) -> None:
    programs(client)
    assert client.home.command([endless_bin, "install"]).returncode == 0
    alone = client.home.root / "alone"
    path = database(FRESH, alone)
    (client.home.home / ".claude-mem" / path.name).symlink_to(path)
    plan = follow_plan()
    api.script([plan, say("Tests come next.")])
    with untouched(alone):
        result = resume(client, endless_bin, SESSIONS[FRESH])
    assert result["result"] == "Tests come next."
    (handoff,) = handoffs_in(api.main[0])
    assert api.main[0].count(HANDOFF_HEADER) == 1
    assert "partial reconstruction" in handoff and "Do not assume prior phrasings" in handoff
    assert "authoritative" not in handoff and "Current task: Now add tests." in handoff
    assert "> Completed: three tests" in handoff
    assert api.main[0].last_user_text.strip().endswith("Go on.")
    read = "\n".join(part.text for part in api.main[-1].tool_results())
    assert plan.issued and "reconstructed (transcript unavailable)" in read
    assert "(generated by claude-mem — not verbatim)" in read and "**Assistant**" not in read


def test_a_session_of_which_only_the_typed_prompts_are_left_is_resumed(
    client: Client, api: MessagesApi, endless_bin: Path, terminal: None
) -> None:
    programs(client)
    api.script([say("Seventeen.")])
    with client.tui() as tui:
        tui.ready(30).enter("count the herons")
        tui.answered("Seventeen.")
        (transcript,) = client.home.transcripts()
        tui.leave()
    transcript.unlink()
    assert client.home.command([endless_bin, "install"]).returncode == 0
    seen = len(api.main)
    plan = follow_plan()
    api.script([plan, say("I shall count them.")])
    result = resume(client, endless_bin, transcript.stem)
    assert result["result"] == "I shall count them."
    (handoff,) = handoffs_in(api.main[seen])
    assert "partial reconstruction" in handoff and "Current task: count the herons" in handoff
    assert "Seventeen" not in handoff
    read = "\n".join(part.text for part in api.main[-1].tool_results())
    assert plan.issued and "count the herons" in read and "history.jsonl" in read
