"""Lines of the rules observer: one line, everything a successor needs, nothing lost in a run."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endless_mode.model import Digest, DigestKind, Status, Todo
from endless_mode.observe.rules import RulesObserver
from endless_mode.observe.wording import command_line, joined, relative, written_by
from tests.observe.lines import LINES, lines, recorded, said


def made(kind: DigestKind, **fields: Any) -> Digest:
    return Digest(kind, fields.pop("tool", "Tool"), **fields)


def test_recorded_tool_uses_read_as_agreed() -> None:
    assert lines() == LINES.read_text(encoding="utf-8").splitlines()


def test_recorded_lines_are_bounded() -> None:
    assert max(map(len, lines())) <= 1_200
    assert len(list(recorded())) > 80


CASES = [
    (
        made(
            "shell",
            command="pytest -q tests/unit",
            status="failed",
            exit_code=1,
            check=True,
            outcome="3 failed, 41 passed",
            symbols=["tests/unit/test_a.py::test_x"],
            error="AssertionError: 3 != 4",
            paths=["/p/src/a.py:40"],
        ),
        "Ran `pytest -q tests/unit` — exit 1; 3 failed, 41 passed; failing: tests/unit/test_a.py::test_x; "
        "AssertionError: 3 != 4; src/a.py:40",
    ),
    (
        made("shell", command="npm run dev", status="background", task_id="b1", paths=["/t/b1.output"]),
        "Started `npm run dev` — in the background, id b1; /t/b1.output",
    ),
    (
        made("shell", command="rm -r x", status="denied", words="keep\nit"),
        "Wanted to run `rm -r x` — denied by the user: keep it",
    ),
    (made("shell", command="sleep 9", status="interrupted"), "Ran `sleep 9` — interrupted by the user"),
    (made("shell", command="sleep 9", status="open"), "Ran `sleep 9` — no result recorded"),
    (made("shell", command="pnpm dev", target="b1", outcome="stopped"), "Stopped `pnpm dev` — task b1"),
    (made("shell", target="b1", outcome="running; ready"), "Looked at task b1 — running; ready"),
    (
        made("read", target="/p/a.go", lines="154–213", outcome="of 365 lines", symbols=["Options", "Open"]),
        "Read `a.go` 154–213 of 365 lines: Options, Open",
    ),
    (made("read", target="/q/a.go", lines="1–9", outcome="whole file"), "Read `/q/a.go` (9 lines)"),
    (made("read", target="/p/a.png", outcome="image, 640×480"), "Read `a.png` image, 640×480"),
    (
        made("read", target="/p/a", status="failed", error="File does not exist."),
        "Read `a` — failed: File does not exist.",
    ),
    (
        made(
            "edit",
            target="/p/a.py",
            lines="12–13, 40",
            added=2,
            removed=1,
            symbols=["f"],
            names=["compute_total"],
            excerpt="+ x = 1",
        ),
        "Edited `a.py:12–13,40` (+2 −1): f — new: compute_total; + x = 1",
    ),
    (
        made("edit", target="/p/a.py", status="denied", added=1, words="later"),
        "Wanted to edit `a.py` (+1 −0) — denied by the user: later",
    ),
    (
        made("edit", target="/p/a.py", status="failed", error="String to replace not found in file."),
        "Could not edit `a.py` — failed: String to replace not found in file.",
    ),
    (
        made("write", target="/p/a.py", added=3, outcome="created, 3 lines", symbols=["f"]),
        "Wrote `a.py` (+3 −0): f — created, 3 lines",
    ),
    (
        made(
            "search",
            target="foo",
            scope="/p/src *.py",
            outcome="3 matches in 2 files",
            paths=["/p/src/a.py:3,9", "/p/src/b.py:2"],
            names=["foo_bar"],
        ),
        "Searched `foo` in src *.py — 3 matches in 2 files; src/a.py:3,9, src/b.py:2; foo_bar",
    ),
    (
        made("search", target="foo", scope="a.py", outcome="2 matches", paths=["a.py:3,7"]),
        "Searched `foo` in a.py — 2 matches; lines 3,7",
    ),
    (made("search", target="*.x", outcome="no files"), "Searched `*.x`: no files"),
    (made("list", target="/p/src", outcome="2 entries", paths=["a", "b"]), "Listed `src` — 2 entries; a, b"),
    (
        made("fetch", target="https://a.dev", scope="What?", outcome="It is."),
        "Fetched https://a.dev (What?) — It is.",
    ),
    (
        made("websearch", target="x y", outcome="1 result: One (one.dev)", names=["https://one.dev"]),
        "Searched the web for “x y” — 1 result: One (one.dev); https://one.dev",
    ),
    (
        made(
            "agent",
            target="Find it",
            scope="Explore",
            excerpt="Task: Look.\nanswer",
            outcome="It is here.",
            lines="7 tool uses, 41k tokens",
            paths=["/p/a.py:1"],
        ),
        "Agent Explore “Find it”: Look. — It is here. (7 tool uses, 41k tokens); a.py:1",
    ),
    (made("agent", target="d", status="background", task_id="a7"), "Agent “d” — in the background, id a7"),
    (
        made(
            "todo",
            todos=[Todo("a", "completed"), Todo("b", "in_progress"), Todo("c", "pending")],
            todos_whole=True,
            outcome="1 of 3 done",
        ),
        "Todos: ▶ b; ☐ c; ✔ a — 1 of 3 done",
    ),
    (
        made("todo", tool="TaskCreate", target="Do it", todos=[Todo("Do it", "pending", "3")]),
        "Task #3 created: Do it",
    ),
    (
        made("todo", tool="TaskUpdate", target="#3", outcome="pending → completed"),
        "Task #3 pending → completed",
    ),
    (
        made("question", target="Where?", names=["Menu", "Dialog"], outcome="Menu"),
        "Asked: Where? [Menu | Dialog] — the user answered: Menu",
    ),
    (
        made("plan", tool="ExitPlanMode", target="Move it", outcome="approved by the user"),
        "Offered plan “Move it” — approved by the user",
    ),
    (
        made("plan", tool="ExitPlanMode", target="Move it", status="denied", words="smaller"),
        "Offered plan “Move it” — denied by the user: smaller",
    ),
    (made("plan", tool="EnterPlanMode"), "Entered plan mode"),
    (made("skill", target="a:b"), "Used skill a:b"),
    (
        made("mcp", target="linear get_issue", scope="id=3", outcome="ENT-12"),
        "linear get_issue (id=3) — ENT-12",
    ),
    (made("other", tool="Odd", scope="x=1", outcome="done"), "Odd (x=1) — done"),
]


@pytest.mark.parametrize(("digest", "line"), CASES, ids=[c[1][:40] for c in CASES])
def test_a_line_carries_the_use_and_its_outcome(digest: Digest, line: str) -> None:
    assert said(digest, "/p") == line


def test_a_run_keeps_path_lines_and_symbols_in_its_subtitle() -> None:
    observation = RulesObserver().observe(
        made("read", target="/p/a.go", lines="3–9", outcome="of 20 lines", symbols=["F"]), "/p"
    )
    assert (observation.run, observation.subtitle) == ("Read", "`a.go` 3–9 of 20 lines: F")
    assert observation.title == f"{observation.run} {observation.subtitle}"
    assert observation.files_read == ["/p/a.go"]


def test_what_happened_to_files_is_listed_and_what_did_not_is_not() -> None:
    observe = RulesObserver().observe
    assert observe(made("edit", target="/p/a.py"), "/p").files_modified == ["/p/a.py"]
    assert observe(made("edit", target="/p/a.py", status="denied"), "/p").files_modified == []
    assert observe(made("edit", target="/p/a.py", status="failed"), "/p").files_modified == []
    assert observe(made("read", target="/p/a.py", status="failed"), "/p").files_read == []
    assert observe(made("shell", command="cat > b.txt <<'E'\nx > y.txt\nE\n"), "/p").files_modified == ["b.txt"]


def test_the_rest_of_the_narrative_is_for_expansion() -> None:
    observation = RulesObserver().observe(made("edit", target="a", hunks=["one", "two"], outcome="created"), "")
    assert observation.narrative == "created\none\n…\ntwo"


COMMANDS = [
    ("a\nb", "a ⏎ b"),
    (
        "cat > x.py <<'EOF'\nimport os\n\ndef f():\n    pass\n    return\nEOF\npython x.py",
        "cat > x.py <<'EOF' ⏎ import os ⏎ def f(): ⏎ … 3 lines ⏎ EOF ⏎ python x.py",
    ),
    ('git commit -m "$(cat <<EOF\nSubject\nEOF\n)"', 'git commit -m "$(cat <<EOF ⏎ Subject ⏎ EOF ⏎ )"'),
    ("\techo a\x1b[0m", "echo a [0m"),
]


@pytest.mark.parametrize(("command", "shown"), COMMANDS)
def test_a_command_is_drawn_in_one_line(command: str, shown: str) -> None:
    assert command_line(command) == shown


def test_a_long_command_keeps_both_ends() -> None:
    shown = command_line("begin " + "x" * 2_000 + " end")
    assert len(shown) <= 1_000
    assert shown.startswith("begin")
    assert shown.endswith(" end")


WRITES = [
    ("echo a > out.txt 2>&1", ["out.txt"]),
    ("x | tee -a logs/a.log", ["logs/a.log"]),
    ("sed -i 's/a/b/' src/a.py", ["src/a.py"]),
    ("ls 2>/dev/null", []),
    ("a => b; if [ 1 -gt 0 ]; then :; fi", []),
    ("cat >> a.go << 'EOF'\nfoo > bar.txt\nEOF", ["a.go"]),
]


@pytest.mark.parametrize(("command", "paths"), WRITES)
def test_files_a_command_writes_are_seen(command: str, paths: list[str]) -> None:
    assert written_by(command) == paths


def test_paths_are_relative_inside_the_directory_only() -> None:
    assert relative("/p/src/a.py:3", "/p") == "src/a.py:3"
    assert relative("/p/src", "/p/") == "src"
    assert relative("/pq/a", "/p") == "/pq/a"
    assert relative("/a", "/") == "/a"
    assert relative("C:\\p\\a.py", "C:\\p") == "a.py"


def test_what_does_not_fit_is_counted() -> None:
    assert joined(["aaaa", "bbbb", "cccc"], 12) == "aaaa, bbbb +1"
    assert joined([], 10) == ""


TEXT = st.text(max_size=120) | st.sampled_from(
    ["\n", "a\nb", "\u2028x", "\x85", "x" * 5_000, "/p/a.py", "<<EOF\n", "\x1b[1m", "\ud800"]
)
TEXTS = st.lists(TEXT, max_size=20)


@st.composite
def digests(draw: st.DrawFn) -> Digest:
    made = Digest(draw(st.sampled_from(get_args(DigestKind))), draw(TEXT), draw(st.sampled_from(get_args(Status))))
    for name in ("target", "command", "lines", "scope", "error", "outcome", "excerpt", "task_id", "words"):
        setattr(made, name, draw(TEXT))
    for name in ("symbols", "paths", "names", "hunks"):
        setattr(made, name, draw(TEXTS))
    made.exit_code = draw(st.none() | st.integers(0, 255))
    made.added, made.removed = draw(st.integers(0, 10**6)), draw(st.integers(0, 10**6))
    made.todos = draw(st.lists(st.builds(Todo, TEXT, TEXT, TEXT), max_size=5))
    made.check, made.todos_whole = draw(st.booleans()), draw(st.booleans())
    return made


@settings(max_examples=200, deadline=None)
@given(digests(), TEXT)
def test_any_digest_gives_one_bounded_line(digest: Digest, cwd: str) -> None:
    observation = RulesObserver().observe(digest, cwd)
    line = said(digest, cwd)
    assert len(line.splitlines()) <= 1
    assert len(line) <= (3_600 if digest.kind == "shell" else 1_200)
    assert len(observation.narrative) <= 6_000
    assert observation == RulesObserver().observe(digest, cwd)
    if observation.run:
        assert observation.title == f"{observation.run} {observation.subtitle}"
        assert observation.narrative.split("\n", 1)[0] == ""
