"""A bottle that copies what has not changed from the one before is the bottle that was rendered anew."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endless_mode.bottle import prefixes as prefixes_module
from endless_mode.bottle import render as render_module
from endless_mode.bottle.prefixes import Prefixes
from endless_mode.bottle.session import render_session, session_document
from endless_mode.bottle.write import write_bottle
from tests.reader.files import FIXTURES
from tests.reader.test_growth import SITUATIONS, Bench, bench, loose
from tests.reader.transcript import read_bytes
from tests.reader.world import World, worlds


@pytest.fixture(autouse=True)
def everything_is_worth_it() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefixes_module, "WORTH", 0)
        patch.setattr(render_module, "ONE_READ_BYTES", 0)
        yield


class Bottles:
    """The bottle on disk of a bench's session, rendered with what is remembered; ``reused`` counts when that was of use."""

    def __init__(self, one: Bench) -> None:
        self.one = one
        self.folder = one.path.parent / "bottles"
        self.prefixes = Prefixes(one.store)
        self.reused = 0

    def render(self) -> bytes:
        store, session = self.one.store, self.one.session
        known = self.prefixes.known

        def counted(*given: object) -> object:
            found = known(*given)  # type: ignore[arg-type]
            self.reused += found is not None
            return found

        def make() -> object:
            return store.read(lambda db: session_document(db, session, 0))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.prefixes, "known", counted)
            made = write_bottle(store, session, self.folder, self.folder / "locks", make, self.prefixes)  # type: ignore[arg-type]
        data = made.path.read_bytes()
        whole = made.text.shape
        assert data[whole.closing_at :].startswith(b"## Where things stand\n")
        assert data[: whole.closing_at].count(b"\n") == whole.closing_line - 1
        assert data[: whole.talk_end].count(b"\n") == whole.talk_lines
        return data

    def check(self) -> None:
        if self.one.session:
            assert self.render() == render_session(self.one.store, self.one.session, 0).data


def grown(data: bytes, sizes: list[int]) -> int:
    with bench() as one:
        bottles = Bottles(one)
        for size in [*sorted(sizes), len(data)]:
            one.write(data[:size])
            one.look()
            bottles.check()
        bottles.check()
        return bottles.reused


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_session_that_grows(name: str) -> None:
    data = read_bytes(FIXTURES / name)
    ends = [n + 1 for n, byte in enumerate(data) if byte == 10]
    rng = random.Random(name)
    assert grown(data, rng.sample(ends, min(12, len(ends)))) > 0


@given(worlds(), st.lists(st.floats(0, 1), max_size=6))
@settings(loose, max_examples=300)
def test_any_session_that_grows(world: World, parts: list[float]) -> None:
    data = world.bytes()
    grown(data, [int(len(data) * part) for part in parts])


CHANGES: list[Callable[[sqlite3.Connection, int], object]] = [
    lambda db, row: db.execute("UPDATE messages SET text = 'other words' WHERE id = ?", (row,)),
    lambda db, row: db.execute("UPDATE messages SET withdrawn = 'x' WHERE id = ?", (row,)),
    lambda db, row: db.execute("DELETE FROM messages WHERE id = ?", (row,)),
    lambda db, row: db.execute("UPDATE messages SET rewound = '@10' WHERE id > ?", (row,)),
    lambda db, row: db.execute("UPDATE observations SET title = 'another title' WHERE id = ?", (row,)),
    lambda db, row: db.execute("UPDATE tool_events SET state = 'pending' WHERE id = ?", (row,)),
    lambda db, row: db.execute("DELETE FROM observations WHERE id = ?", (row,)),
    lambda db, row: db.execute("DELETE FROM tool_events WHERE id = ?", (row,)),
    lambda db, _: db.execute("DELETE FROM boundaries"),
    lambda db, _: db.execute(
        "INSERT INTO messages (session_id, key, gen, offset, idx, role, kind, text) VALUES (1, 'late', 1, 5, 0,"
        " 'assistant', 'text', 'Said late.')"
    ),
    lambda db, row: db.execute(
        "INSERT INTO observations (session_id, source, event_id, ordinal, type, title)"
        " SELECT 1, 'slow', id, 1, 'x', 't' FROM tool_events WHERE id = ?",
        (row,),
    ),
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_any_change_before_it_is_seen(number: int) -> None:
    """The change lies before the last prompts, where the bottle is copied from the one before."""
    changed = 0
    names = (
        "public/2.1.42-interrupts-notifications.jsonl.gz",
        "recorded/2.1.197/three-compactions-auto-and-manual.jsonl",
    )
    for name, row in product(names, range(1, 6)):
        data = read_bytes(FIXTURES / name)
        with bench() as one:
            bottles = Bottles(one)
            one.write(data)
            one.look()
            before = bottles.render()
            bottles.check()
            assert bottles.reused == 1
            one.store.write(lambda db, row=row: CHANGES[number](db, row))  # type: ignore[misc]
            bottles.check()
            changed += bottles.render() != before
    assert changed


def test_a_bottle_that_was_written_by_another_is_not_copied(tmp_path: Path) -> None:
    data = read_bytes(FIXTURES / "recorded/2.1.197/three-compactions-auto-and-manual.jsonl")
    with bench() as one:
        bottles = Bottles(one)
        one.write(data)
        one.look()
        whole = bottles.render()
        (path,) = bottles.folder.glob("*.md")
        path.write_bytes(whole.replace(b"**User**", b"**Nobody**"))
        bottles.check()


def test_what_changes_while_a_bottle_is_made_is_seen_by_the_next() -> None:
    data = read_bytes(FIXTURES / "recorded/2.1.197/three-compactions-auto-and-manual.jsonl")
    with bench() as one:
        bottles = Bottles(one)
        one.write(data)
        one.look()
        settle = bottles.prefixes.keep

        def change_first(*given: object) -> None:
            one.store.write(lambda db: db.execute("UPDATE messages SET text = 'changed' WHERE role = 'user'").rowcount)
            settle(*given)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bottles.prefixes, "keep", change_first)
            bottles.render()
        assert b"changed" in bottles.render()
        bottles.check()
