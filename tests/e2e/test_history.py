"""A session that was typed into the real client and is gone: its prompts come back from the client's own record."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from endless_mode.bottle.entries import Mark, Speech
from endless_mode.bottle.parse import parse

from .answers import say
from .client import Client
from .home import wait_until
from .messages_api import MessagesApi
from .tui import Tui

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("terminal")]

WRAPPING = re.compile(r'</?pasted_content id="[0-9a-f]+">')
LONG = "\n".join(f"row {n} of what was pasted " + "x" * 60 for n in range(60))


def paste(tui: Tui, text: str, mark: str) -> None:
    """Paste as a terminal does, and wait for what the client shows instead."""
    place = tui.home.root / "pasted"
    place.write_text(text)
    tui._tmux("load-buffer", str(place))
    tui._tmux("paste-buffer", "-p", "-t", "client")
    tui.wait_for(mark)


def typed_session(client: Client, api: MessagesApi) -> Path:
    """A session of four prompts and one command that only steers; its transcript."""
    api.otherwise = say("Fine.")
    asked = len(api.main)

    def send(seconds: float = 15.0) -> None:
        nonlocal asked
        tui.keys("Enter")
        asked += 1
        wait_until(lambda: len(api.main) >= asked, seconds, "the request")

    with client.tui() as tui:
        tui.ready(30)
        tui.write("count the herons")
        send()
        tui.write("and <private>the one in my garden</private> the storks")
        send()
        paste(tui, "line a\nline b\nline c\nline d\nline e", "[Pasted text #1 +4 lines]")
        tui.write(" what is this")
        send()
        paste(tui, LONG, "[Pasted text #2 +59 lines]")
        send()
        (transcript,) = client.home.transcripts()
        wait_until(lambda: "row 59 of what" in transcript.read_text(), what="the last prompt in the transcript")
        tui.leave()
    return transcript


def bottle(client: Client, endless: Path, target: str | Path) -> dict[str, Any]:
    done = client.home.command([endless, "bottle", target, "--stdout", "--json"])
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def prompts(text: str) -> list[str]:
    return [entry.text for entry in parse(text).entries if isinstance(entry, Speech) and entry.role == "user"]


def squeezed(texts: list[str]) -> list[str]:
    """White space aside, and without the tags that 2.1.332 puts around a pasted text when it sends it."""
    return [" ".join(WRAPPING.sub(" ", text).split()) for text in texts]


def test_what_was_typed_in_a_session_nobody_captured_comes_back(
    client: Client, api: MessagesApi, endless_bin: Path
) -> None:
    transcript = typed_session(client, api)
    name = transcript.stem
    whole = bottle(client, endless_bin, name)
    assert whole["rung"] == "transcript"
    transcript.unlink()
    listed = client.home.command([endless_bin, "sessions", "--gone", "--json"])
    assert [row["session"] for row in json.loads(listed.stdout)] == [name]
    before = (client.home.config / "history.jsonl").read_bytes()
    found = bottle(client, endless_bin, name[:8])
    assert (found["session"], found["rung"], found["assistant_messages"]) == (name, "history", 0)
    assert squeezed(prompts(found["text"])) == squeezed(prompts(whole["text"]))
    assert prompts(found["text"])[3] == LONG
    assert "garden" not in found["text"] and "/exit" not in found["text"] and "Fine." not in found["text"]
    assert not any(isinstance(entry, Mark) for entry in parse(found["text"]).entries)
    assert str(client.home.project) in found["text"].split("\n")[1]
    assert (client.home.config / "history.jsonl").read_bytes() == before


def test_a_session_in_print_mode_leaves_no_such_record(client: Client, api: MessagesApi, endless_bin: Path) -> None:
    api.otherwise = say("Fine.")
    name = client.run("count the herons").session_id
    client.home.transcript(name).unlink()
    done = client.home.command([endless_bin, "bottle", name])
    assert done.returncode != 0
    assert "typed prompts" in done.stderr
