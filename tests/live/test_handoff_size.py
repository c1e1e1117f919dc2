"""A handoff fits the client's limit whatever the session holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endless_mode import settings as product_settings
from endless_mode.deliver.desk import Caller
from endless_mode.deliver.keeper import Keeper
from endless_mode.home import Home
from tests.live.parts import is_handoff
from tests.live.transcript import Transcript

LIMIT = 9_000
FLAME = "🔥"


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def handed_over(root: Path, fill: Callable[[Transcript], None], data: str = "data", **environ: str) -> str:
    """What a compaction of a session prints, without any process."""
    home = Home(root / data)
    home.create()
    t = Transcript(root / ".claude/projects/p/s-1.jsonl")
    t.path.unlink(missing_ok=True)
    fill(t)

    def complain(name: str, session: str, error: BaseException) -> None:
        raise AssertionError(name) from error

    keeper = Keeper(home, product_settings.load(home, environ), complain)
    keeper.open()
    try:
        return keeper.after_compaction(Caller("s-1", t.path, "/tmp"))
    finally:
        keeper.close()


def emoji_only(t: Transcript) -> None:
    for _ in range(30):
        t.prompt(FLAME * 3_000)
        t.bash(FLAME * 2_000, FLAME * 5_000)
        t.say(FLAME * 6_000)


def huge_todos(t: Transcript) -> None:
    t.prompt("Do it all.")
    todos = [{"content": f"{FLAME * 40} todo {n} " * 20, "status": "pending", "activeForm": "…"} for n in range(400)]
    t.result(t.call("TodoWrite", todos=todos))


def huge_decisions(t: Transcript) -> None:
    for n in range(120):
        question = {"question": f"Which way {n}? " * 60, "header": "Way", "options": [{"label": "left " * 50}]}
        use = t.call("AskUserQuestion", questions=[question])
        t.result(use, f'User has answered your questions: "Which way {n}?"="{"left " * 200}".')
        t.result(t.call("ExitPlanMode", plan=f"# Plan {n}\n" + "- do this\n" * 900), "User has approved your plan.")


def ten_legs(t: Transcript) -> None:
    for n in range(10):
        for k in range(12):
            t.turn(f"leg {n} thing {k} " + "words " * 300, "answer " * 500)
        t.boundary(summary="s " * 4_000)
    t.turn("last")


def one_endless_line(t: Transcript) -> None:
    t.prompt("x" * 2_000_000)
    t.say("y" * 2_000_000)


def long_names(t: Transcript) -> None:
    for n in range(60):
        t.bash(f"make {'very-' * 150}{n}", "error: " + "z" * 4_000)
        t.result(t.call("Write", file_path=f"/tmp/{'deep/' * 200}{n}.py", content="a = 1\n" * 500))


@pytest.mark.parametrize("fill", [emoji_only, huge_todos, huge_decisions, ten_legs, one_endless_line, long_names])
@pytest.mark.parametrize("plan", ["0", "30000", "200000"])
def test_a_hostile_session_fits(tmp_path: Path, fill: Callable[[Transcript], None], plan: str) -> None:
    printed = handed_over(tmp_path, fill, CLAUDE_MEM_ENDLESS_PLAN_TOKENS=plan)
    assert is_handoff(printed) and units(printed) <= LIMIT
    assert str(tmp_path / "data/endless/bottles/s-1.md") in printed
    assert "## Where things stand" in printed


def test_a_very_long_path_fits(tmp_path: Path) -> None:
    deep = "/".join([FLAME * 45] * 2)  # SQLite takes paths of up to 512 bytes
    printed = handed_over(tmp_path, ten_legs, data=deep, CLAUDE_MEM_ENDLESS_PLAN_TOKENS="200000")
    assert is_handoff(printed) and units(printed) <= LIMIT


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=400) | st.sampled_from(
    [FLAME * 500, "## Index\n", ""]
)


@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=8))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_session_fits(tmp_path: Path, turns: list[tuple[str, str, str]]) -> None:
    def fill(t: Transcript) -> None:
        for asked, command, said in turns:
            t.prompt(asked or "?")
            t.bash(command, said)
            t.say(said or ".")

    assert units(handed_over(tmp_path, fill)) <= LIMIT
