"""Beside claude-mem: what each prints when a session starts, and that neither is doubled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from endless_mode.deliver.desk import Caller, Desk
from endless_mode.home import Home
from endless_mode.ingest import ingest_file
from endless_mode.settings import Settings
from endless_mode.store import Store
from tests.past.parts import talk

OURS = "# Endless Mode — recent work in this project"


def hooks(root: Path, *events: str, command: str = "node /x/claude-mem/hook.js") -> None:
    groups = {event: [{"matcher": "startup|clear|compact", "hooks": [{"command": command}]}] for event in events}
    (root / ".claude").mkdir(exist_ok=True)
    (root / ".claude" / "settings.json").write_text(json.dumps({"hooks": groups}))


@pytest.mark.parametrize(
    ("events", "beside", "shown"),
    [
        ((), "auto", True),
        (("SessionStart", "PostToolUse"), "auto", False),
        (("PostToolUse",), "auto", True),
        (("SessionStart",), "always", True),
    ],
)
def test_our_timeline_is_left_out_where_claude_mem_prints_one_at_the_same_moment(
    tmp_path: Path, events: tuple[str, ...], beside: str, shown: bool
) -> None:
    earlier = talk(tmp_path, "earlier", "count the herons")
    hooks(tmp_path, *events)
    home = Home(tmp_path / "data")
    home.create()
    with Store.open(home.database) as store:
        ingest_file(store, earlier.path, session_id="earlier")
        desk = Desk(home, Settings(environ={"CLAUDE_MEM_ENDLESS_BESIDE": beside}), store, lambda *_: None)
        caller = Caller("new", earlier.path.with_name("new.jsonl"), earlier.cwd)
        assert (OURS in desk.at_startup(caller)) is shown
        assert (OURS in desk.after_compaction(caller)) is shown, "the last rung, when nothing of the session is left"
