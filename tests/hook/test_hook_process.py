"""The hook process against real workers, false workers and none."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import endless_mode
from endless_mode.hook import hook
from tests.processes import LONG, eventually
from tests.worker.parts import HOOK, Place

HEAVY = ("json", "socket", "re", "enum", "os", "site")
EVENTS = ["SessionStart", "UserPromptSubmit", "PreCompact", "PostCompact", "Stop", "SessionEnd"]


@contextmanager
def false_worker(place: Place, behave: Callable[[socket.socket], None]) -> Iterator[None]:
    """Listen at the worker's socket and let ``behave`` handle each connection, in a thread."""
    place.home.create()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(place.home.socket))
    listener.listen()

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                behave(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(LONG)


def read_request(connection: socket.socket) -> bytes:
    """Read one request with a Content-Length; nothing from a connection that only looked whether we listen."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return b""
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    assert length
    while len(body) < int(length[1]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def test_the_answer_is_printed_byte_for_byte(place: Place) -> None:
    place.worker()
    text = "zwei\nZeilen\r\n\r\nund ein Ende ohne Zeilenende: ünï 🙂\x00."
    done = place.hook("UserPromptSubmit", place.payload(prompt="say:" + text))
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, text, b"")


def test_a_large_answer_arrives_whole(place: Place) -> None:
    place.worker()
    text = "x" * 1_500_000
    assert place.hook("Stop", place.payload("Stop", "say:" + text)).stdout.decode() == text


def test_a_happy_run_imports_nothing_heavy(place: Place) -> None:
    place.worker()
    program = (
        "import posix, sys; script = sys.argv[1]; sys.argv = [script, 'claude-code', 'UserPromptSubmit'];"
        "posix._exit = lambda code: None;"
        "exec(compile(open(script).read(), script, 'exec'), {'__file__': script});"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(HOOK)],
        input=place.payload(prompt="say:hello"), capture_output=True, timeout=LONG, env=place.environ, check=False,
    )  # fmt: skip
    assert done.stdout == b"hello"
    loaded = done.stderr.decode().split()
    assert "_socket" in loaded
    assert not set(HEAVY) & set(loaded)


def test_the_hook_states_the_version_of_its_package() -> None:
    assert endless_mode.__version__ == hook.VERSION


def test_the_worker_learns_what_matters_of_the_environment_and_nothing_else(place: Place) -> None:
    place.worker()
    odd = "/ünï %41 dir\r\nX-Endless-Entrypoint: forged"
    secret = "key-to-the-client"
    place.hook(
        "Stop",
        place.payload("Stop", transcript_path=""),
        environ={
            "CLAUDE_CONFIG_DIR": odd,
            "CLAUDE_PROJECT_DIR": "/proj",
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            "CLAUDE_CODE_MESSAGING_TOKEN": secret,
        },
    )
    env = place.calls()[0]["env"]
    assert env == {
        "config_dir": odd,
        "project_dir": "/proj",
        "entrypoint": "cli",
        "user_home": str(place.root),
        "data_dir": str(place.data),
        "version": endless_mode.__version__,
        "budget_ms": env["budget_ms"],
        "request": env["request"],
        "spooled": False,
    }
    assert 0 < env["budget_ms"] <= 2000


def test_the_data_directory_may_stand_on_the_command_line(place: Place) -> None:
    place.worker()
    done = place.hook(
        "Stop",
        place.payload("Stop", "say:there"),
        environ={"CLAUDE_MEM_DATA_DIR": str(place.root / "elsewhere")},
        arguments=[str(place.data)],
    )
    assert done.stdout == b"there"


def test_an_internal_session_is_left_alone(place: Place) -> None:
    done = place.hook("Stop", environ={"CLAUDE_MEM_INTERNAL": "1"})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not place.data.exists()


def test_an_error_is_never_printed(place: Place) -> None:
    place.worker()
    for body in (b"no json", place.payload(prompt="fail:boom"), place.payload(session_id="../x")):
        done = place.hook("UserPromptSubmit", body)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly the beginning",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\n\r\nno length",
        b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\nboom",
        b"\xff\xfe garbage \r\n\r\n",
        b"",
    ],
)
def test_half_an_answer_is_not_printed(place: Place, answer: bytes) -> None:
    def behave(connection: socket.socket) -> None:
        if read_request(connection):
            connection.sendall(answer)

    with false_worker(place, behave):
        done = place.hook("UserPromptSubmit")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("event", ["SessionEnd", "Stop", "SessionStart"])
def test_a_worker_that_never_answers_is_given_up(place: Place, event: str) -> None:
    over = threading.Event()

    def behave(connection: socket.socket) -> None:
        read_request(connection)
        over.wait(LONG)

    with false_worker(place, behave):
        done = place.hook(event, place.payload(event, source="startup"))
        over.set()
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_worker_that_never_reads_is_given_up(place: Place) -> None:
    over = threading.Event()
    with false_worker(place, lambda _: (over.wait(LONG), None)[1]):
        done = place.hook("SessionEnd", b" " * 4_000_000)
        over.set()
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_stdin_that_never_ends_is_given_up(place: Place) -> None:
    child = subprocess.Popen(
        place.command("SessionEnd"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=place.environ
    )
    assert child.stdin
    child.stdin.write(b"{")
    child.stdin.flush()
    assert child.wait(LONG) == 0
    child.stdin.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_without_an_error(place: Place, number: signal.Signals) -> None:
    place.worker()
    child = place.hook_process("PreCompact", place.payload("PreCompact", "hold:door"))
    eventually((place.home.root / "door.held").exists)
    child.send_signal(number)
    assert child.wait(LONG) == 0
    assert child.stderr and child.stderr.read() == b""
    (place.home.root / "door").touch()


def _no_home(place: Place) -> None: ...


def _home_is_a_file(place: Place) -> None:
    place.data.mkdir()
    (place.data / "endless").write_text("in the way")


def _data_dir_is_a_file(place: Place) -> None:
    place.data.write_text("in the way")


def _run_is_a_file(place: Place) -> None:
    (place.data / "endless").mkdir(parents=True)
    (place.data / "endless/run").write_text("in the way")


def _read_only(place: Place) -> None:
    place.data.mkdir(mode=0o500)


def _home_cannot_be_made(place: Place) -> None:
    place.environ["CLAUDE_MEM_DATA_DIR"] = "/proc/endless-cannot-be"


def _home_is_a_loop(place: Place) -> None:
    place.data.symlink_to(place.data)


def _very_long(place: Place) -> None:
    place.environ["CLAUDE_MEM_DATA_DIR"] = str(place.root / ("d" * 300))


STATES = [
    _no_home, _home_is_a_file, _data_dir_is_a_file, _run_is_a_file, _read_only, _home_cannot_be_made,
    _home_is_a_loop, _very_long,
]  # fmt: skip


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__.strip("_"))
@pytest.mark.parametrize("event", ["Stop", "SessionStart"])
def test_it_exits_0_without_a_complaint_whatever_the_home_is(
    place: Place, state: Callable[[Place], None], event: str
) -> None:
    state(place)
    done = place.hook(event, place.payload(event, source="compact"))
    assert (done.returncode, done.stderr) == (0, b"")
    if event == "Stop":
        assert done.stdout == b""


@pytest.mark.parametrize("with_worker", [True, False])
@pytest.mark.parametrize(
    "payload", [b"", b"garbage \xff\x00", b"[" * 200_000, b"null", b'"source":"compact"', b"x" * 20_000_000]
)
def test_it_exits_0_in_silence_whatever_is_on_stdin(place: Place, payload: bytes, with_worker: bool) -> None:
    if with_worker:
        place.worker()
    done = place.hook("SessionStart", payload)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("with_worker", [True, False])
def test_it_exits_0_with_closed_descriptors(place: Place, closed: str, with_worker: bool) -> None:
    if with_worker:
        place.worker()
    line = 'exec "$0" "$@" ' + closed
    done = subprocess.run(
        ["/bin/sh", "-c", line, *place.command("SessionStart")],
        input=place.payload("SessionStart", "say:x", source="compact"),
        capture_output=True, timeout=LONG, env=place.environ, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")


def test_it_exits_0_when_nobody_reads_its_answer(place: Place) -> None:
    place.worker()
    child = place.hook_process("Stop", place.payload("Stop", "say:" + "y" * 1_000_000))
    assert child.stdout and child.stderr
    child.stdout.close()
    assert child.wait(LONG) == 0
    assert child.stderr.read() == b""


def test_it_exits_0_when_it_may_open_nothing(place: Place) -> None:
    done = place.hook("Stop", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_it_works_without_its_wrapper(place: Place) -> None:
    place.worker()
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(HOOK.with_name("hook.py")), "claude-code", "Stop"],
        input=place.payload("Stop", "say:bare"),
        capture_output=True,
        timeout=LONG,
        env=place.environ,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"bare", b"")


def test_it_exits_0_when_its_own_files_are_gone(place: Place) -> None:
    alone = place.root / "run.py"
    alone.write_bytes(HOOK.read_bytes())
    command = [sys.executable, "-I", "-S", str(alone), "claude-code", "Stop"]
    done = subprocess.run(command, input=b"{}", capture_output=True, timeout=LONG, env=place.environ, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("flags", [[], ["-I"], ["-S"], ["-E", "-s"], ["-I", "-S", "-O"], ["-X", "dev"]])
def test_it_works_under_other_interpreter_flags(place: Place, flags: list[str]) -> None:
    place.worker()
    done = subprocess.run(
        [sys.executable, *flags, str(HOOK), "claude-code", "Stop"],
        input=place.payload("Stop", "say:here"), capture_output=True, timeout=LONG, env=place.environ, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"here")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["claude-code"],
        ["claude-code", ""],
        ["../x", "Stop"],
        ["claude-code", "Stop\r\nX: y"],
        ["ü", "Stop"],
    ],
)
def test_it_exits_0_on_a_wrong_command_line(place: Place, arguments: list[str]) -> None:
    command = [sys.executable, "-I", "-S", str(HOOK), *arguments]
    done = subprocess.run(command, input=b"{}", capture_output=True, check=False, timeout=LONG, env=place.environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not place.data.exists()


@pytest.mark.parametrize("event", EVENTS)
def test_the_recorded_inputs_are_taken_whole(place: Place, event: str) -> None:
    recorded = Path(__file__).parents[3] / "shared/claude-code/hook-inputs"
    files = sorted(recorded.glob(f"*/{event}.*json"))
    if not files:
        pytest.skip("the recorded hook inputs are not here")
    place.worker()
    for file in files:
        body = file.read_bytes().replace(b"/home/dev", os.fsencode(place.root))
        assert place.hook(event, body).returncode == 0
    assert len(place.calls()) == len(files)
    assert not place.log("refused")


def test_an_event_is_known_to_need_an_answer_by_its_source() -> None:
    assert hook.must_answer("SessionStart", b'{"source":"compact"}')
    assert hook.must_answer("SessionStart", b'{\n "source": "resume"}')
    assert not hook.must_answer("SessionStart", b'{"source":"startup"}')
    assert not hook.must_answer("SessionStart", b'{"cwd":"/a\\"source\\":\\"compact\\"","source":"clear"}')
    assert not hook.must_answer("Stop", b'{"source":"compact"}')
