"""What the worker does by itself in idle time: archive, let conversations go, keep to the size."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from endless_mode.bottle.entries import MODE_RECONSTRUCTED, Speech
from endless_mode.deliver.ladder import best_document
from endless_mode.home import Home
from endless_mode.retention import used_bytes
from endless_mode.settings import Settings
from endless_mode.worker.live import LiveService
from tests.claude_mem.files import FRESH, SESSIONS, checked_text, database
from tests.live.parts import Served, Session, served_in
from tests.past.parts import DAY, everywhere
from tests.processes import eventually

MARK, STEM = "xyzzyplughmarker", "xyzzyplugh"


def held_back(home: Home, settings: Settings) -> LiveService:
    """A service that does its housework when a test says so."""
    service = LiveService(home, settings)
    service.past.begin_after = 10_000.0
    return service


def impatient(home: Home, settings: Settings) -> LiveService:
    service = LiveService(home, settings)
    service.past.begin_after = 0.05
    return service


def captured(served: Served, name: str, said: str = MARK) -> Session:
    """A session of one turn with its bottle on disk."""
    one = served.session(name)
    one.t.prompt(f"remember {said}")
    one.t.bash("ls", "a b c")
    one.t.say(f"I shall remember {said}.")
    one.prompt_hook()
    one.stop_hook()
    eventually((served.home.bottles / f"{name}.md").exists)
    return one


def housework(served: Served) -> None:
    """The round that the worker makes in idle time."""
    served.service.past._keep_house()


def test_a_worker_that_starts_moves_the_bottles_of_sessions_that_are_over_into_the_archive(tmp_path: Path) -> None:
    with served_in(tmp_path, held_back) as served:
        for name in ("over", "fresh"):
            captured(served, name)
    long_ago = time.time() - 9 * DAY
    for path in (served.home.bottles / "over.md", served.projects / "over.jsonl"):
        os.utime(path, (long_ago, long_ago))
    with served_in(tmp_path, held_back) as served:
        past = int(long_ago * 1000)
        served.use(
            lambda db: db.execute("UPDATE sessions SET last_at = ? WHERE content_session_id = 'over'", (past,)).rowcount
        )
    with served_in(tmp_path, impatient) as served:
        eventually(lambda: list(served.home.archive.glob("*-over.md")))
        assert not (served.home.bottles / "over.md").exists()
        assert (served.home.bottles / "fresh.md").exists()


@pytest.mark.parametrize("keep", [True, False])
def test_with_the_setting_off_what_was_said_goes_with_the_transcript_from_every_byte_of_the_home(
    tmp_path: Path, keep: bool
) -> None:
    with served_in(tmp_path, held_back, CLAUDE_MEM_ENDLESS_KEEP_CONVERSATION=str(keep).lower()) as served:
        one, there = captured(served, "one"), captured(served, "there", "something else")
        eventually(lambda: served.service.past.index(5.0) == 0)
        housework(served)
        assert len(served.rows("SELECT DISTINCT session_id FROM messages")) == 2, "the transcripts are there"
        assert there.t.path.exists() and everywhere(served.home, MARK)
        one.t.path.unlink()
        housework(served)
        left = served.rows("SELECT DISTINCT content_session_id FROM messages m JOIN sessions s ON s.id = m.session_id")
        assert left == ([("one",), ("there",)] if keep else [("there",)])
        assert (served.home.bottles / "one.md").exists() is keep
        assert len(served.rows("SELECT 1 FROM observations")) == 2, "what was done stays"
        store = served.service.keeper.desk.store
        assert best_document(served.home, store, "one", config_dir=tmp_path / "none").rung == "stored"
    assert bool(everywhere(served.home, MARK)) is keep
    assert bool(everywhere(served.home, STEM)) is keep, "the index has words as stems"


def test_without_the_conversation_the_ladder_is_one_rung_lower(tmp_path: Path) -> None:
    name = SESSIONS[FRESH]
    with served_in(tmp_path, held_back, CLAUDE_MEM_ENDLESS_KEEP_CONVERSATION="false") as served:
        database(FRESH, served.home.data_dir)
        one = captured(served, name)
        store = served.service.keeper.desk.store
        assert best_document(served.home, store, name).rung == "transcript"
        one.t.path.unlink()
        assert best_document(served.home, store, name).rung == "stored"
        housework(served)
        found = best_document(served.home, store, name)
        assert found.rung == "claude-mem" and "given up" in found.why and found.document is not None
        assert found.document.header.mode == MODE_RECONSTRUCTED
        said = [entry.text for entry in found.document.entries if isinstance(entry, Speech)]
        assert MARK not in str(said) and said[0] == "Add a retry to the uploader"
        one.compacted()
        text = (served.home.bottles / f"{name}.md").read_text()
        checked_text(text)
        assert "[#cm:1]" in text and "ls" in text and MARK not in text


def test_the_worker_keeps_the_database_to_its_size(tmp_path: Path) -> None:
    with served_in(tmp_path, held_back, CLAUDE_MEM_ENDLESS_MAX_DB_MB="16") as served:
        one = captured(served, "one")
        (event,) = served.rows("SELECT id FROM tool_events LIMIT 1")[0]
        served.use(
            lambda db: (
                db.execute(
                    "UPDATE observations SET narrative = 'it came out' || char(10) || hex(zeroblob(9000000))"
                    " WHERE event_id = ?",
                    (event,),
                ).rowcount
            )
        )
        store = served.service.keeper.desk.store
        assert store.read(used_bytes) > 16e6
        housework(served)
        assert store.read(used_bytes) < 16e6
        assert served.home.database.stat().st_size < 16e6, "the file shrinks too"
        assert served.rows("SELECT narrative FROM observations WHERE event_id = ?", event) == [("it came out",)]
        assert MARK in str(served.rows("SELECT text FROM messages"))
        assert one.t.path.exists()
