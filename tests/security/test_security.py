"""What docs/security.md claims, against the product's own worker and hooks. Where root is needed, others skip."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.parts import HOOK, Living, is_handoff, living_in
from tests.live.transcript import Transcript
from tests.processes import LONG, eventually

NOBODY = 65534
GIGABYTE = 1 << 30
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that others can reach; pytest's own are closed, which would prove nothing."""
    place = Path(tempfile.mkdtemp(prefix="em-sec-")).resolve()
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def living(open_place: Path) -> Iterator[Living]:
    with living_in(open_place) as place:
        yield place


def as_nobody(work: Callable[[], list[str]]) -> list[str]:
    """What `work` returns when it runs in a process of another user."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(theirs, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        found: list[str] = json.loads(answer.read())
    os.waitpid(child, 0)
    return found


def reached(places: list[Path]) -> list[str]:
    """Which of these places this process can list, read, connect to or write beside."""
    found = []
    for place in places:
        with contextlib.suppress(OSError):
            if place.is_dir():
                found += [f"lists {place}"] if list(place.iterdir()) is not None else []
            elif place.is_socket():
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.connect(os.fspath(place))
                found.append(f"connects to {place}")
            elif place.read_bytes() is not None:
                found.append(f"reads {place}")
        with contextlib.suppress(OSError):
            if place.parent == Path(tempfile.gettempdir()):
                continue
            (place.parent / "intruder").touch()
            found.append(f"writes beside {place}")
    return found


def worked(living: Living) -> None:
    """A compacted, a cleared and a waiting session: every kind of file there is. No umask helps us."""
    s = living.session()
    s.t.turn("the parser")
    living.hook("SessionStart", s.payload("SessionStart", source="startup"), umask=0)
    eventually(living.answers)
    assert is_handoff(s.compaction())
    other = living.session("s-2")
    other.t.turn("the printer")
    other.stop_hook()
    eventually((living.home.bottles / "s-2.md").exists)
    other.ended("clear")
    eventually(lambda: list(living.home.archive.glob("*s-2.md")))


@needs_root
@pytest.mark.parametrize("long_path", [False, True], ids=["socket-in-home", "socket-elsewhere"])
def test_another_user_reaches_nothing(open_place: Path, long_path: bool) -> None:
    root = open_place / ("d" * 100) if long_path else open_place
    root.mkdir(exist_ok=True)
    with living_in(root) as living:
        worked(living)
        assert living.home.socket.is_relative_to(living.home.root) is not long_path
        places = [living.home.root, living.home.socket, living.home.socket.parent, *living.home.root.rglob("*")]
        assert len([place for place in places if place.is_file()]) > 6
        assert as_nobody(lambda: reached(places)) == []
        control = open_place / "open"
        control.write_text("readable")
        assert as_nobody(lambda: reached([control])) == [f"reads {control}"]


def test_everything_in_the_home_is_its_owners_alone(living: Living) -> None:
    worked(living)
    for place in [living.home.root, *living.home.root.rglob("*")]:
        mode = place.lstat().st_mode
        assert stat.S_IMODE(mode) & 0o077 == 0, f"{place} {stat.filemode(mode)}"


def test_a_home_opened_to_others_is_closed_by_the_next_worker(living: Living) -> None:
    worked(living)
    living.kill()
    for place in (living.home.root, living.home.run, living.home.bottles, living.home.spool, living.home.logs):
        place.chmod(0o777)
    s = living.session("s-3")
    s.t.turn("the scanner")
    assert is_handoff(s.compaction())
    for place in (living.home.root, living.home.run, living.home.bottles, living.home.spool, living.home.logs):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700, place


@needs_root
def test_a_strangers_socket_in_an_opened_home_learns_nothing(living: Living) -> None:
    """Closing the home comes first; but were it open, nobody else's worker is talked to."""
    living.home.create()
    for place in (living.data, living.home.root, living.home.run):
        place.chmod(0o777)
    ready = living.home.run / "stranger-ready"
    stranger = subprocess.Popen(
        [shutil.which("python3", path="/usr/bin:/bin") or sys.executable, "-I", "-c", STRANGER, living.home.socket],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        stdout=subprocess.PIPE,
    )
    try:
        eventually(ready.exists)
        s = living.session()
        s.t.turn("the secret of the parser")
        assert "FORGED" not in s.compacted() + s.prompt_hook("tell nobody")
    finally:
        stranger.terminate()
        heard, _ = stranger.communicate(timeout=LONG)
    assert heard == b""


STRANGER = """
import os, pathlib, signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen(50)
pathlib.Path(sys.argv[1]).with_name("stranger-ready").touch()
while True:
    one, _ = listener.accept()
    one.settimeout(2)
    try:
        heard = one.recv(100000)
        os.write(1, heard)
        one.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\nFORGED")
    except OSError:
        pass
    one.close()
"""


@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
def test_a_body_of_a_gigabyte_is_refused_early_and_costs_no_memory(living: Living, chunked: bool) -> None:
    worker = living.start()
    before = peak_kb(worker.pid)
    how = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % GIGABYTE
    block = b" " * (1 << 20)
    piece = b"%x\r\n%s\r\n" % (len(block), block) if chunked else block
    sent = 0
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(LONG)
        sock.connect(os.fspath(living.home.socket))
        sock.sendall(b"POST /hooks/claude-code/Stop HTTP/1.1\r\nHost: x\r\n" + how + b"\r\n\r\n")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while sent < GIGABYTE:
                sock.sendall(piece)
                sent += len(block)
    assert sent < GIGABYTE / 8
    assert peak_kb(worker.pid) - before < 48 * 1024
    s = living.session()
    s.t.turn("the parser")
    assert is_handoff(s.compaction())


def peak_kb(pid: int) -> int:
    """The most memory a process has had so far."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("needs /proc")
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def test_200_stalled_connections_keep_no_handoff_back(living: Living) -> None:
    living.start()
    head = b"POST /hooks/claude-code/SessionStart HTTP/1.1\r\nContent-Length: 9999\r\n\r\n{"
    with contextlib.ExitStack() as stack:
        for number in range(200):
            sock = stack.enter_context(socket.socket(socket.AF_UNIX))
            sock.connect(os.fspath(living.home.socket))
            sock.sendall((b"", b"POST /ho", head)[number % 3])
        s = living.session()
        for _ in range(3):
            s.t.turn("the parser")
            assert is_handoff(s.compaction())
            assert s.prompt_hook() == "" and s.stop_hook() == ""


@pytest.mark.parametrize("call", ["/api/sessions/seal", "/api/sessions/render-bottle"])
def test_the_api_reads_no_transcript_that_climbs_out(living: Living, call: str) -> None:
    living.start()
    outside = Transcript(living.root / "outside/s-9.jsonl")
    outside.turn("not yours to read")
    (living.projects / "link.jsonl").symlink_to(outside.path)
    (living.projects / "door").symlink_to(outside.path.parent)
    (living.projects / "twice").symlink_to(living.projects / "door")
    (living.projects / "real").mkdir()
    climbs = [
        "link.jsonl",
        "door/s-9.jsonl",
        "twice/s-9.jsonl",
        "../../../outside/s-9.jsonl",
        "real/../../../../outside/s-9.jsonl",
        "door/../outside/s-9.jsonl",
    ]
    for climb in climbs:
        body = {"contentSessionId": "s-9", "transcriptPath": f"{living.projects}/{climb}"}
        status, answer = post(living, call, json.dumps(body).encode())
        assert (status, answer["code"]) == (400, "transcript_refused"), climb
    for session in ("../s-9", "s-9/..", ".", "..", "a" * 129, "s\n9"):
        body = {"contentSessionId": session, "transcriptPath": f"{living.projects}/s-9.jsonl"}
        assert post(living, call, json.dumps(body).encode())[0] == 400, session
    living.client.stop()
    eventually(lambda: not living.locked())
    for file in living.home.root.rglob("*"):
        assert not file.is_file() or b"not yours to read" not in file.read_bytes(), file


def post(living: Living, path: str, body: bytes) -> tuple[int, dict[str, str]]:
    """One request over the socket, with the header by which the client's directory is known."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(LONG)
        sock.connect(os.fspath(living.home.socket))
        sock.sendall(f"{head}X-Endless-User-Home: {living.root}\r\n\r\n".encode() + body)
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
    top, _, content = answer.partition(b"\r\n\r\n")
    return int(top[9:12]), json.loads(content)


def test_the_worker_listens_on_no_network_address(living: Living) -> None:
    worker = living.start()
    tables = Path(f"/proc/{worker.pid}/net")
    if not tables.exists():
        pytest.skip("needs /proc")
    mine = {str(fd.readlink()) for fd in Path(f"/proc/{worker.pid}/fd").iterdir() if fd.is_symlink()}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in (tables / table).read_text().splitlines()[1:]:
            assert f"socket:[{line.split()[9]}]" not in mine, f"{table} {line}"


def test_a_hook_line_runs_nothing_of_the_project_it_is_in(living: Living) -> None:
    """Files of a repository that Python would otherwise import or run."""
    project = living.root / "project"
    project.mkdir()
    trap = f"open({str(project / 'sprung')!r}, 'w')"
    for name in ("sitecustomize", "usercustomize", "socket", "json", "posix", "slow", "endless_mode", "msgspec"):
        (project / f"{name}.py").write_text(trap)
    s = living.session()
    s.t.turn("the parser")
    environ = {**living.environ, "PYTHONPATH": str(project), "PYTHONSTARTUP": str(project / "json.py")}
    for event, source in (("SessionStart", "startup"), ("SessionStart", "compact")):
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(HOOK), "claude-code", event],
            input=s.payload(event, source=source),
            capture_output=True,
            cwd=project,
            env=environ,
            timeout=LONG,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
    assert is_handoff(done.stdout.decode())
    assert not (project / "sprung").exists()


def test_refused_requests_leave_no_descriptor_open(living: Living) -> None:
    """Many refused requests at once leave the worker as it was."""
    worker = living.start()
    body = json.dumps({"contentSessionId": "s", "transcriptPath": "/etc/x.jsonl"}).encode()
    post(living, "/api/sessions/seal", body)

    def many() -> None:
        for _ in range(20):
            post(living, "/api/sessions/seal", body)

    descriptors = Path(f"/proc/{worker.pid}/fd")
    if not descriptors.exists():
        pytest.skip("needs /proc")
    before = len(list(descriptors.iterdir()))
    threads = [threading.Thread(target=many) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    eventually(lambda: len(list(descriptors.iterdir())) <= before)
