"""However a file grew, was cut or replaced: the store and the bottle are those of one look at the whole file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endless_mode.bottle.session import render_session
from endless_mode.errors import EndlessError
from endless_mode.ingest import ingest_file
from endless_mode.store import Store
from tests.live.transcript import Transcript
from tests.reader.files import FIXTURES
from tests.reader.rows import rows
from tests.reader.transcript import read_bytes
from tests.reader.world import World, worlds

NAME = "0f0f0f0f-0000-4000-8000-000000000000.jsonl"
#: Compaction, lines twice, queue, interrupt, rewind, background tasks, resumes, plans, sidechains, notifications.
SITUATIONS = [
    "recorded/2.1.197/compactions-thrashing-lines-twice.jsonl",
    "recorded/2.1.197/three-compactions-auto-and-manual.jsonl",
    "recorded/2.1.197/queued-prompt-interrupt.jsonl",
    "recorded/2.1.197/interactive-rewind-bash-slash-paste.jsonl",
    "recorded/2.1.197/background-task-continue-resume.jsonl",
    "recorded/2.1.197/resume-after-kill.jsonl",
    "recorded/2.1.332/background-agent-task-continue-resume.jsonl.gz",
    "recorded/2.1.332/interactive-rewind-bash-slash-paste.jsonl.gz",
    "public/2.1.42-interrupts-notifications.jsonl.gz",
    "public/1.0.108-japanese-sidechains.jsonl.gz",
    "public/2.1.63-plan.jsonl.gz",
    "public/2.1.16-agents-beside.jsonl.gz",
]
loose = settings(deadline=None, suppress_health_check=list(HealthCheck))


class Bench:
    """A transcript on disk and the store that follows it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.database = folder / "endless.db"
        self.store = Store.open(self.database)
        self.session = 0

    def look(self) -> None:
        """Ingest; a file without a first line yet is an error of ours."""
        try:
            self.session = ingest_file(self.store, self.path).session
        except EndlessError as error:
            assert error.code in ("empty_transcript", "not_a_transcript")

    def restart(self) -> None:
        self.store.close()
        self.store = Store.open(self.database)

    def write(self, data: bytes) -> None:
        """Grow or cut in place: the file stays the same file."""
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            held = file.read()
            keep = len(held) if data.startswith(held) else 0
            file.truncate(len(data))
            file.seek(keep)
            file.write(data[keep:])

    def replace(self, data: bytes) -> None:
        other = self.path.with_suffix(".tmp")
        other.write_bytes(data)
        other.rename(self.path)

    def outcome(self, live: bool = False) -> tuple[dict[str, list[tuple[Any, ...]]], str]:
        return rows(self.store, live), render_session(self.store, self.session, 0).text


@contextmanager
def bench() -> Iterator[Bench]:
    with TemporaryDirectory() as folder:
        made = Bench(Path(folder))
        try:
            yield made
        finally:
            made.store.close()


def at_once(data: bytes) -> tuple[dict[str, list[tuple[Any, ...]]], str]:
    with bench() as one:
        one.write(data)
        one.look()
        return one.outcome()


def same(got: tuple[dict[str, list[tuple[Any, ...]]], str], want: tuple[dict[str, list[tuple[Any, ...]]], str]) -> None:
    for table, expected in want[0].items():
        assert got[0][table] == expected, table
    assert got[1] == want[1]


def grow(data: bytes, cuts: list[tuple[int, str]]) -> None:
    with bench() as one:
        for size, how in cuts:
            one.write(data[:size])
            one.look()
            if how == "restart":
                one.restart()
            elif how == "again":
                one.look()
        one.write(data)
        one.look()
        same(one.outcome(), at_once(data))


HOW = st.sampled_from(["", "", "again", "restart"])


def cuts(draw: Any, length: int, rising: bool) -> list[tuple[int, str]]:
    sizes = draw(st.lists(st.integers(0, length), min_size=1, max_size=12))
    return [(size, draw(HOW)) for size in (sorted(sizes) if rising else sizes)]


@pytest.mark.parametrize("name", SITUATIONS)
@given(st.data())
@settings(loose, max_examples=12)
def test_a_file_that_grows_by_torn_pieces_is_read_as_if_at_once(name: str, data: Any) -> None:
    whole = read_bytes(FIXTURES / name)
    grow(whole, cuts(data.draw, len(whole), rising=True))


@pytest.mark.parametrize("name", SITUATIONS)
@given(st.data())
@settings(loose, max_examples=12)
def test_a_file_that_is_cut_and_grows_again_is_read_as_if_at_once(name: str, data: Any) -> None:
    whole = read_bytes(FIXTURES / name)
    grow(whole, cuts(data.draw, len(whole), rising=False))


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_file_read_line_by_line_with_restarts_is_read_as_if_at_once(name: str) -> None:
    whole = read_bytes(FIXTURES / name)
    ends = [n + 1 for n, byte in enumerate(whole) if byte == 10]
    grow(whole, [(end, "restart" if n % 5 == 4 else "") for n, end in enumerate(ends)])


@given(worlds(), st.data())
@settings(loose, max_examples=120)
def test_transcripts_made_by_chance_grow_to_the_same_store(world: World, data: Any) -> None:
    whole = world.bytes()
    grow(whole, cuts(data.draw, len(whole), rising=True))


@given(worlds(), st.data())
@settings(loose, max_examples=80)
def test_transcripts_made_by_chance_are_cut_and_grow_to_the_same_store(world: World, data: Any) -> None:
    whole = world.bytes()
    grow(whole, cuts(data.draw, len(whole), rising=False))


@pytest.mark.parametrize("other", [SITUATIONS[2], SITUATIONS[8]])
@pytest.mark.parametrize("name", SITUATIONS)
def test_a_file_replaced_by_another_and_back_gives_the_same_rows_and_bottle(name: str, other: str) -> None:
    whole = read_bytes(FIXTURES / name)
    with bench() as one:
        for data in (whole, read_bytes(FIXTURES / other), whole, whole):
            one.replace(data)
            one.look()
        same(one.outcome(live=True), at_once(whole))


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_a_slow_observer_has_answered_is_not_asked_again(name: str) -> None:
    whole = read_bytes(FIXTURES / name)
    answer = (
        "INSERT INTO observations (session_id, source, event_id, type, title)"
        " SELECT session_id, 'slow', id, 'other', 'seen ' || name FROM tool_events WHERE state = 'pending'"
    )
    with bench() as one:
        one.write(whole)
        one.session = ingest_file(one.store, one.path, observer=None).session
        one.store.write(lambda db: db.execute(answer))
        one.store.write(lambda db: db.execute("UPDATE tool_events SET state = 'observed' WHERE state = 'pending'"))
        before = one.outcome()
        for data in (whole, whole[: len(whole) // 2], whole):
            one.replace(data)
            ingest_file(one.store, one.path, observer=None)
        same(one.outcome(), before)


def ids(store: Store) -> dict[str, list[Any]]:
    """Observation and event ids with what they stand for."""
    found = rows(store)
    return {
        table: [row[:4] for row in found[table]] for table in ("observations", "tool_events", "messages", "boundaries")
    }


@pytest.mark.parametrize("name", SITUATIONS)
def test_rebuilding_keeps_every_id(name: str) -> None:
    whole = read_bytes(FIXTURES / name)
    with bench() as one:
        one.write(whole)
        one.look()
        before = ids(one.store)
        assert before["messages"]
        for step in (whole[: len(whole) // 3], b"", whole[:10], whole):
            one.write(step)
            one.look()
            one.restart()
        assert ids(one.store) == before


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_same_store_gives_the_same_bytes(name: str) -> None:
    with bench() as one:
        one.write(read_bytes(FIXTURES / name))
        one.look()
        first = render_session(one.store, one.session, 0).data
        one.look()
        one.restart()
        assert render_session(one.store, one.session, 0).data == first
        later = render_session(one.store, one.session, 10**12).data
        changed = [(a, b) for a, b in zip(first.split(b"\n"), later.split(b"\n"), strict=True) if a != b]
        assert len(changed) == 1 and b"rendered:" in changed[0][0]


def test_the_directory_of_a_session_is_the_first_stated_however_it_is_read(tmp_path: Path) -> None:
    t = Transcript(tmp_path / "s-1.jsonl", cwd="/home/dev/proj")
    t.prompt("go")
    t.bash("cd tests/e2e && ls", "x" * 3_000)
    t.cwd = "/home/dev/proj/tests/e2e"
    for n in range(20):
        t.bash(f"ls {n}", "y" * 3_000)
    for stretch in (1_000, 10_000, 1 << 20):
        with Store.temporary() as store:
            session = ingest_file(store, t.path, stretch=stretch).session
            row = store.read(lambda db, s=session: db.execute("SELECT cwd FROM sessions WHERE id = ?", (s,)).fetchone())
        assert row == ("/home/dev/proj",)
