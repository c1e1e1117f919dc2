"""claude-mem at work beside us."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from endless_mode.claude_mem.beside import beside, foreign_handoff, stands_down
from endless_mode.settings import Settings
from tests.claude_mem.files import FRESH, database, untouched

HEADING = "# [claude-mem] Endless Mode — session continuation"


def put(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def hooks(matcher: str, command: str = 'node "/x/claude-mem/scripts/run.js" hook context') -> dict[str, Any]:
    return {"SessionStart": [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}


def plugin(root: Path, matcher: str, *, on: bool = True) -> None:
    place = root / "c" / "plugins" / "cache" / "m" / "claude-mem" / "13.15.3"
    put(place / "hooks" / "hooks.json", {"hooks": hooks(matcher, "node ${CLAUDE_PLUGIN_ROOT}/run.js")})
    listed = {"version": 2, "plugins": {"claude-mem@m": [{"installPath": str(place), "version": "13.15.3"}]}}
    put(root / "c" / "plugins" / "installed_plugins.json", listed)
    put(root / "c" / "settings.json", {"enabledPlugins": {"claude-mem@m": on, "other@m": True}})


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    found = beside(tmp_path / "c", tmp_path / "d")
    assert not found.installed and found.database is None and found.worker is None and not found.hands_over


def test_the_plugin_of_the_main_line_goes_well_with_us(tmp_path: Path) -> None:
    plugin(tmp_path, "startup|clear|compact")
    path = database(FRESH, tmp_path / "d")
    put(tmp_path / "d" / "worker.pid", {"pid": os.getpid(), "port": 37700})
    with untouched(tmp_path):
        found = beside(tmp_path / "c", tmp_path / "d")
    assert found.installed and found.version == "13.15.3" and found.events == ("SessionStart",)
    assert found.database == path and found.worker == os.getpid()
    assert stands_down(found, Settings()) == ""


def test_a_plugin_that_is_switched_off_is_not_there(tmp_path: Path) -> None:
    plugin(tmp_path, "startup|clear|compact|resume", on=False)
    assert not beside(tmp_path / "c", tmp_path / "d").installed


def test_ours_stands_down_beside_its_endless_mode_unless_told_otherwise(tmp_path: Path) -> None:
    plugin(tmp_path, "startup|clear|compact|resume")
    found = beside(tmp_path / "c", tmp_path / "d")
    assert "claude-mem hands over" in stands_down(found, Settings())
    assert stands_down(found, Settings(environ={"CLAUDE_MEM_ENDLESS_BESIDE": "always"})) == ""
    put(tmp_path / "d" / "settings.json", {"CLAUDE_MEM_ENDLESS_MODE_ENABLED": "false"})
    assert beside(tmp_path / "c", tmp_path / "d").hands_over == ""


def test_hooks_in_settings_count_as_well(tmp_path: Path) -> None:
    put(
        tmp_path / "c" / "settings.local.json",
        {"hooks": hooks("startup", "curl -d @- localhost/api/sessions/render-bottle # claude-mem")},
    )
    found = beside(tmp_path / "c", tmp_path / "d")
    assert found.how == ("settings.local.json",) and "render bottles" in found.hands_over


def test_bottles_of_its_own_tell_too(tmp_path: Path) -> None:
    plugin(tmp_path, "startup|clear|compact")
    put(tmp_path / "d" / "bottles" / "x.md", "# Session bottle")
    assert "bottles of its own" in beside(tmp_path / "c", tmp_path / "d").hands_over


def test_our_own_hooks_and_bottles_are_not_taken_for_its(tmp_path: Path) -> None:
    ours = (
        "[ -x /py ] && exec /py -I -S /x/endless_mode/hook/run.py claude-code SessionStart /home/a/.claude-mem; exit 0"
    )
    put(tmp_path / "c" / "settings.json", {"hooks": hooks("resume", ours)})
    put(tmp_path / "d" / "endless" / "bottles" / "x.md", "# Session bottle")
    found = beside(tmp_path / "c", tmp_path / "d")
    assert not found.installed and not found.hands_over


@pytest.mark.parametrize(
    "content",
    ["", "[]", "null", "{", '{"hooks": 3}', '{"hooks": {"Stop": {"a": 1}}}', '{"enabledPlugins": [1]}', "\x00"],
)
def test_broken_files_are_no_reason_to_fail(tmp_path: Path, content: str) -> None:
    for name in ("c/settings.json", "c/plugins/installed_plugins.json", "d/worker.pid", "d/settings.json"):
        put(tmp_path / name, content)
    assert not beside(tmp_path / "c", tmp_path / "d").hands_over


@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        (HEADING + "\nRead this", True),
        (HEADING + "\n\n(Endless Mode handoff ab12)", False),
        ("# another heading", False),
    ],
)
def test_a_handoff_without_our_mark_is_another_programs(tmp_path: Path, text: str, theirs: bool) -> None:
    line = {
        "type": "attachment",
        "attachment": {"type": "hook_additional_context", "content": [text], "hookEvent": "SessionStart"},
    }
    quoted = {"type": "user", "message": {"role": "user", "content": HEADING}}
    put(tmp_path / "t.jsonl", json.dumps(quoted) + "\n" + json.dumps(line, ensure_ascii=False) + "\n")
    assert foreign_handoff(tmp_path / "t.jsonl") is theirs
    assert not foreign_handoff(tmp_path / "missing.jsonl")
