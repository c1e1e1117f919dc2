"""The closing part: how dense the state is, and what goes on behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from endless_mode.bottle.closing import PARTS, STATE_UNITS, Closing, closing
from endless_mode.bottle.short import fit, units
from endless_mode.bottle.view import load_session
from endless_mode.ingest import ingest_file
from endless_mode.store import Store
from tests.live.transcript import Transcript

CWD = "/home/dev/shop"


@pytest.fixture
def t(tmp_path: Path) -> Transcript:
    return Transcript(tmp_path / "transcripts" / "s-1.jsonl", cwd=CWD)


def closed(t: Transcript) -> Closing:
    with Store.temporary() as store:
        session = ingest_file(store, t.path).session
        return store.read(lambda db: closing(db, load_session(db, session)))


def names(text: str) -> list[str]:
    rows = (line.partition(": ") for line in text.split("\n"))
    return [name for kind, _, rest in rows if kind in ("Paths", "Names", "Ids") for name in rest.split(", ")]


def test_a_path_of_the_session_stands_once_and_relative(t: Transcript) -> None:
    t.prompt("fix the cart")
    t.say(f"I looked at {CWD}/src/cart/totals.py and at totals.py in the branch.")
    t.result(t.call("Read", file_path=f"{CWD}/src/cart/totals.py"), "     1\tclass CartTotals: ...")
    t.result(t.call("Edit", file_path=f"{CWD}/src/cart/totals.py", old_string="a", new_string="b"), "updated")
    state = closed(t).state
    assert state.count("- src/cart/totals.py +1 −1") == 1
    assert not [name for name in names(state) if name.endswith("totals.py")]


def test_a_name_with_inner_capitals_that_was_spoken_of_is_kept(t: Transcript) -> None:
    t.prompt("fix the cart")
    t.say("I rename it to DiscountPolicy.")
    t.say("That is done.")
    assert "DiscountPolicy" in names(closed(t).state)


def test_a_command_in_hand_is_not_told_of_a_second_time(t: Transcript) -> None:
    t.prompt("fix it")
    t.bash("git fetch --all", "")
    t.bash("pytest -q tests/cart", "3 passed in 0.1s")
    state = closed(t).state
    assert "- `pytest -q tests/cart` → 3 passed" in state
    assert state.count("pytest -q tests/cart") == 1
    assert "`git fetch --all`" in state.partition("Commands, newest first:")[2]


def test_the_newest_changed_files_are_told_of_whatever_else_there_is(t: Transcript) -> None:
    t.prompt("rename everything")
    for n in range(30):
        t.say("Then " + " ".join(f"someHelperName{n}x{m}" for m in range(40)))
        t.result(t.call("Write", file_path=f"{CWD}/src/module_{n}.py", content="pass\n"), "File created")
    state = closed(t).state
    assert all(f"- src/module_{n}.py" in state for n in range(15, 30))
    assert units(state) <= STATE_UNITS


def test_a_long_session_fills_its_parts_without_saying_a_name_twice(t: Transcript) -> None:
    t.prompt("read it all")
    for n in range(150):
        t.say(f"Step {n}: " + " ".join(f"handlerOf{n}for{m}" for m in range(60)))
        t.bash(f"make target_{n}", f"built out/object_{n}.o")
    told = closed(t)
    assert STATE_UNITS - 300 <= units(told.state) <= STATE_UNITS
    assert len(told.working_set) == len(PARTS)
    assert all(size - 300 <= len(part) <= size * 1.05 for size, part in zip(PARTS[:2], told.working_set, strict=False))
    given = [name for text in (told.state, *told.working_set) for name in names(text)]
    assert len(given) == len(set(given)) > 1_000


def test_the_same_session_gives_the_same_closing_part(t: Transcript) -> None:
    t.prompt("fix the cart")
    for n in range(40):
        t.bash(f"sed -n {n}p src/cart/file_{n}.py", f"def helperNumber{n}(): ...")
    assert closed(t) == closed(t)


def test_a_text_that_fits_exactly_keeps_its_last_line() -> None:
    assert fit("ab\ncd", 5) == "ab\ncd"
    assert fit("ab\ncd", 4) == "ab"
    assert fit("🙂\ncd", 4) == "🙂"
