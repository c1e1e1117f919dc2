"""The worker's life: one per home, private, and gone without dropping a request when it is time."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.processes import LONG, eventually
from tests.worker.parts import HERE, Place


def test_a_second_worker_leaves_at_once(place: Place) -> None:
    place.worker()
    again = subprocess.run(
        [sys.executable, "-I", "-m", "endless_mode.worker", "--foreground"],
        env=place.environ, timeout=LONG, capture_output=True, check=False,
    )  # fmt: skip
    assert again.returncode == 3
    assert place.hook("Stop", place.payload("Stop", "say:still")).stdout == b"still"


def test_a_worker_waits_for_one_that_is_ending(place: Place) -> None:
    first = place.worker()
    child = place.hook_process("PreCompact", place.payload("PreCompact", "hold:door"))
    eventually((place.home.root / "door.held").exists)
    first.send_signal(signal.SIGTERM)
    eventually(lambda: not place.home.socket.exists())
    second = subprocess.Popen([sys.executable, "-I", str(HERE / "recording.py"), "--foreground"], env=place.environ)
    place.children.append(second)
    assert first.poll() is None and second.poll() is None
    (place.home.root / "door").touch()
    assert child.wait(LONG) == 0
    assert first.wait(LONG) == 0
    eventually(lambda: len(place.calls("start")) == 2)
    assert [call["pid"] for call in place.calls("start")] == [first.pid, second.pid]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_requests_finish_and_drains_the_service(place: Place, number: int) -> None:
    worker = place.worker()
    hooks = [place.hook_process("PreCompact", place.payload("PreCompact", f"hold:door{n}")) for n in range(3)]
    for n in range(3):
        eventually((place.home.root / f"door{n}.held").exists)
    worker.send_signal(number)
    worker.send_signal(number)
    eventually(lambda: not place.home.socket.exists())
    for n in range(3):
        (place.home.root / f"door{n}").touch()
    assert [child.communicate(timeout=LONG)[0] for child in hooks] == [b"released"] * 3
    assert worker.wait(LONG) == 0
    assert len(place.calls("released")) == 3
    assert len(place.calls("stop")) == 1
    assert not place.locked()


def test_a_stop_request_is_answered_and_ends_the_worker(place: Place) -> None:
    worker = place.worker()
    assert place.client.stop().stopping
    assert worker.wait(LONG) == 0
    assert [entry["code"] for entry in place.log("retiring")] == ["asked"]


def test_a_replaced_lock_ends_the_worker_and_leaves_the_successor_alone(place: Place) -> None:
    first = place.worker()
    place.home.lock.unlink()
    second = place.worker_process()
    eventually(lambda: len(place.calls("start")) == 2)
    assert first.wait(LONG) == 0
    assert second.poll() is None
    assert place.hook("Stop", place.payload("Stop", "say:second")).stdout == b"second"
    assert place.calls()[-1]["pid"] == second.pid


def test_a_deleted_home_ends_the_worker(place: Place) -> None:
    worker = place.worker()
    shutil.rmtree(place.home.root)
    assert worker.wait(LONG) == 0


def test_a_replaced_home_gets_a_worker_of_its_own(place: Place) -> None:
    first = place.worker()
    place.home.root.rename(place.data / "moved")
    place.hook("SessionStart", place.payload(source="compact"))
    assert first.wait(LONG) == 0
    assert place.worker_pid() != first.pid
    assert place.listening()


def test_a_deleted_socket_ends_the_worker(place: Place) -> None:
    worker = place.worker()
    place.home.socket.unlink()
    assert worker.wait(LONG) == 0
    assert [entry["code"] for entry in place.log("retiring")] == ["socket_replaced"]


def test_an_idle_worker_ends(place: Place) -> None:
    worker = place.worker(CLAUDE_MEM_ENDLESS_IDLE_MINUTES="0.002")
    assert worker.wait(LONG) == 0
    assert [entry["code"] for entry in place.log("retiring")] == ["idle"]
    assert not place.home.socket.exists()
    assert len(place.calls("stop")) == 1


def test_a_live_session_keeps_an_idle_worker(place: Place) -> None:
    place.home.create()
    (place.home.root / "live").touch()
    worker = place.worker(CLAUDE_MEM_ENDLESS_IDLE_MINUTES="0.001")
    started = place.client.health().uptime_ms
    eventually(lambda: place.client.health().uptime_ms > started + 500)
    assert worker.poll() is None
    (place.home.root / "live").unlink()
    assert worker.wait(LONG) == 0


def test_a_request_that_runs_keeps_an_idle_worker(place: Place) -> None:
    worker = place.worker(CLAUDE_MEM_ENDLESS_IDLE_MINUTES="0.001")
    child = place.hook_process("PreCompact", place.payload("PreCompact", "hold:door"))
    eventually((place.home.root / "door.held").exists)
    health = place.client.health
    started = health().uptime_ms
    eventually(lambda: health().uptime_ms > started + 500)
    assert worker.poll() is None
    (place.home.root / "door").touch()
    assert child.communicate(timeout=LONG)[0] == b"released"
    assert worker.wait(LONG) == 0


def test_no_event_is_lost_to_a_worker_that_ends_for_idleness(place: Place) -> None:
    """Workers end after 60 ms while hooks come about as often; every event reaches some service."""
    place.environ["CLAUDE_MEM_ENDLESS_IDLE_MINUTES"] = "0.001"
    sent = {f"s-{n}" for n in range(60)}
    pace = threading.Event()
    for n, session in enumerate(sorted(sent)):
        place.hook("Stop", place.payload("Stop", session_id=session))
        pace.wait(0.02 + n % 10 * 0.01)

    def all_arrived() -> bool:
        arrived = {entry["session"] for entry in place.served()}
        if arrived >= sent:
            return True
        if not place.locked():
            place.hook("Stop", place.payload("Stop", session_id="nudge"))
        return False

    eventually(all_arrived)
    assert len(place.log("started")) > 1, "no worker ended, so nothing was tried"


def test_a_connection_that_came_before_the_end_is_still_served(place: Place) -> None:
    worker = place.worker()
    body = place.payload("Stop", "say:made it")
    head = b"POST /hooks/claude-code/Stop HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    with place.connect() as early:
        worker.send_signal(signal.SIGTERM)
        eventually(lambda: not place.home.socket.exists())
        early.sendall(head % len(body) + body)
        answer = b""
        while chunk := early.recv(65536):
            answer += chunk
    assert answer.endswith(b"made it")
    assert worker.wait(LONG) == 0


def test_a_stale_socket_is_replaced(place: Place) -> None:
    place.worker().kill()
    eventually(lambda: not place.locked())
    assert place.home.socket.exists()
    draft = place.home.run / "w.1"
    draft.touch()
    place.worker_process()
    eventually(place.listening)
    assert not draft.exists()


def test_what_the_worker_makes_is_private(place: Place) -> None:
    place.root.chmod(0o755)
    place.home.root.mkdir(parents=True)
    place.home.root.chmod(0o755)
    place.worker()
    place.hook("Stop")
    eventually(lambda: place.log("hook"))
    for path in [place.home.root, *place.home.root.rglob("*")]:
        mode = path.stat().st_mode
        wanted = 0o700 if stat.S_ISDIR(mode) else 0o600
        assert stat.S_IMODE(mode) == wanted, path


def test_the_worker_of_a_hook_is_a_daemon(place: Place) -> None:
    place.hook("SessionStart", place.payload(source="compact"))
    pid = place.worker_pid()
    assert os.getsid(pid) == pid
    proc = Path(f"/proc/{pid}")
    if not proc.exists():
        pytest.skip("needs /proc")
    assert (proc / "cwd").readlink() == Path("/")
    assert [(proc / f"fd/{fd}").readlink() for fd in (0, 1, 2)] == [Path("/dev/null")] * 3
    held = [str(link.readlink()) for link in (proc / "fd").iterdir()]
    assert str(place.home.start_lock) not in held
    assert sum(name.endswith("worker.lock") for name in held) == 1


def test_a_worker_started_by_hand_leaves_the_terminal(place: Place) -> None:
    command = [sys.executable, "-I", "-m", "endless_mode.worker"]
    done = subprocess.run(command, env=place.environ, timeout=LONG, process_group=0, check=False)
    assert done.returncode == 0
    eventually(place.listening)
    assert os.getsid(place.worker_pid()) != os.getsid(0)


def test_a_service_that_cannot_start_ends_the_worker(place: Place) -> None:
    place.data.mkdir()
    (place.data / "refuse-start").touch()
    worker = place.worker()
    assert worker.wait(LONG) == 1
    assert not place.home.socket.exists()
    (entry,) = place.log("start_failed")
    assert entry["error"] == "RuntimeError" and "told to" not in str(entry)


def test_a_newer_hook_makes_the_worker_end_after_its_answer(place: Place) -> None:
    worker = place.worker()
    body = place.payload("Stop", "say:old but polite")
    answer = place.client.hook("claude-code", "Stop", body, {"X-Endless-Version": "99.0.0"})
    assert answer == b"old but polite"
    assert worker.wait(LONG) == 0
    assert [entry["code"] for entry in place.log("retiring")] == ["newer_version"]


@pytest.mark.parametrize("version", ["0.0.1", "0.1.0", "nonsense", "", "9" * 5000])
def test_an_older_or_strange_hook_does_not(place: Place, version: str) -> None:
    place.worker()
    place.client.hook("claude-code", "Stop", place.payload("Stop"), {"X-Endless-Version": version})
    assert place.client.health().pid
    assert place.log("retiring") == []
