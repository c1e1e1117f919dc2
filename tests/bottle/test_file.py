from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from endless_mode.bottle.entries import MODE_FULL, MODE_RECONSTRUCTED, MODE_STORED
from endless_mode.bottle.file import (
    LockTimeout,
    _is_still,
    archive,
    better_or_equal,
    bottle_path,
    clean_leftovers,
    ensure_directory,
    read_header,
    session_lock,
    write_atomic,
)
from endless_mode.bottle.render import render
from endless_mode.names import BadName, check_session_id, is_session_id
from tests.bottle.documents import document, header


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_written_bottle_and_its_directories_are_the_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "home" / "bottles" / "a.md"
    write_atomic(path, b"x", fsync=True)
    assert path.read_bytes() == b"x"
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o700, 0o700)
    assert list(path.parent.iterdir()) == [path]


def test_writing_replaces_the_file_and_a_reader_keeps_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    write_atomic(path, b"old")
    with path.open("rb") as reader:
        write_atomic(path, b"new")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"


def test_writing_over_a_symlink_leaves_what_it_points_to(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    path = tmp_path / "a.md"
    path.symlink_to(victim)
    write_atomic(path, b"x")
    assert victim.read_bytes() == b"mine"
    assert not path.is_symlink()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.mkdir()
    (path / "inside").write_bytes(b"")
    with pytest.raises(OSError):
        write_atomic(path, b"x")
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_of_something_else_than_bytes_leaves_no_temporary(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_atomic(tmp_path / "a.md", "text")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_archiving_moves_the_bottle_under_its_time(tmp_path: Path) -> None:
    path = tmp_path / "a-b.md"
    path.write_bytes(b"x")
    found = archive(path, tmp_path / "archive", 1_769_077_925_123)
    assert found == tmp_path / "archive" / "20260122T103205.123Z-a-b.md"
    assert found.read_bytes() == b"x"
    assert not path.exists()
    assert mode(found.parent) == 0o700


def test_archiving_twice_in_a_millisecond_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    found = []
    for text in ("one", "two", "three"):
        path.write_text(text)
        found.append(archive(path, tmp_path / "archive", 0))
    assert [file.read_text() for file in found] == ["one", "two", "three"]
    assert {file.name.split("-", 1)[1] for file in found} == {"a.md"}


def test_archiving_nothing_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        archive(tmp_path / "a.md", tmp_path / "archive", 0)
    assert list((tmp_path / "archive").iterdir()) == []


def test_old_leftovers_go_and_everything_else_stays(tmp_path: Path) -> None:
    old = tmp_path / ".a.md.0123456789abcdef.tmp"
    young = tmp_path / ".b.md.0123456789abcdef.tmp"
    other = tmp_path / ".notes.tmp"
    bottle = tmp_path / "a.md"
    for path in (old, young, other, bottle):
        path.write_bytes(b"")
    for path in (old, other, bottle):
        os.utime(path, (0, 0))
    assert clean_leftovers(tmp_path) == [old]
    assert {path.name for path in tmp_path.iterdir()} == {young.name, other.name, bottle.name}
    assert clean_leftovers(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("new", "old", "may"),
    [
        (MODE_FULL, MODE_FULL, True),
        (MODE_FULL, MODE_RECONSTRUCTED, True),
        (MODE_STORED, MODE_FULL, False),
        (MODE_RECONSTRUCTED, MODE_STORED, False),
        (MODE_STORED, MODE_RECONSTRUCTED, True),
        (MODE_RECONSTRUCTED, "something else", True),
    ],
)
def test_a_worse_bottle_never_replaces_a_better_one(tmp_path: Path, new: str, old: str, may: bool) -> None:
    path = tmp_path / "a.md"
    write_atomic(path, render(document(header=header(mode=old))).data)
    assert better_or_equal(new, read_header(path)) is may


def test_any_bottle_replaces_a_missing_or_foreign_one(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    assert read_header(path) is None
    path.write_bytes(b"\xff\x00 not a bottle")
    assert read_header(path) is None
    assert better_or_equal(MODE_RECONSTRUCTED, None)


def test_the_header_is_read_from_a_bottle_whose_end_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(render(document()).data[:300])
    assert read_header(path) == header()


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "0b6c2f6e-1c7a-4a35-9f0e-3a1b", ".hidden", "x" * 128])
def test_a_session_id_is_accepted(name: str, tmp_path: Path) -> None:
    assert check_session_id(name) == name
    assert bottle_path(tmp_path, name) == tmp_path / f"{name}.md"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "a\n", "a b", "é", "x" * 129, "a\0", "٣"])
def test_anything_else_is_refused(name: str, tmp_path: Path) -> None:
    assert not is_session_id(name)
    with pytest.raises(BadName) as caught:
        bottle_path(tmp_path, name)
    assert caught.value.code == "bad_session_id"
    assert caught.value.hint


def test_threads_take_turns(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with session_lock(tmp_path, "a"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == 1
    assert list(tmp_path.iterdir()) == []


def test_a_thread_waits_no_longer_than_it_said(tmp_path: Path) -> None:
    found: list[BaseException] = []

    def work() -> None:
        try:
            with session_lock(tmp_path, "a", timeout=0.05):
                pass
        except LockTimeout as error:
            found.append(error)

    with session_lock(tmp_path, "a"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(10)
        with session_lock(tmp_path, "another", timeout=0):
            pass
    assert len(found) == 1
    work()
    assert len(found) == 1


HOLD = """
import sys
from pathlib import Path
from endless_mode.bottle.file import session_lock
with session_lock(Path(sys.argv[1]), "a"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_holds_the_lock_until_it_dies(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    with holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LockTimeout) as caught, session_lock(tmp_path, "a", timeout=0.05):
            pass
        assert caught.value.code == "session_locked"
        holder.kill()
        holder.wait(10)
    with session_lock(tmp_path, "a", timeout=10):
        pass


COUNT = """
import sys
from pathlib import Path
from endless_mode.bottle.file import session_lock
count = Path(sys.argv[1]) / "count"
for _ in range(200):
    with session_lock(Path(sys.argv[1]), "a"):
        count.write_text(str(int(count.read_text()) + 1))
"""


def test_processes_take_turns_though_each_removes_the_lock_file(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path)]
    workers = [subprocess.Popen(command) for _ in range(3)]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    assert count.read_text() == "600"
    assert list(tmp_path.iterdir()) == [count]


def test_a_lock_on_a_removed_or_replaced_file_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with path.open("w") as held:
        assert _is_still(path, held.fileno())
        path.rename(tmp_path / "gone")
        assert not _is_still(path, held.fileno())
        path.touch()
        assert not _is_still(path, held.fileno())


def test_directories_that_exist_keep_their_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    ensure_directory(tmp_path)
    assert mode(tmp_path) == 0o755
