"""Whatever state the files are in, a read sees what is committed and leaves no trace."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from endless_mode.claude_mem import ClaudeMem
from endless_mode.claude_mem.snapshot import ClaudeMemError
from tests.claude_mem.files import FRESH, SESSIONS, checked, database, fingerprint, in_child, untouched

ID = SESSIONS[FRESH]
NEW = "said after the last checkpoint"

_WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode=" + sys.argv[2])
db.execute("PRAGMA locking_mode=" + sys.argv[3])
db.execute("PRAGMA wal_autocheckpoint=0")
db.execute("BEGIN IMMEDIATE")
db.execute("UPDATE user_prompts SET prompt_text = ? WHERE id = 1", (sys.argv[4],))
if sys.argv[5] == "commit":
    db.execute("COMMIT")
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def writer(path: Path, journal: str, locking: str = "NORMAL", end: str = "commit") -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has the database open and has written to it."""
    given = [sys.executable, "-c", _WRITER, str(path), journal, locking, NEW, end]
    with subprocess.Popen(given, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        try:
            yield process
        finally:
            process.kill()


def first_prompt(path: Path) -> str:
    session = ClaudeMem.open(path).session(ID)
    assert session is not None
    return session.prompts[0].text


def test_a_file_nobody_has_open_is_read_without_side_files(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    with untouched(tmp_path / "d"):
        assert first_prompt(path) == "Add a retry to the uploader"


def test_a_closed_file_in_wal_mode_gets_no_side_files(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode=WAL")
    db.close()
    assert [p.name for p in path.parent.iterdir()] == ["claude-mem.db"]
    with untouched(tmp_path / "d"):
        assert first_prompt(path) == "Add a retry to the uploader"


def test_what_stands_in_the_wal_of_a_running_process_is_seen(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    with writer(path, "WAL"), untouched(tmp_path / "d"):
        assert Path(f"{path}-wal").stat().st_size > 0
        assert first_prompt(path) == NEW


def test_a_link_to_the_file_is_followed_with_its_side_files(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with writer(path, "WAL"), untouched(tmp_path):
        assert first_prompt(link) == NEW


def test_what_is_not_committed_is_not_seen(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    with writer(path, "WAL", end="wait"), untouched(tmp_path / "d"):
        assert first_prompt(path) == "Add a retry to the uploader"


def test_a_killed_process_leaves_files_that_are_read_and_left(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    with writer(path, "WAL"):
        pass
    assert Path(f"{path}-shm").exists()
    with untouched(tmp_path / "d"):
        assert first_prompt(path) == NEW


def test_a_wal_without_its_index_is_read_from_a_copy(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    with writer(path, "WAL"):
        pass
    Path(f"{path}-shm").unlink()
    with untouched(tmp_path / "d"):
        assert first_prompt(path) == NEW


def test_a_process_that_keeps_the_wal_to_itself_is_read_past(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    with writer(path, "WAL", "EXCLUSIVE"), untouched(tmp_path / "d"):
        assert not Path(f"{path}-shm").exists()
        assert first_prompt(path) == NEW


def test_a_rollback_journal_is_played_back_in_a_copy_alone(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "worked")
    hot = tmp_path / "hot"
    hot.mkdir()
    # Pages reach the file before the commit once the cache is full; a copy of that moment is what a crash leaves.
    db = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA cache_size=1", "BEGIN", "UPDATE user_prompts SET prompt_text = prompt_text || 'torn'"):
        db.execute(statement)
    db.execute("UPDATE observations SET narrative = narrative || hex(zeroblob(90000))")
    for suffix in ("", "-journal"):
        shutil.copyfile(f"{path}{suffix}", hot / f"claude-mem.db{suffix}")
    db.close()
    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect(f"file:{hot / 'claude-mem.db'}?mode=ro", uri=True).execute(
            "SELECT 1 FROM user_prompts"
        ).fetchone()
    with untouched(hot):
        assert first_prompt(hot / "claude-mem.db") == "Add a retry to the uploader"


def test_a_journal_of_a_writer_at_work_is_no_reason_to_wait(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    with writer(path, "DELETE", end="wait"), untouched(tmp_path / "d"):
        assert first_prompt(path) == "Add a retry to the uploader"


def test_a_locked_file_is_named_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("endless_mode.claude_mem.snapshot.BUSY_SECONDS", 0.05)
    path = database(FRESH, tmp_path / "d")
    db = sqlite3.connect(path, isolation_level=None)
    # A journal that persists makes SQLite's own locks decide.
    for statement in ("PRAGMA journal_mode=PERSIST", "BEGIN", "DELETE FROM sync_outbox", "COMMIT", "BEGIN EXCLUSIVE"):
        db.execute(statement)
    db.execute("UPDATE user_prompts SET prompt_text = 'x'")

    def ask() -> None:
        with pytest.raises(ClaudeMemError) as caught:
            ClaudeMem.open(path)
        assert caught.value.code == "claude_mem_busy"

    with untouched(tmp_path / "d"):
        in_child(ask)
    db.close()


@pytest.mark.parametrize("state", ["closed", "killed", "at work"])
def test_a_directory_that_cannot_be_written_is_enough(state: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        place = Path(root) / "d"
        path = database(FRESH, place)
        with writer(path, "DELETE" if state == "closed" else "WAL") as process:
            if state != "at work":
                process.kill()
                process.wait()
            for file in place.iterdir():
                file.chmod(0o444)
            place.chmod(0o555)

            def ask() -> None:
                with pytest.raises(OSError):
                    (place / "new").write_text("x")
                assert first_prompt(path) == NEW

            with untouched(place):
                in_child(ask, unprivileged=True)
            place.chmod(0o755)


@pytest.mark.parametrize("name", sorted(SESSIONS))
def test_every_database_gives_its_bottle_from_a_directory_that_cannot_be_written(name: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        place = Path(root) / "d"
        path = database(name, place)
        path.chmod(0o444)
        place.chmod(0o555)

        def ask() -> None:
            with pytest.raises(OSError):
                (place / "new").write_text("x")
            session = ClaudeMem.open(path).session(SESSIONS[name])
            assert session is not None and checked(session).entries

        with untouched(place):
            in_child(ask, unprivileged=True)
        place.chmod(0o755)


def test_reading_beside_a_writer_never_shows_a_half_done_change(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode=WAL")
    stop, rounds = threading.Event(), 0

    def work() -> None:
        nonlocal rounds
        while not stop.is_set():
            rounds += 1
            db.execute("BEGIN")
            db.execute("UPDATE user_prompts SET prompt_text = ? WHERE id = 1", (f"round {rounds}",))
            db.execute("UPDATE observations SET title = ? WHERE id = 1", (f"round {rounds}",))
            db.execute("COMMIT")
            if rounds % 7 == 0:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    first_prompt(path)
    thread = threading.Thread(target=work)
    thread.start()
    seen = set()
    try:
        while len(seen) < 15 and thread.is_alive():
            session = ClaudeMem(path).session(ID)
            assert session is not None
            if session.prompts[0].text.startswith("round"):
                assert session.prompts[0].text == session.observations[0].title
                seen.add(session.prompts[0].text)
    finally:
        stop.set()
        thread.join()
        db.close()
    assert len(seen) == 15


def test_a_copy_is_gone_after_the_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    path = database(FRESH, tmp_path / "d")
    with writer(path, "WAL"):
        pass
    Path(f"{path}-shm").unlink()
    first_prompt(path)
    assert fingerprint(tmp_path / "temporary") == {}
