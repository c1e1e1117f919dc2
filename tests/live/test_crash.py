"""Whatever dies, fills up, locks or breaks: no message is lost, no handoff doubled, and the client never notices."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from endless_mode import settings
from endless_mode.bottle.entries import Happened
from endless_mode.deliver import claims
from endless_mode.deliver.claims import Ask
from endless_mode.deliver.desk import Caller
from endless_mode.deliver.keeper import Keeper
from endless_mode.home import Home
from tests.live.parts import Living, Served, Session, document, is_handoff, served_in, speech
from tests.live.transcript import Transcript, marker_of
from tests.processes import eventually

#: Of the points at which a process can be killed, every so manieth is tried.
EVERY = int(os.environ.get("ENDLESS_KILL_EVERY", "4"))


def keeper_of(root: Path) -> Keeper:
    home = Home(root / "data")
    home.create()
    return Keeper(home, settings.load(home, {}), lambda name, session, error: None)


def transcript_in(root: Path) -> Transcript:
    t = Transcript(root / ".claude/projects/p/s-1.jsonl")
    for n in range(4):
        t.turn(f"thing {n}")
    t.prompt("the last thing")
    t.bash("make last")
    return t


# -- kill -9 -----------------------------------------------------------------------------------------------


def seal_and_hand_over(root: Path, path: Path) -> str:
    """Everything a worker does around one compaction."""
    keeper = keeper_of(root)
    keeper.open()
    at = keeper.use(lambda desk: desk.tail("s-1", path))
    keeper.use(lambda desk: desk.seal(at, desk.handed(at)))
    printed = keeper.after_compaction(Caller("s-1", path, "/tmp", "1-1"))
    keeper.close()
    return printed


def in_a_child(root: Path, path: Path, last: int) -> tuple[int, bytes]:
    """Do it in a process that is killed at its ``last`` step (0: never): steps taken, what it printed.

    A step is a statement of the database or the opening or renaming of a file.
    """
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        code = 1
        with contextlib.suppress(BaseException):
            _doomed(root, path, last, into)
            code = 0
        os._exit(code)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) if last else os.waitstatus_to_exitcode(status) == 0
    steps, _, printed = told.partition(b"\n")
    return (int(steps), printed) if steps else (0, b"")


def _doomed(root: Path, path: Path, last: int, into: int) -> None:
    steps = 0

    def step(*_: object) -> None:
        nonlocal steps
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(event: str, given: tuple[Any, ...]) -> None:
        if event in ("open", "os.rename") and str(root) in str(given[0]):
            step()

    real = sqlite3.connect

    def connect(*given: Any, **more: Any) -> sqlite3.Connection:
        db = real(*given, **more)
        db.set_trace_callback(step)
        return db

    sqlite3.connect = connect  # type: ignore[assignment]
    sys.addaudithook(audit)
    printed = seal_and_hand_over(root, path)
    os.write(into, b"%d\n" % steps + printed.encode())


def test_killed_at_any_step_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    t = transcript_in(tmp_path)
    steps, printed = in_a_child(tmp_path, t.path, 0)
    assert steps > 50 and is_handoff(printed.decode())
    for last in range(1, steps + 1, EVERY):
        shutil.rmtree(tmp_path / "data")
        _, printed = in_a_child(tmp_path, t.path, last)
        assert printed == b""  # it died before it could print
        again = keeper_of(tmp_path)
        again.open()
        try:
            caller = Caller("s-1", t.path, "/tmp", "1-1")  # the hook asks again, under the same name
            assert is_handoff(again.after_compaction(caller)), last
            assert again.after_compaction(Caller("s-1", t.path, "/tmp", "1-2")) == "", last
            assert speech(again.home) == t.said, last
            assert [p for p in again.home.bottles.glob("*.tmp") if not p.name.startswith(".")] == []
        finally:
            again.close()


def test_a_worker_killed_while_it_hands_over_answers_after_all(living: Living) -> None:
    living.start()
    s = living.session()
    for n in range(6):
        s.t.turn(f"thing {n}", work=3)
        s.pre_compact()
        hook = living.hook_process("SessionStart", s.payload("SessionStart", source="compact"))
        if n % 2:
            eventually(lambda: living.rows("SELECT 1 FROM deliveries") or living.children[-1].poll() is not None)
        living.kill()
        printed = hook.communicate(timeout=30)[0].decode()
        assert hook.returncode == 0 and is_handoff(printed), n
        s.t.boundary()
        s.t.hooked(printed)
        s.prompt_hook()
        assert s.prompt_hook() == ""


# -- no room, no right, no lock ------------------------------------------------------------------------------


@contextlib.contextmanager
def full_disk(pid: int) -> Iterator[None]:
    """A process in which every write to a file fails."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are a thing of Linux")
def test_with_a_full_disk_a_compaction_is_handed_over_once(living: Living) -> None:
    living.start()
    s = living.session()
    s.t.turn("the parser")
    s.pre_compact()
    s.t.bash("make more")
    with full_disk(living.worker_pid()):
        printed = s.compacted()
        assert is_handoff(printed) and "## Where things stand" in printed
        assert s.compacted() == ""
    s.t.boundary()
    assert s.prompt_hook() == ""
    s.t.turn("the lexer")
    assert is_handoff(s.compaction())
    assert speech(living.home) == s.t.said


def test_with_a_disk_that_was_always_full_a_compaction_is_handed_over(living: Living) -> None:
    s = living.session()
    s.t.turn("the parser")
    payload = s.payload("SessionStart", source="compact")

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    done = living.hook("SessionStart", payload, preexec_fn=full)
    assert done.returncode == 0 and done.stderr == b""
    printed = done.stdout.decode()
    assert is_handoff(printed) and "## Where things stand" in printed and "Read(file_path=" not in printed


def test_with_a_home_that_cannot_be_made_a_compaction_is_handed_over(tmp_path: Path) -> None:
    living = Living(tmp_path, CLAUDE_MEM_DATA_DIR="/proc/nowhere")
    s = living.session()
    s.t.turn("the parser")
    assert s.pre_compact() == "" and s.prompt_hook() == ""
    printed = s.compacted()
    assert is_handoff(printed) and "could not be written to disk" in printed and "the parser" in printed


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_with_a_home_that_became_read_only_a_compaction_is_handed_over(living: Living) -> None:
    living.start()
    s = living.session()
    s.t.turn("the parser")
    living.kill()
    parts = [living.home.root, *living.home.root.rglob("*")]
    modes = {part: part.stat().st_mode for part in parts}
    try:
        for part in parts:
            part.chmod(modes[part] & ~0o222)
        assert is_handoff(s.compacted())
    finally:
        for part in parts:
            part.chmod(modes[part])


def test_with_a_locked_database_a_compaction_is_handed_over_once(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.prompt_hook()
    other = sqlite3.connect(served.home.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        printed = s.compacted()
        assert is_handoff(printed)
        assert s.compacted() == ""
    finally:
        other.execute("ROLLBACK")
        other.close()
    s.t.boundary()
    assert s.prompt_hook() == "" and s.compacted() == ""
    assert served.rows("SELECT marker FROM deliveries WHERE consumed_at IS NOT NULL") == [(marker_of(printed),)]


# -- damage ------------------------------------------------------------------------------------------------


def random_bytes(data: bytearray, rng: Random) -> None:
    for _ in range(40):
        data[rng.randrange(200, len(data))] = rng.randrange(256)


def zeroed_pages(data: bytearray, rng: Random) -> None:
    for _ in range(3):
        page = rng.randrange(2, len(data) // 4096)
        data[page * 4096 : (page + 1) * 4096] = bytes(4096)


def no_header(data: bytearray, rng: Random) -> None:
    data[:100] = rng.randbytes(100)


def cut_short(data: bytearray, rng: Random) -> None:
    del data[len(data) // 2 + 100 :]


def emptied(data: bytearray, rng: Random) -> None:
    data.clear()


def lines_with_ids(home: Home) -> dict[str, str]:
    entries = [e for e in document(home).entries if isinstance(e, Happened)]
    return {number: line.text for entry in entries for line in entry.lines for number in line.ids}


def readable_ids(path: Path) -> list[str]:
    """Observations of which the damaged file still gives everything, from the first one to the damage."""
    found: list[str] = []
    ask = (
        "SELECT o.id, o.title, e.digest, s.content_session_id FROM observations o"
        " JOIN tool_events e ON e.id = o.event_id JOIN sessions s ON s.id = o.session_id ORDER BY o.id"
    )
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    with contextlib.closing(db), contextlib.suppress(sqlite3.Error, UnicodeError):
        for number, *_ in db.execute(ask):
            found.append(str(number))
    return found


@pytest.mark.parametrize("damage", [random_bytes, zeroed_pages, no_header, cut_short, emptied])
@pytest.mark.parametrize("seed", range(int(os.environ.get("ENDLESS_DAMAGE_SEEDS", "4"))))
def test_a_damaged_database_is_put_aside_and_made_anew(tmp_path: Path, damage: Any, seed: int) -> None:
    with served_in(tmp_path) as served:
        s = served.session()
        for n in range(12):
            s.t.turn(f"thing {n}", work=8)
        assert is_handoff(s.compaction())
        s.t.turn("and on")
        served.seal(s)
        before = lines_with_ids(served.home)
    data = bytearray(served.home.database.read_bytes())
    damage(data, Random(seed))
    served.home.database.write_bytes(bytes(data))
    readable = readable_ids(served.home.database)
    with served_in(tmp_path) as served:
        s = Session(served.send, s.t)
        assert s.prompt_hook() == "" and s.resumed() == ""
        served.seal(s)
        assert speech(served.home) == s.t.said
        after = lines_with_ids(served.home)
        assert set(after.values()) >= set(before.values())
        # An id that was readable keeps its line; the others have new ones, which stand for nothing else.
        assert all(after.get(number, line) == line for number, line in before.items() if number in readable)
        assert not readable or readable[0] in after
        assert is_handoff(s.compaction())


def test_a_database_damaged_under_a_worker_is_made_anew(served: Served) -> None:
    s = served.session()
    for n in range(12):
        s.t.turn(f"thing {n}", work=8)
    assert is_handoff(s.compaction())
    served.use(lambda db: None)
    served.service.keeper.desk.store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = served.home.database.stat().st_size
    with served.home.database.open("r+b") as file:
        for page in range(2, size // 4096):
            file.seek(page * 4096)
            file.write(os.urandom(4096))
    served.service.keeper.desk.store._db.execute("PRAGMA shrink_memory")
    s.t.turn("and on")
    assert is_handoff(s.compaction())
    assert s.prompt_hook() == ""
    served.seal(s)
    assert speech(served.home) == s.t.said


def test_a_home_removed_under_a_worker_leaves_the_client_in_peace(living: Living) -> None:
    living.start()
    s = living.session()
    s.t.turn("the parser")
    assert is_handoff(s.compaction())
    s.t.turn("the lexer")
    shutil.rmtree(living.data)
    eventually(lambda: not living.answers())
    assert s.prompt_hook() == "" and s.stop_hook() == ""
    s.t.turn("the printer")
    assert is_handoff(s.compaction())
    assert s.prompt_hook() == ""
    assert speech(living.home) == s.t.said


# -- hostile names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../../evil", "a/b", "..", "", "x" * 400, "a\x00b", "s-1\n", "ü", {"a": 1}, None, 7])
def test_a_hostile_session_id_touches_nothing(living: Living, name: object) -> None:
    living.start()
    s = living.session()
    s.t.turn("the parser")
    before = {p for p in living.root.rglob("*") if "run" not in p.parts and "logs" not in p.parts}
    for event, more in (("PreCompact", {}), ("SessionStart", {"source": "compact"}), ("UserPromptSubmit", {})):
        done = living.hook(event, s.payload(event, session_id=name, **more))
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    after = {p for p in living.root.rglob("*") if "run" not in p.parts and "logs" not in p.parts}
    assert {p for p in after - before if not p.name.startswith("endless.db")} == set()


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "relative.jsonl", "/dev/zero", "/proc/self/mem.jsonl", "\ud800.jsonl", 5]
)
def test_a_hostile_transcript_path_is_not_read(living: Living, path: object) -> None:
    living.start()
    s = living.session()
    for event, more in (("PreCompact", {}), ("SessionStart", {"source": "compact"}), ("Stop", {})):
        done = living.hook(event, s.payload(event, transcript_path=path, **more))
        assert (done.returncode, done.stderr) == (0, b"")
        assert not is_handoff(done.stdout.decode())
    assert list(living.home.bottles.glob("*.md")) == []


def test_a_link_out_of_the_client_directory_is_not_followed(living: Living, tmp_path: Path) -> None:
    living.start()
    outside = Transcript(tmp_path / "elsewhere/s-1.jsonl")
    outside.turn("not yours")
    s = living.session()
    s.t.path.symlink_to(outside.path)
    assert s.pre_compact() == "" and s.compacted() == ""
    assert list(living.home.bottles.glob("*.md")) == []


def refusing(_: Any) -> Any:
    error = sqlite3.OperationalError("attempt to write a readonly database")
    error.sqlite_errorcode = 8
    raise error


def test_a_handoff_without_a_store_is_known_to_the_next_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store could not be written, and the worker that handed over was killed before it could tell."""
    with served_in(tmp_path) as served:
        s = served.session()
        s.t.turn("the parser")
        with monkeypatch.context() as patch:
            patch.setattr(served.service.keeper.desk.store, "write", refusing)
            assert is_handoff(s.compacted())
        (note,) = (served.home.run / "owed").iterdir()
        assert note.stat().st_mode & 0o777 == 0o600
        monkeypatch.setattr(served.service.keeper, "bring_back", lambda _: None)
        path = s.t
    with served_in(tmp_path) as served:
        again = Session(served.send, path)
        assert again.compacted() == ""
        again.t.boundary()
        assert again.prompt_hook() == ""
        assert list((served.home.run / "owed").iterdir()) == []


def test_without_a_store_nobody_gets_what_another_hook_has_just_claimed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two hooks has claimed and not printed yet when the store fails under the second."""
    s = served.session()
    s.t.turn("the parser")
    desk = served.service.keeper.desk
    at = desk.tail("s-1", s.t.path)
    ask = Ask("SessionStart:compact", int(s.t.clock() * 1000), "the-first")
    assert desk.store.write(lambda db: claims.claim_compaction(db, at, ask)) is not None
    with monkeypatch.context() as patch:
        patch.setattr(desk.store, "write", refusing)
        assert s.compacted() == ""


@pytest.mark.parametrize("content", [b"", b"[[1]]", b"{}", b"\xff", b'[["m", 1, 1, 0, 1, 1, "e", "", "x", 1, 1, 9]]'])
def test_a_note_that_cannot_be_read_stops_nothing(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "data/endless/run/owed"
    place.mkdir(parents=True)
    (place / "s-1.json").write_bytes(content)
    with served_in(tmp_path) as served:
        s = served.session()
        s.t.turn("the parser")
        assert is_handoff(s.compaction())
