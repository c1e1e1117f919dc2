"""What is kept when the client has deleted a transcript, and what goes first when there is too much."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from endless_mode.bottle.entries import MODE_FULL, MODE_RECONSTRUCTED, MODE_STORED, Speech
from endless_mode.bottle.file import archive
from endless_mode.bottle.parse import parse
from endless_mode.bottle.session import document, render_session
from endless_mode.deliver.desk import Desk
from endless_mode.forgetting import scrub
from endless_mode.home import Home
from endless_mode.ingest import ingest_file
from endless_mode.retention import (
    about_to_vanish,
    drop_conversations,
    is_over,
    sweep,
    trim,
    used_bytes,
)
from endless_mode.settings import Settings
from endless_mode.store import Store, open_reader
from tests.past.parts import DAY, config_of, imported, talk
from tests.reader.files import fixtures, label

NOW = 1_790_000_000.0


def conversation(text: str) -> str:
    return text.partition("\n## Conversation\n")[2]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "data")
    made.create()
    return made


def desk_of(home: Home, store: Store) -> Desk:
    return Desk(home, Settings(), store, lambda *_: None)


@pytest.mark.parametrize("path", fixtures(), ids=label)
def test_a_bottle_stays_full_and_its_conversation_the_same_when_the_transcript_is_deleted(
    path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "projects" / "p" / path.name
    copy.parent.mkdir(parents=True)
    shutil.copy(path, copy)
    with Store.open(tmp_path / "endless.db") as store:
        row = ingest_file(store, copy).session
        before = render_session(store, row, 0)
        copy.unlink()
        after = render_session(store, row, 0)
    assert MODE_FULL in before.text
    spoken = any(isinstance(entry, Speech) for entry in parse(before.text).entries)
    assert (MODE_STORED if spoken else MODE_RECONSTRUCTED) in after.text
    assert conversation(after.text).encode() == conversation(before.text).encode()


def test_the_conversation_goes_with_the_transcript_when_the_user_wants_that(home: Home, tmp_path: Path) -> None:
    gone, there = talk(tmp_path, "gone", "first things"), talk(tmp_path, "there", "other things")
    with Store.open(home.database) as store:
        desk = desk_of(home, store)
        for one in (gone, there):
            desk.render(desk.tail(one.session, one.path))
        gone.path.unlink()
        assert drop_conversations(store, home) == ["gone"]
        assert drop_conversations(store, home) == []
        said = store.read(lambda db: db.execute("SELECT DISTINCT session_id FROM messages").fetchall())
        row = desk.row("gone").id
        made = store.read(lambda db: document(db, row))
    assert len(said) == 1
    assert [path.name for path in home.bottles.glob("*.md")] == ["there.md"]
    assert made.header.mode == MODE_RECONSTRUCTED
    assert not any(isinstance(entry, Speech) for entry in made.entries)
    assert made.entries, "what was done stays"


def test_the_archived_bottle_goes_too_and_that_of_a_namesake_stays(home: Home, tmp_path: Path) -> None:
    both = [talk(tmp_path, name, "first things") for name in ("one", "two-one")]
    with Store.open(home.database) as store:
        for one in both:
            archive(desk_of(home, store).render(desk_of(home, store).tail(one.session, one.path)).path, home.archive, 0)
        both[0].path.unlink()
        assert drop_conversations(store, home) == ["one"]
    assert [path.name.partition("-")[2] for path in home.archive.glob("*.md")] == ["two-one.md"]


def test_a_directory_that_cannot_be_seen_is_no_deletion(home: Home, tmp_path: Path) -> None:
    one = talk(tmp_path, "one", "first things")
    with Store.open(home.database) as store:
        imported(store, tmp_path / ".claude")
        (tmp_path / ".claude").rename(tmp_path / "unplugged")
        assert not one.path.exists()
        assert drop_conversations(store, home) == []


def test_a_database_past_its_size_gives_up_excerpts_first_and_conversation_last(home: Home, tmp_path: Path) -> None:
    for n in range(6):
        one = talk(tmp_path, f"s{n}", clock=lambda n=n: 1_700_000_000.0 + n * DAY)  # type: ignore[misc]
        one.turn(f"task {n} " + "words of the user " * 100)
        for m in range(30):
            one.bash(f"make part{m}", f"outcome {m}\n" + f"line of output {n} {m}\n" * 150)
    config = tmp_path / ".claude"
    with Store.open(home.database) as store:
        imported(store, config)
        before = store.read(used_bytes)
        spoken = store.read(lambda db: db.execute("SELECT * FROM messages").fetchall())
        titles = store.read(lambda db: db.execute("SELECT id, title FROM observations").fetchall())
        assert trim(store, before) == 0
        freed = trim(store, int(before * 0.8))
        assert freed > before * 0.2
        store.alone(lambda db: scrub(db, shrink=True))
        assert store.read(used_bytes) <= before * 0.8
        assert store.read(lambda db: db.execute("SELECT * FROM messages").fetchall()) == spoken
        assert store.read(lambda db: db.execute("SELECT id, title FROM observations").fetchall()) == titles
        length = (
            "SELECT content_session_id, max(length(narrative)) FROM observations o"
            " JOIN sessions s ON s.id = o.session_id GROUP BY 1"
        )
        lengths = dict(store.read(lambda db: db.execute(length).fetchall()))
        assert lengths["s0"] < 100 < lengths["s5"], "the oldest gave, the newest did not"
        trim(store, 1)
        assert store.read(lambda db: db.execute("SELECT * FROM messages").fetchall()) == spoken, "transcripts are there"
        shutil.rmtree(config)
        trim(store, 1)
        assert store.read(lambda db: db.execute("SELECT * FROM messages").fetchall()) == []


# -- the archive


def bottled(home: Home, store: Store, root: Path, name: str, quiet: float, ended: bool) -> Path:
    """A session's bottle, whose last sign of life was ``quiet`` seconds before NOW."""
    one = talk(root, name, "work", clock=lambda: NOW - quiet)
    desk = desk_of(home, store)
    bottle = desk.render(desk.tail(name, one.path)).path
    if ended:
        store.write(
            lambda db: (
                db.execute("UPDATE sessions SET ended_at = last_at WHERE content_session_id = ?", (name,)).rowcount
            )
        )
    for path in (bottle, one.path):
        os.utime(path, (NOW - quiet, NOW - quiet))
    return bottle


@pytest.mark.parametrize(
    ("quiet", "ended", "over"),
    [
        (0.5 * DAY, True, False),
        (1.5 * DAY, True, True),
        (3 * DAY, False, False),  # a laptop that slept over the weekend
        (8 * DAY, False, True),
    ],
)
def test_the_bottle_of_a_session_that_is_over_moves_to_the_archive(
    home: Home, tmp_path: Path, quiet: float, ended: bool, over: bool
) -> None:
    with Store.open(home.database) as store:
        bottle = bottled(home, store, tmp_path, "one", quiet, ended)
        assert is_over(store, bottle, NOW) is over
        moved = sweep(store, home, NOW)
        noted = store.read(lambda db: db.execute("SELECT path FROM bottles").fetchone()[0])
        assert bottle.exists() is not over
        assert moved == ([Path(noted)] if over else [])
        assert Path(noted).exists()
        desk_of(home, store).render(desk_of(home, store).tail("one", None))
        assert bottle.exists(), "a session that comes back has its bottle again"


def test_a_session_that_ended_and_went_on_is_not_over(home: Home, tmp_path: Path) -> None:
    with Store.open(home.database) as store:
        bottle = bottled(home, store, tmp_path, "one", 2 * DAY, ended=True)
        store.write(lambda db: db.execute("UPDATE sessions SET last_at = ended_at + 1000").rowcount)
        assert not is_over(store, bottle, NOW)


def test_transcripts_the_client_will_delete_are_named_with_whether_we_hold_them(home: Home, tmp_path: Path) -> None:
    now = time.time()
    held, lost, young = (talk(tmp_path, name, "work") for name in ("held", "lost", "young"))
    with Store.open(home.database) as store:
        imported(store, tmp_path / ".claude")
        lost.turn("said after the last look")
        for one, days in ((held, 25), (lost, 29), (young, 3)):
            os.utime(one.path, (now - days * DAY, now - days * DAY))
        found = about_to_vanish(tmp_path / ".claude", store)
        assert [(v.session_id, v.held) for v in found] == [("lost", False), ("held", True)]
        assert found[0].at == pytest.approx(now + DAY, abs=60)
        assert about_to_vanish(tmp_path / ".claude", store, days=365) == []
        reader = open_reader(home.database)
        assert about_to_vanish(tmp_path / ".claude", reader) == found
        reader.close()


def test_a_session_is_held_only_with_its_subagents(home: Home, tmp_path: Path) -> None:
    config = config_of(tmp_path)
    with Store.open(home.database) as store:
        imported(store, config)
        beside = next(config.glob("projects/*/*/subagents/agent-*.jsonl"))
        with beside.open("ab") as file:
            file.write(
                b'{"type":"user","uuid":"u","sessionId":"s","isSidechain":true,"message":{"role":"user","content":"x"}}\n'
            )
        found = {v.session_id: v.held for v in about_to_vanish(config, store)}
    assert found[beside.parent.parent.name] is False
    assert sum(found.values()) == len(found) - 1
