"""Forgetting: not one byte stays in the home, and nothing comes back."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from endless_mode.bottle.file import archive
from endless_mode.cli.forget import _moment
from endless_mode.deliver import resume
from endless_mode.deliver.desk import Desk
from endless_mode.deliver.ladder import best_document
from endless_mode.errors import BadRequest, EndlessError
from endless_mode.forgetting import Selection, forget, plan
from endless_mode.home import Home
from endless_mode.ingest import ingest_file
from endless_mode.ingest.ingest import Forgotten
from endless_mode.search import Question, build, search
from endless_mode.settings import Settings
from endless_mode.store import Store
from tests.live.parts import Living, Served
from tests.live.transcript import Transcript
from tests.past.parts import DAY, endless, everywhere, imported, talk

MARK, STEM = "XyzzyPlughMarker", "xyzzyplugh"
DAWN = 1_770_000_000.0


class Kept:
    """A home that holds a session with the marker in every place a text can be, and another without."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Home(root / "data")
        self.home.create()
        marked = talk(root, "marked", "nothing of note", clock=lambda: DAWN)
        marked.turn(f"remember {MARK} please", f"{MARK} it is, “quoted” and all.")
        marked.bash(f"echo {MARK}", f"{MARK} came out")
        marked.bash("ls", f"one {MARK} two")
        marked.line({"type": "custom-title", "customTitle": f"About {MARK}", "sessionId": "marked"})
        marked.boundary(summary=f"They spoke of {MARK}.")
        marked.turn("and now something else", "Quite so.")
        talk(root, "other", "an innocent matter", cwd="/home/dev/other", clock=lambda: DAWN + 10 * DAY)
        self.marked, self.store = marked, Store.open(self.home.database)
        imported(self.store, root / ".claude")
        build(self.store)
        self.desk = Desk(self.home, Settings(), self.store, lambda *_: None)
        for name in ("marked", "other"):
            self.desk.render(self.desk.tail(name, None))
        archive(self.home.bottles / "marked.md", self.home.archive, 0)
        self.desk.render(self.desk.tail("marked", None))

    def names(self) -> set[str]:
        return {
            name
            for (name,) in self.store.read(lambda db: db.execute("SELECT content_session_id FROM sessions").fetchall())
        }

    def forget(self, selection: Selection) -> None:
        """Forget at once, and close the store as a worker that ends does."""
        forget(self.store, self.home, selection, now=True)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    made = Kept(tmp_path)
    assert everywhere(made.home, MARK), "the marker is there to begin with"
    return made


def test_a_forgotten_session_is_in_no_byte_of_the_home(kept: Kept) -> None:
    shutil.copy(kept.home.database, kept.home.root / "endless.db.damaged-20260101T000000Z")
    (kept.home.spool / "1.http").write_text(f'{{"session_id": "marked", "prompt": "{MARK}"}}')
    kept.forget(Selection(session="marked"))
    assert everywhere(kept.home, STEM) == []
    assert kept.names() == {"other"}
    kept.store.close()
    assert everywhere(kept.home, STEM) == []


def test_without_the_copy_too_no_byte_is_left(kept: Kept) -> None:
    forget(kept.store, kept.home, Selection(session="marked"), now=False)
    assert everywhere(kept.home, STEM) == []


def test_a_forgotten_session_does_not_come_back(kept: Kept) -> None:
    kept.forget(Selection(session="marked"))
    kept.marked.turn(f"again {MARK}")
    assert imported(kept.store, kept.root / ".claude").read == 0
    with pytest.raises(Forgotten):
        ingest_file(kept.store, kept.marked.path, session_id="marked")
    with pytest.raises(Forgotten):
        kept.desk.tail("marked", kept.marked.path)
    assert everywhere(kept.home, STEM) == []
    assert kept.names() == {"other"}


def test_a_forgotten_text_goes_and_the_rest_of_its_session_stays(kept: Kept) -> None:
    kept.forget(Selection(text=MARK))
    assert everywhere(kept.home, STEM) == []
    assert kept.names() == {"marked", "other"}
    text = (kept.home.bottles / "marked.md").read_text()
    assert "nothing of note" in text
    assert "Quite so." in text
    assert kept.store.read(lambda db: search(db, Question(MARK))) == []
    assert kept.store.read(lambda db: search(db, Question("innocent"))) != []


def test_a_forgotten_text_does_not_come_back_by_any_way(kept: Kept) -> None:
    kept.forget(Selection(text=MARK))
    kept.store.write(lambda db: db.execute("UPDATE transcripts SET anchor = x''").rowcount)  # read it all again
    ingest_file(kept.store, kept.marked.path, session_id="marked")
    fork = kept.marked.path.with_name("fork.jsonl")
    fork.write_bytes(kept.marked.path.read_bytes())
    imported(kept.store, kept.root / ".claude")
    kept.desk.render(kept.desk.tail("marked", kept.marked.path))
    kept.desk.render(kept.desk.tail("fork", fork))
    kept.store.close()
    assert everywhere(kept.home, STEM) == []


def test_what_is_said_later_is_stored_again(kept: Kept) -> None:
    kept.forget(Selection(text=MARK))
    kept.marked.turn("a later matter")
    kept.desk.tail("marked", kept.marked.path)
    assert kept.store.read(lambda db: search(db, Question('"a later matter"'))) != []


def test_a_project_or_a_time_names_its_sessions(kept: Kept) -> None:
    def names(**chosen: object) -> list[str]:
        found = kept.store.read(lambda db: plan(db, kept.home, Selection(**chosen)))  # type: ignore[arg-type]
        return sorted(one.session for one in found.sessions)

    ms = int(DAWN * 1000)
    assert names(project="/home/dev") == ["marked", "other"]
    assert names(project="/home/dev/other/") == ["other"]
    assert names(project="/home/dev/oth") == []
    assert names(until=ms + 1000) == ["marked"]
    assert names(since=ms + 1000) == ["other"]
    assert names(since=ms - 5000, until=ms - 1000) == []
    assert names(project="/home/dev/other", text=MARK) == []


def test_nothing_selected_is_refused(kept: Kept) -> None:
    with pytest.raises(BadRequest):
        forget(kept.store, kept.home, Selection())
    assert kept.names() == {"marked", "other"}


def test_a_successor_loses_what_it_was_told(kept: Kept) -> None:
    kept.marked.turn("the last of it", f"My last words are {MARK}.")
    ready = resume.take_up(kept.desk, "marked", None)
    successor = talk(kept.root, ready.session, "going on")
    assert MARK in resume.claim(kept.desk, ready.session, "SessionStart")
    kept.desk.render(kept.desk.tail(ready.session, successor.path))
    assert MARK in (kept.home.bottles / f"{ready.session}.md").read_text()
    kept.forget(Selection(session="marked"))
    assert everywhere(kept.home, STEM) == []
    text = (kept.home.bottles / f"{ready.session}.md").read_text()
    assert "going on" in text
    assert "marked" not in text


def test_a_dry_run_lists_and_changes_nothing(kept: Kept) -> None:
    kept.store.close()
    environ = {"HOME": str(kept.root), "CLAUDE_MEM_DATA_DIR": str(kept.home.data_dir)}
    before = kept.home.database.read_bytes()
    done = endless(environ, "forget", "--text", MARK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split()[0] == "marked"
    assert str(kept.home.bottles / "marked.md") in done.stdout
    assert "--yes" in done.stderr
    assert kept.home.database.read_bytes() == before
    assert everywhere(kept.home, MARK) != []


def test_the_command_forgets_through_the_worker(living: Living) -> None:
    marked = talk(living.root, "marked", f"remember {MARK}")
    session = living.session("other")
    session.t.turn("something else")
    session.stop_hook()
    assert endless(living.environ, "import").returncode == 0
    assert endless(living.environ, "search", MARK).returncode == 0
    done = endless(living.environ, "forget", "marked", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["done"] is True
    assert everywhere(living.home, MARK) == []
    assert living.rows("SELECT content_session_id FROM sessions") == [("other",)]
    again = endless(living.environ, "bottle", "marked")
    assert again.returncode == 1
    assert endless(living.environ, "import", "--json").returncode == 0
    assert marked.path.exists(), "the client's own file is not ours"
    assert everywhere(living.home, MARK) == []


def test_a_live_session_that_is_forgotten_gets_and_leaves_nothing_more(served: Served) -> None:
    session = served.session("s-1")
    session.t.turn(f"remember {MARK}")
    session.prompt_hook()
    served.service.past.forget(Selection(session="s-1"), dry_run=False, now=True)
    session.t.turn(f"more of {MARK}")
    assert session.stop_hook() == ""
    assert session.compaction() == ""
    assert session.prompt_hook() == ""
    assert everywhere(served.home, MARK) == []


def test_a_bare_date_means_the_whole_day() -> None:
    start, end = _moment("2026-01-31"), _moment("2026-01-31", end=True)
    assert start is not None and end is not None
    assert end - start == DAY * 1000 - 1
    with pytest.raises(EndlessError):
        _moment("yesterday")


def test_a_session_that_only_others_keep_can_be_forgotten_too(kept: Kept) -> None:
    place = kept.home.bottles / "elsewhere-1.md"
    place.write_text("# Session bottle — a bottle made from what others keep")
    chosen = Selection(session="elsewhere-1")
    shown = kept.store.read(lambda db: plan(db, kept.home, chosen))
    assert [(one.session, one.stored, one.messages) for one in shown.sessions] == [("elsewhere-1", False, 0)]
    assert place.exists()
    kept.forget(chosen)
    assert not place.exists()
    config = kept.root / ".claude"
    line = {"display": MARK, "timestamp": 1, "project": "/p", "sessionId": "elsewhere-1"}
    (config / "history.jsonl").write_text(json.dumps(line) + "\n")
    found = best_document(kept.home, kept.store, "elsewhere-1", config_dir=config)
    assert found.document is None and "forgotten" in found.why
    assert kept.store.read(lambda db: plan(db, kept.home, chosen)).sessions == [], "it is forgotten already"
    for nothing in (Selection(session="../x"), Selection(session="nobody", text=MARK)):
        assert kept.store.read(lambda db, nothing=nothing: plan(db, kept.home, nothing)).sessions == []


def test_a_session_forgotten_while_it_is_read_leaves_nothing_to_another(tmp_path: Path) -> None:
    """Its row's number is free at once, and the next session gets it."""
    path = tmp_path / "s-a.jsonl"
    t = Transcript(path, "s-a")
    for n in range(40):
        t.turn(f"count the herons {n}")
    with Store.open(tmp_path / "endless.db") as store:

        def forgotten(_: int, __: int) -> None:
            def swap(db: sqlite3.Connection) -> None:
                db.execute("DELETE FROM sessions WHERE content_session_id = 's-a'")
                db.execute("INSERT INTO sessions (platform_source, content_session_id) VALUES ('claude', 's-b')")

            if not store.read(
                lambda db: db.execute("SELECT 1 FROM sessions WHERE content_session_id = 's-b'").fetchone()
            ):
                store.write(swap)

        with pytest.raises(Forgotten):
            ingest_file(store, path, progress=forgotten, stretch=2_000)
        left = store.read(lambda db: db.execute("SELECT count(*) FROM messages").fetchone())
        assert left == (0,)
