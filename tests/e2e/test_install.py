"""An install under the real client: its hooks fire, its rules let the model read bottles and nothing else of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .answers import bash, call, read, say
from .client import Client
from .home import Home, wait_until
from .messages_api import MessagesApi
from .plan import follow_plan

pytestmark = pytest.mark.e2e


def events(home: Home, data: Path) -> list[str]:
    log = data / "endless/logs/worker.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [entry["event"] for entry in map(json.loads, lines) if "event" in entry]


@pytest.mark.parametrize("name", ["plain", "sp ace ünï", "it's (a) [b] *c* d? e! #f $g", "back\\slash"])
@pytest.mark.parametrize("scope", [[], ["--project"]], ids=["user", "project"])
def test_hooks_fire_and_bottles_can_be_read(
    client: Client, api: MessagesApi, endless_bin: Path, name: str, scope: list[str]
) -> None:
    home = client.home
    data = home.home / name
    home.extra_env["CLAUDE_MEM_DATA_DIR"] = str(data)
    home.extra_env["PATH"] = f"{endless_bin.parent}:{home.env['PATH']}"
    done = home.command([endless_bin, "install", *scope])
    assert done.returncode == 0, done.stderr
    (data / "endless/bottles/s.md").write_text("the bottle\n")
    secret = data / "endless/settings.json"
    secret.write_text("{}\n")
    api.script(
        [
            call(read(data / "endless/bottles/s.md")),
            call(read(secret)),
            call(bash("endless show 999999")),
            call(bash("endless forget --all")),
            say("Done."),
        ]
    )
    assert client.run("Look around").text == "Done."
    bottle, settings, show, forget = [part.text for part in api.main[-1].tool_results()]
    assert "the bottle" in bottle
    assert "requested permissions" in settings
    assert "requires approval" not in show and "requested permissions" not in show
    assert "requires approval" in forget or "requested permissions" in forget
    wait_until(lambda: set(events(home, data)) >= {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}, 20)


def test_the_plugin_brings_the_same_events(client: Client, api: MessagesApi, endless_bin: Path) -> None:
    home = client.home
    data = home.home / "data"
    home.extra_env["CLAUDE_MEM_DATA_DIR"] = str(data)
    home.extra_env["PATH"] = f"{endless_bin.parent}:{home.env['PATH']}"
    api.script([say("Done.")])
    plugin = Path(__file__).parents[2] / "plugin"
    assert client.run("Look around", "--plugin-dir", str(plugin)).text == "Done."
    wait_until(lambda: set(events(home, data)) >= {"SessionStart", "UserPromptSubmit", "Stop"}, 20)


def test_status_tells_of_a_real_compaction_and_uninstalling_leaves_no_trace(
    client: Client, api: MessagesApi, endless_bin: Path
) -> None:
    home = client.home
    home.extra_env["PATH"] = f"{endless_bin.parent}:{home.env['PATH']}"
    home.write_settings(cleanupPeriodDays=40)
    home.command([endless_bin, "install"])
    api.script(
        [
            call(bash("echo one")),
            call(bash("echo two")).full(),
            follow_plan(),
            call(bash("echo three")),
            say("Through."),
        ]
    )
    result = client.run("Work until full", "--allowedTools", "Bash(echo:*)")
    assert result.text == "Through.", result.stderr

    def told() -> Any:
        return json.loads(home.command([endless_bin, "status", "--json"]).stdout)

    def boundary() -> Any:
        (session,) = [s for s in told()["sessions"] if s["session"] == result.session_id]
        known = session["boundaries"]
        assert len(known) <= 1
        return known[0] if known and known[0]["tools"] else None

    found = wait_until(boundary, 20, "the worker reads the end of the transcript")
    assert told()["on"] is True
    assert found["sealed_at"] <= found["delivered_at"]
    assert found["bottle_read"] is True
    assert (found["reread"], found["tools"]) == (0, 1)
    doctor = json.loads(home.command([endless_bin, "doctor", "--json"]).stdout)
    assert [check for check in doctor["checks"] if check["status"] != "ok"] == []

    assert home.command([endless_bin, "uninstall", "--purge"]).returncode == 0
    assert home.settings["cleanupPeriodDays"] == 40
    assert not {"hooks", "permissions"} & set(home.settings), (
        "the client rewrites the file, so bytes cannot be compared"
    )
    assert not (home.home / ".claude-mem/endless").exists()
