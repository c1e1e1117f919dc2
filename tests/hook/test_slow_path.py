"""What hooks do when no worker answers: keep the event, start exactly one, fall back."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

import pytest

from endless_mode.hook import slow
from tests.processes import LONG, eventually, held
from tests.worker.parts import Place


def test_the_first_hook_starts_a_worker_that_takes_its_event(place: Place) -> None:
    assert place.hook("Stop").returncode == 0
    kept = eventually(lambda: place.log("spooled_hook"))
    assert [(entry["event"], entry["session"]) for entry in kept] == [("Stop", "s-1")]
    assert list(place.home.spool.iterdir()) == []


def test_64_hooks_at_once_start_exactly_one_worker_and_lose_nothing(place: Place) -> None:
    events = ["Stop", "UserPromptSubmit", "PreCompact", "SessionEnd"]
    hooks = [place.hook_process(events[n % 4], place.payload(session_id=f"s-{n}")) for n in range(64)]
    for child in hooks:
        assert child.wait(LONG) == 0
    eventually(lambda: len(place.served()) >= 64)
    served = place.served()
    assert {entry["session"] for entry in served} == {f"s-{n}" for n in range(64)}
    assert len(place.log("started")) == 1
    assert len({entry["pid"] for entry in place.log()}) == 1


def test_hooks_that_must_answer_wait_for_the_one_worker(place: Place) -> None:
    hooks = [place.hook_process("SessionStart", place.payload(source="compact", session_id=f"s-{n}")) for n in range(8)]
    for child in hooks:
        assert child.wait(LONG) == 0
    assert len(place.log("started")) == 1
    assert {entry["session"] for entry in place.log("hook")} == {f"s-{n}" for n in range(8)}
    assert place.log("spooled_hook") == []


def test_a_killed_worker_is_replaced_by_the_next_hook(place: Place) -> None:
    place.hook("SessionStart", place.payload(source="compact"))
    first = place.worker_pid()
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not place.locked())
    assert place.home.socket.exists(), "a killed worker leaves its socket behind"
    place.hook("SessionStart", place.payload(source="compact", session_id="s-2"))
    assert place.worker_pid() != first
    assert [entry["session"] for entry in place.log("hook")] == ["s-1", "s-2"]


def test_an_event_whose_worker_dies_while_answering_is_taken_by_the_next(place: Place) -> None:
    worker = place.worker()
    child = place.hook_process("PreCompact", place.payload("PreCompact", "hold:door"))
    eventually((place.home.root / "door.held").exists)
    worker.kill()
    (place.home.root / "door").touch()
    assert child.wait(LONG) == 0
    eventually(lambda: place.log("spooled_hook"))
    assert place.worker_pid() != worker.pid


@pytest.mark.parametrize("moment", range(6))
def test_a_worker_killed_on_its_way_up_does_not_stop_the_next(place: Place, moment: int) -> None:
    """The moments lie between the worker's first sign and its readiness; the exact one does not matter."""
    place.hook("Stop")
    signs = [
        place.home.start_lock.exists,
        place.home.bottles.exists,
        place.home.lock.exists,
        lambda: place.home.lock.exists() and place.home.lock.read_text(),
        place.home.socket.exists,
        lambda: place.log("started"),
    ]
    eventually(signs[moment])
    for pid in children_of_this_place(place):
        os.kill(pid, signal.SIGKILL)
    place.hook("SessionStart", place.payload(source="compact", session_id="after"))
    assert "after" in {entry["session"] for entry in place.log("hook")}
    eventually(lambda: not list(place.home.spool.glob("*.http")))


def children_of_this_place(place: Place) -> list[int]:
    """Pids of processes whose environment names this place's data directory (Linux)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            environ = path.read_bytes()
        except OSError:
            continue
        if os.fsencode(f"CLAUDE_MEM_DATA_DIR={place.data}\0") in environ:
            found.append(int(path.parent.name))
    return found


def test_a_worker_that_is_being_started_is_not_started_again(place: Place) -> None:
    home, path = os.fsencode(place.home.root), os.fsencode(place.home.socket)
    slow.prepare(home)
    with place.home.start_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert slow.start(home, path, wait=False) is False
        place.hook("Stop")
        assert not place.home.lock.exists()
        assert len(list(place.home.spool.glob("*.http"))) == 1


def test_the_worker_does_not_inherit_the_keys_of_the_client(place: Place) -> None:
    place.hook(
        "Stop",
        environ={
            "CLAUDE_CODE_MESSAGING_TOKEN": "key",
            "CLAUDE_MEM_ENDLESS_LOG_LEVEL": "debug",
            "LC_ALL": "C.UTF-8",
            "SECRET": "x",
        },
    )
    eventually(lambda: place.log("started"))
    environ = Path(f"/proc/{place.worker_pid()}/environ")
    if not environ.exists():
        pytest.skip("needs /proc")
    names = {pair.split(b"=")[0] for pair in environ.read_bytes().split(b"\0") if pair}
    assert names == {b"HOME", b"PATH", b"CLAUDE_MEM_DATA_DIR", b"CLAUDE_MEM_ENDLESS_LOG_LEVEL", b"LC_ALL"}


def test_kept_events_are_private_and_bounded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    home = os.fsencode(place.home.root)
    slow.prepare(home)
    monkeypatch.setattr(slow, "SPOOL_FILES", 3)
    monkeypatch.setattr(slow, "SPOOL_BYTES", 10)
    slow.keep(home, b"x" * 11)
    for _ in range(5):
        slow.keep(home, b"x" * 10)
    kept = list(place.home.spool.iterdir())
    assert len(kept) == 3
    assert all(path.stat().st_mode & 0o777 == 0o600 and path.read_bytes() == b"x" * 10 for path in kept)
    assert place.home.spool.stat().st_mode & 0o777 == 0o700


def test_a_worker_that_failed_to_start_is_left_alone_for_a_while(place: Place) -> None:
    (place.data / "endless").mkdir(parents=True)
    (place.data / "refuse-start").touch()
    worker = place.worker()
    assert worker.wait(LONG) == 1
    place.hook("Stop")
    assert not place.locked() and not held(place.home.start_lock)
    assert len(list(place.home.spool.glob("*.http"))) == 1
    (place.data / "refuse-start").unlink()
    os.utime(place.home.failed, (time.time() - 60, time.time() - 60))
    place.hook("Stop")
    eventually(lambda: len(place.log("spooled_hook")) == 2)
    assert not place.home.failed.exists()


def interpreter(path: Path, script: str) -> str:
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o700)
    return str(path)


def resort(place: Place, seconds: float = LONG) -> bytes:
    home = os.fsencode(place.home.root)
    until = time.monotonic() + seconds
    return slow.last_resort("claude-code", "SessionStart", b"the event", home, until)


def test_the_last_resort_is_what_a_child_process_says(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    echo = interpreter(place.root / "python", 'echo "$@"; echo "$CLAUDE_MEM_DATA_DIR"; cat\n')
    monkeypatch.setattr(sys, "executable", echo)
    said = resort(place).decode().splitlines()
    assert said == [
        "-I -m endless_mode.worker.fallback claude-code SessionStart",
        str(place.data),
        "the event",
    ]


def test_a_last_resort_that_fails_says_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", interpreter(place.root / "python", "echo half a handoff; exit 1\n"))
    assert resort(place) == b""


def test_a_last_resort_that_takes_too_long_is_ended(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.data.mkdir()
    hangs = interpreter(place.root / "python", 'echo $$ > "$CLAUDE_MEM_DATA_DIR/pid"; echo half; exec sleep 600\n')
    monkeypatch.setattr(sys, "executable", hangs)
    assert resort(place, 1.0) == b""
    pid = int((place.data / "pid").read_text())
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL


def test_the_last_resort_of_this_package_is_silent_about_what_it_cannot_read(place: Place) -> None:
    home = os.fsencode(place.home.root)
    assert slow.last_resort("claude-code", "SessionStart", b"garbage", home, time.monotonic() + LONG) == b""


def test_a_stranger_in_the_runtime_directory_is_not_talked_to(place: Place) -> None:
    runtime = Path(tempfile.mkdtemp(prefix="e", dir="/tmp"))
    place.data = place.root / ("d" * 120)
    place.environ.update(CLAUDE_MEM_DATA_DIR=str(place.data), XDG_RUNTIME_DIR=str(runtime))
    directory = place.home.socket.parent
    assert directory.parent == runtime
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        stranger.bind(str(place.home.socket))
        stranger.listen()
        stranger.setblocking(False)
        assert place.hook("UserPromptSubmit").stdout == b""
        while True:
            try:
                connection, _ = stranger.accept()
            except BlockingIOError:
                break
            with connection:
                assert connection.recv(100) == b"", "a probe may come, but no event"
    shutil.rmtree(runtime)


def test_a_home_with_a_long_path_works_like_any_other(place: Place) -> None:
    place.data = place.root / ("d" * 120)
    place.environ["CLAUDE_MEM_DATA_DIR"] = str(place.data)
    place.worker()
    socket_path = place.home.socket
    try:
        assert not socket_path.is_relative_to(place.data)
        assert socket_path.parent.stat().st_mode & 0o777 == 0o700
        assert place.hook("Stop", place.payload("Stop", "say:far")).stdout == b"far"
    finally:
        place.close()
        socket_path.unlink(missing_ok=True)
        socket_path.parent.rmdir()


def test_a_kept_event_says_whose_it_is_and_nothing_that_was_said(place: Place) -> None:
    home = os.fsencode(place.home.root)
    slow.prepare(home)
    (place.home.run / "failed").touch()
    place.hook("Stop", place.payload("Stop", "hello"))
    (kept,) = place.home.spool.glob("*.http")
    head, _, body = kept.read_bytes().partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hooks/claude-code/Stop HTTP/1.1\r\n")
    assert json.loads(body)["session_id"] == "s-1"
    assert b"hello" not in body
    assert b"Content-Length: %d" % len(body) in head
