"""Going on in a fresh context: the handoff waits for one session, and that one remembers where it came from."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from endless_mode.bottle.entries import MODE_FULL, MODE_RECONSTRUCTED, MODE_STORED, GeneratedSummary
from endless_mode.deliver import resume
from endless_mode.errors import WorkerError
from endless_mode.retention import UNBORN, sweep
from tests.claude_mem.files import FRESH, SESSIONS, database
from tests.live.parts import Living, Served, Session, document, is_handoff
from tests.live.transcript import Transcript
from tests.past.parts import endless, talk
from tests.processes import eventually


def began(served: Served, name: str = "s-1") -> Session:
    session = served.session(name)
    session.t.turn("count the herons", "Seventeen.")
    session.prompt_hook()
    return session


def going_on(served: Served, ready: resume.Resumed) -> Session:
    """The session the client begins with the id it was given."""
    return served.session(ready.session, cwd=ready.cwd)


def startup(session: Session) -> str:
    return session.fire("SessionStart", source="startup")


def test_the_first_hook_of_the_named_session_gets_the_handoff_once(served: Served) -> None:
    old = began(served)
    ready = served.client.resume("s-1", served.root / ".claude")
    assert (ready.predecessor, ready.cwd, ready.mode) == ("s-1", old.t.cwd, MODE_FULL)
    other = served.session("other", cwd=ready.cwd)
    assert not is_handoff(startup(other))
    new = going_on(served, ready)
    printed = startup(new)
    assert is_handoff(printed)
    assert "Seventeen." in printed
    assert ready.bottle_path in printed
    assert not is_handoff(startup(new))
    assert new.prompt_hook() == ""


def test_the_first_prompt_gets_it_when_the_start_did_not(served: Served) -> None:
    began(served)
    new = going_on(served, served.client.resume("s-1", served.root / ".claude"))
    assert is_handoff(new.prompt_hook())
    assert new.prompt_hook() == ""
    assert not is_handoff(startup(new))


def test_a_session_cleared_by_mistake_comes_back(served: Served) -> None:
    old = began(served)
    old.ended("clear")
    assert not (served.home.bottles / "s-1.md").exists()
    after = served.session("after-clear")
    after.fire("SessionStart", source="clear")
    ready = served.client.resume("s-1", served.root / ".claude")
    assert (served.home.bottles / "s-1.md").exists()
    assert is_handoff(startup(going_on(served, ready)))


def test_a_session_without_transcript_is_resumed_from_what_was_stored(served: Served) -> None:
    old = began(served)
    old.t.path.unlink()
    ready = served.client.resume("s-1", served.root / ".claude")
    assert ready.mode == MODE_STORED
    assert "Seventeen." in startup(going_on(served, ready))


def test_a_session_nobody_has_read_yet_is_found_on_disk(served: Served) -> None:
    talk(served.root, "never-seen", "find the bittern", cwd="/home/dev/marsh")
    ready = served.client.resume("never-seen", served.root / ".claude")
    assert ready.cwd == "/home/dev/marsh"
    assert "find the bittern" in startup(going_on(served, ready))


def test_the_name_of_a_project_is_not_taken_for_a_directory(served: Served) -> None:
    database(FRESH, served.home.data_dir)
    ready = served.client.resume(SESSIONS[FRESH], served.root / ".claude")
    assert (ready.mode, ready.cwd) == (MODE_RECONSTRUCTED, "")
    printed = startup(going_on(served, ready))
    assert (
        "partial reconstruction" in printed and "demo-project" in document(served.home, SESSIONS[FRESH]).header.project
    )


def test_an_unknown_session_is_refused_and_leaves_nothing(served: Served) -> None:
    with pytest.raises(WorkerError) as caught:
        served.client.resume("nobody", served.root / ".claude")
    assert caught.value.code == "no_such_session"
    store = served.service.keeper.desk.store
    assert store.read(lambda db: db.execute("SELECT count(*) FROM deliveries").fetchone()[0]) == 0
    assert store.read(lambda db: db.execute("SELECT content_session_id FROM sessions").fetchall()) == []


def test_the_next_bottle_holds_both_and_its_handoff_names_the_predecessor(served: Served) -> None:
    began(served)
    ready = served.client.resume("s-1", served.root / ".claude")
    new = going_on(served, ready)
    new.t.hooked(startup(new), source="startup")
    new.t.turn("now the cranes", "Three cranes.")
    printed = new.compaction()
    assert is_handoff(printed)
    assert f"Goes on from session s-1, whose bottle is {ready.bottle_path}" in printed
    made = document(served.home, ready.session)
    assert made.header.notes == [f"Goes on from session s-1, whose bottle is {ready.bottle_path}"]
    first = made.entries[0]
    assert isinstance(first, GeneratedSummary)
    assert "Seventeen." in first.text
    text = (served.home.bottles / f"{ready.session}.md").read_text()
    assert "now the cranes" in text and "Three cranes." in text
    assert new.prompt_hook() == "", "the compaction had its handoff"


def test_what_the_new_session_was_told_stays_when_the_old_one_goes_on(served: Served) -> None:
    old = began(served)
    new = going_on(served, served.client.resume("s-1", served.root / ".claude"))
    startup(new)
    new.t.turn("now the cranes")
    new.compaction()
    before = document(served.home, new.t.session).entries[0]
    old.t.turn("and now the geese", "Forty geese.")
    old.prompt_hook()
    new.compaction()
    assert document(served.home, new.t.session).entries[0] == before


def test_a_resumed_session_that_never_began_is_dropped_after_a_while(served: Served) -> None:
    began(served)
    ready = served.client.resume("s-1", served.root / ".claude")
    desk = served.service.keeper.desk
    count = "SELECT count(*) FROM sessions"
    sweep(desk.store, served.home)
    assert desk.store.read(lambda db: db.execute(count).fetchone()[0]) == 2
    sweep(desk.store, served.home, time.time() + UNBORN + 60)
    assert desk.store.read(lambda db: db.execute(count).fetchone()[0]) == 1
    assert not is_handoff(startup(going_on(served, ready)))


def test_a_resumed_session_that_has_not_begun_is_shown_nowhere(served: Served) -> None:
    old = began(served)
    ready = served.client.resume("s-1", served.root / ".claude")
    other = served.session("other", cwd=old.t.cwd)
    told = startup(other)
    assert "s-1" in told and ready.session[:8] not in told
    listed = endless({"HOME": str(served.root), "CLAUDE_MEM_DATA_DIR": str(served.home.data_dir)}, "sessions").stdout
    assert "s-1" in listed and ready.session not in listed
    new = going_on(served, ready)
    new.t.prompt("now the storks")
    assert is_handoff(new.prompt_hook()) and new.prompt_hook() == ""
    assert ready.session[:8] in startup(served.session("third", cwd=old.t.cwd))


def test_the_command_prints_what_to_run(living: Living, tmp_path: Path) -> None:
    place = tmp_path / "my project"
    place.mkdir()
    talk(living.root, "older", "an older matter", cwd=str(place))
    last = talk(living.root, "newer", "the last matter", cwd=str(place))
    assert endless(living.environ, "import").returncode == 0
    done = endless(living.environ, "resume", "--last", "--print", cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"cd '{place}' && claude --session-id ")
    assert "Run `endless install`" in done.stderr, "no hooks, no handoff"
    assert living.rows("SELECT predecessor FROM sessions WHERE predecessor <> ''") == [(last.session,)]
    named = endless(living.environ, "resume", "older", "--json", "--", "--model", "x y", cwd=tmp_path)
    told = json.loads(named.stdout)
    assert (told["predecessor"], told["directory"]) == ("older", str(place))
    assert told["command"] == ["claude", "--session-id", told["session"], "--model", "x y"]
    nothing = endless(living.environ, "resume", "--last", "--print", cwd=tmp_path)
    assert nothing.returncode == 1
    assert "endless sessions" in nothing.stderr


def test_the_command_becomes_the_client_in_the_sessions_directory(living: Living, tmp_path: Path) -> None:
    place = tmp_path / "project"
    place.mkdir()
    session = living.session("s-1", cwd=str(place))
    session.t.turn("count the herons", "Seventeen.")
    session.prompt_hook()
    tools = tmp_path / "bin"
    tools.mkdir()
    client = tools / "claude"
    client.write_text('#!/bin/sh\npwd\nprintf "%s\\n" "$@"\n')
    client.chmod(0o755)
    environ = {**living.environ, "PATH": f"{tools}:{living.environ['PATH']}"}
    done = endless(environ, "resume", "s-1", "--", "-p", "go on", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    where, flag, new, *more = done.stdout.splitlines()
    assert (where, flag, more) == (str(place), "--session-id", ["-p", "go on"])
    next_one = Session(living.print_hook, Transcript(living.projects / f"{new}.jsonl", new, str(place)))
    assert "Seventeen." in eventually(lambda: startup(next_one))
