"""Import: every past session once, however often it is cut off."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from bench.contents import contents
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endless_mode.deliver.desk import Caller, Desk
from endless_mode.home import Home
from endless_mode.importing import Imported, Moved, exclusion, import_all
from endless_mode.search import missing
from endless_mode.search.index import step
from endless_mode.settings import Settings
from endless_mode.store import Store
from endless_mode.worker import past
from endless_mode.worker.client import WorkerClient
from endless_mode.worker.live import LiveService
from tests.live.parts import Living, is_handoff, served_in
from tests.past.parts import config_of, endless, imported, read_into, rows_of, talk
from tests.processes import eventually


class CutOff(Exception):
    pass


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return config_of(tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def whole(config: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[object, ...]]]:
    """The rows of an import that nothing disturbed."""
    path = tmp_path_factory.mktemp("whole") / "endless.db"
    with Store.open(path) as store:
        done = imported(store, config)
    assert done.read == done.files > 3
    return rows_of(path)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 40), max_size=6), st.integers(2_000, 60_000))
def test_an_import_cut_off_anywhere_and_begun_again_gives_the_same_store(
    config: Path,
    whole: dict[str, list[tuple[object, ...]]],
    tmp_path_factory: pytest.TempPathFactory,
    cuts: list[int],
    stretch: int,
) -> None:
    path = tmp_path_factory.mktemp("cut") / "endless.db"
    for cut in [*cuts, 1 << 30]:
        left = [cut]

        def report(_: Imported, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise CutOff

        with Store.open(path) as store:
            try:
                imported(store, config, stretch, report=report)
            except CutOff:
                continue
    assert rows_of(path) == whole


def test_an_import_killed_in_the_middle_goes_on_where_it_was(
    config: Path, whole: dict[str, list[tuple[object, ...]]], tmp_path: Path
) -> None:
    script = (
        "import sys; from pathlib import Path; from endless_mode.store import Store\n"
        "from tests.past.parts import imported\n"
        "def report(s): print(s.done_bytes, flush=True)\n"
        "with Store.open(Path(sys.argv[1])) as store: imported(store, Path(sys.argv[2]), 8000, report=report)"
    )
    path = tmp_path / "endless.db"
    words = [sys.executable, "-c", script, str(path), str(config)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for lines in (3, 25):
        child = subprocess.Popen(words, stdout=subprocess.PIPE, env=environ)
        assert child.stdout is not None
        for _ in range(lines):
            assert child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    assert subprocess.run(words, env=environ, stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert rows_of(path) == whole


def test_a_second_import_has_nothing_to_read(config: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "endless.db") as store:
        first, second = imported(store, config), imported(store, config)
    assert (first.read, first.known) == (first.files, 0)
    assert (second.read, second.known) == (0, second.files)


def test_files_of_subagents_are_no_sessions_of_their_own(config: Path, tmp_path: Path) -> None:
    (config / "projects" / "-home-dev" / "agent-abc.jsonl").write_text("{}\n")
    with Store.open(tmp_path / "endless.db") as store:
        done = imported(store, config)
        names = store.read(lambda db: db.execute("SELECT content_session_id FROM sessions").fetchall())
        agents = store.read(lambda db: db.execute("SELECT count(*) FROM transcripts WHERE agent <> ''").fetchone()[0])
    assert len(names) == done.files
    assert not any(name.startswith("agent-") for (name,) in names)
    assert agents > 0


def test_what_cannot_be_read_is_named_with_its_reason(tmp_path: Path) -> None:
    good = talk(tmp_path, "good", "hello")
    folder = good.path.parent
    (folder / "empty.jsonl").touch()
    (folder / "other.jsonl").write_text("no transcript at all\n" * 5)
    (folder / "folder.jsonl").mkdir()
    twin = folder.parent / "-elsewhere" / "good.jsonl"
    twin.parent.mkdir()
    twin.write_bytes(good.path.read_bytes())
    os.utime(twin, (1, 1))
    with Store.open(tmp_path / "endless.db") as store:
        done = imported(store, tmp_path / ".claude")
    reasons = {Path(one.path).parent.name + "/" + Path(one.path).name: one.code for one in done.skipped}
    assert done.read == 1
    assert reasons == {
        "-elsewhere/good.jsonl": "older_copy",
        "-home-dev-app/empty.jsonl": "empty_transcript",
        "-home-dev-app/other.jsonl": "not_a_transcript",
        "-home-dev-app/folder.jsonl": "transcript_unreadable",
    }


def test_excluded_projects_and_our_own_data_directory_stay_out(tmp_path: Path) -> None:
    talk(tmp_path, "mine", "hello", cwd="/home/dev/app")
    talk(tmp_path, "secret", "hello", cwd="/home/dev/secret")
    talk(tmp_path, "observer", "hello", cwd=str(tmp_path / "data" / "observer-sessions"))
    with Store.open(tmp_path / "endless.db") as store:
        done = imported(store, tmp_path / ".claude", excluded=exclusion(["*/secret"], tmp_path / "data"))
        names = store.read(lambda db: db.execute("SELECT content_session_id FROM sessions").fetchall())
    assert names == [("mine",)]
    assert {(Path(one.path).stem, one.code) for one in done.skipped} == {
        ("secret", "excluded"),
        ("observer", "excluded"),
    }


def test_a_session_that_wakes_up_is_left_to_its_hooks_and_the_rest_goes_on(tmp_path: Path) -> None:
    talk(tmp_path, "one", "hello")
    talk(tmp_path, "two", "hello")
    with Store.open(tmp_path / "endless.db") as store:
        read = read_into(store)

        def moved(session: str, path: Path, progress: object) -> int:
            if session == "one":
                raise Moved
            return read(session, path, progress)

        done = import_all(moved, store.read, tmp_path / ".claude", lambda cwd: False)
    assert (done.read, done.known, done.skipped) == (1, 1, [])


def test_an_old_compaction_that_was_imported_gets_no_handoff(tmp_path: Path) -> None:
    old = talk(tmp_path, "old", "before", clock=lambda: 1_700_000_000.0)
    old.boundary()
    old.turn("after")
    home = Home(tmp_path / "data")
    home.create()
    with Store.open(home.database) as store:
        imported(store, tmp_path / ".claude")
        desk = Desk(home, Settings(), store, lambda *_: None)
        caller = Caller("old", old.path, old.cwd)
        assert desk.at_resume(caller) == ""
        assert desk.at_prompt(caller) == ""
        assert store.read(lambda db: db.execute("SELECT count(*) FROM boundaries").fetchone()[0]) == 1


def test_the_command_imports_through_the_worker_and_reports(living: Living) -> None:
    config = config_of(living.root)
    (config / "projects" / "-home-dev" / "broken.jsonl").write_text("not one entry\n")
    done = endless(living.environ, "import", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["read"] == told["files"] - 1
    assert [Path(one["path"]).name for one in told["skipped"]] == ["broken.jsonl"]
    assert living.rows("SELECT count(*) FROM sessions") == [(told["read"],)]
    assert living.locked(), "the worker did it"
    assert living.client.health().live_sessions == 0


def test_the_command_imports_by_itself_when_no_worker_can_start(living: Living) -> None:
    talk(living.root, "one", "hello")
    living.home.create()
    living.home.lock.touch()
    hold = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, 2); print(1, flush=True); sys.stdin.read()"
    blocker = subprocess.Popen(
        [sys.executable, "-c", hold, str(living.home.lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    living.children.append(blocker)
    assert blocker.stdout is not None and blocker.stdout.readline()
    done = endless(living.environ, "import", "--json")
    blocker.kill()
    blocker.wait()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["read"] == 1


def impatient(home: Home, settings: Settings) -> LiveService:
    service = LiveService(home, settings)
    service.past.begin_after = 0.05
    return service


def test_the_worker_reads_past_sessions_in_by_itself_while_nothing_happens(tmp_path: Path) -> None:
    talk(tmp_path, "past", "long ago")
    with served_in(tmp_path, impatient, CLAUDE_MEM_ENDLESS_BACKFILL="on", HOME=str(tmp_path)) as served:
        now = served.session("now")
        now.t.turn("at work")
        now.prompt_hook()
        store = served.service.keeper.desk.store
        names = "SELECT content_session_id FROM sessions ORDER BY 1"
        eventually(lambda: ("past",) in store.read(lambda db: db.execute(names).fetchall()))
        assert served.client.health().live_sessions == 1
        assert not is_handoff(now.prompt_hook())


def test_the_backfill_can_be_switched_off(tmp_path: Path) -> None:
    talk(tmp_path, "past", "long ago")
    with served_in(tmp_path, impatient, HOME=str(tmp_path)) as served:
        now = served.session("now")
        now.t.turn("at work")
        now.prompt_hook()
        store = served.service.keeper.desk.store
        eventually(lambda: store.read(missing) == 0)
        assert store.read(lambda db: db.execute("SELECT content_session_id FROM sessions").fetchall()) == [("now",)]


@pytest.mark.parametrize("seed", [1, 2])
def test_an_import_whose_worker_is_killed_again_and_again_ends_with_the_store_of_an_undisturbed_one(
    living: Living, tmp_path: Path, seed: int
) -> None:
    config = config_of(living.root)
    with Store.open(tmp_path / "whole.db") as store:
        done = imported(store, config)
        while store.write(step):
            pass
    living.start()
    command = subprocess.Popen(
        [sys.executable, "-m", "endless_mode", "import", "--json"],
        env={**living.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    read = "SELECT coalesce(sum(offset), 0) FROM transcripts"
    rng = random.Random(seed)
    kills = 0
    for share in sorted(rng.uniform(0, 0.9) for _ in range(4)):
        mark = share * done.total_bytes
        eventually(lambda mark=mark: living.home.database.exists() and living.rows(read)[0][0] > mark)
        if command.poll() is None:
            living.kill()
            kills += 1
    out, err = command.communicate(timeout=60)
    assert command.returncode == 0, err
    assert kills >= 2
    assert json.loads(out)["files"] == done.files
    living.start()
    assert WorkerClient(living.home, 60).index(60.0).missing == 0
    assert contents(living.home.database) == contents(tmp_path / "whole.db")


def test_two_stores_that_differ_in_one_value_are_not_the_same(config: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        with Store.open(tmp_path / name) as store:
            imported(store, config)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    changes = {
        "messages": "UPDATE messages SET text = text || '.' WHERE id = 3",
        "observations": "UPDATE observations SET ordinal = ordinal + 1 WHERE id = 5",
        "transcripts": "UPDATE transcripts SET lines = lines + 1 WHERE session_id = 2",
    }
    for table, change in changes.items():
        with contextlib.closing(sqlite3.connect(tmp_path / "two")) as db, db:
            assert db.execute(change).rowcount > 0
        one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
        assert one[table] != two[table]


def test_an_import_that_breaks_off_is_not_called_done(living: Living, tmp_path: Path) -> None:
    service = impatient(living.home, Settings())
    service.past._import = lambda root: 1 / 0  # type: ignore[method-assign]
    living.home.create()
    service.past.import_from(tmp_path)
    service.past.start()
    eventually(lambda: not service.past.status().running)
    assert service.past.status().failed
    service.past.stop()


def test_the_backfill_takes_larger_steps_only_when_nobody_has_been_there_for_long(
    living: Living, tmp_path: Path
) -> None:
    service = past.Past(living.home, Settings(), None, None, lambda _: False)  # type: ignore[arg-type]
    service.saw_hook(None)
    assert service._stretch() == past.STRETCH
    service._hook_at -= past.PEACE + 1
    assert service._stretch() == past.STRETCH
    service._hook_at -= past.QUIET
    assert service._stretch() == past.QUIET_STRETCH
    service.import_from(tmp_path)
    assert service._stretch() == past.ASKED_STRETCH
    service.saw_hook(None)
    assert service._stretch() == past.STRETCH
