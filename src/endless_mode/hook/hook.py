"""The hook process: stdin to the worker, the worker's answer to stdout, always exit 0.

Run as ``"<interpreter>" -I -S run.py <client> <Event> [<data dir>]``; this file itself does the same, slower by
its compilation. The client waits for this process, so it imports only what the interpreter has loaded anyway
plus ``_socket``, and it neither parses nor builds JSON. What is needed when no worker answers lives in
``slow.py``, loaded on demand.

One deadline per event holds for everything: an interval timer whose handler leaves with exit code 0, or,
for an event that must be answered, raises :class:`Late` early enough for a last resort. The timer repeats,
because a signal that arrives just before a blocking call would otherwise be lost.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import posix
import sys
import time

VERSION = "0.1.0"

#: Seconds an event may take (client 2.1.197 gives SessionEnd 1.5 s in total and UserPromptSubmit 30 s).
BUDGETS = {"SessionStart": 8.0, "UserPromptSubmit": 3.0, "PreCompact": 25.0, "SessionEnd": 1.2}
OTHER_BUDGET = 2.0
#: Seconds kept back from the worker when an event must be answered: enough for a child process to do it.
LAST_RESORT = 2.5
#: A Unix socket's path must be shorter than this (macOS; Linux allows 108).
SUN_PATH = 104

FORWARDED = (
    (b"CLAUDE_CONFIG_DIR", b"Config-Dir"),
    (b"CLAUDE_PROJECT_DIR", b"Project-Dir"),
    (b"CLAUDE_CODE_ENTRYPOINT", b"Entrypoint"),
    (b"HOME", b"User-Home"),
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Environ = dict[bytes, bytes]


class Late(BaseException):
    """The time for the worker's answer is over."""


def user_home(environ: Environ) -> bytes:
    """Return the user's home directory."""
    home = environ.get(b"HOME", b"")
    if home[:1] == b"/":
        return home
    import pwd

    return pwd.getpwuid(posix.getuid()).pw_dir.encode("utf-8", "surrogateescape")


def data_dir(environ: Environ) -> bytes:
    """Return the data directory: ``CLAUDE_MEM_DATA_DIR`` if that is an absolute path, else
    ``~/.claude-mem``.
    """
    given = environ.get(b"CLAUDE_MEM_DATA_DIR", b"")
    if given[:1] == b"/":
        return given.rstrip(b"/") or b"/"
    return user_home(environ).rstrip(b"/") + b"/.claude-mem"


def home_dir(data: bytes) -> bytes:
    """Return our home in a data directory."""
    return data.rstrip(b"/") + b"/endless"


def socket_path(home: bytes, environ: Environ) -> bytes:
    """Return the path of the worker's socket: in the home, or in a short runtime directory if that is too
    long.
    """
    path = home + b"/run/worker.sock"
    if len(path) < SUN_PATH:
        return path
    digest = 0xCBF29CE484222325
    for byte in home:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    tail = b"/endless-%d-%016x/worker.sock" % (posix.getuid(), digest)
    base = environ.get(b"XDG_RUNTIME_DIR", b"").rstrip(b"/")
    if base[:1] != b"/" or len(base) + len(tail) >= SUN_PATH:
        base = b"/tmp"
    return base + tail


def trusted(path: bytes, home: bytes) -> bool:
    """Whether a socket may be talked to: in our home, or in a directory that is ours alone."""
    if path.startswith(home + b"/"):
        return True
    try:
        info = posix.lstat(path.rpartition(b"/")[0])
    except OSError:
        return False
    return info.st_uid == posix.getuid() and info.st_mode & 0o170077 == 0o040000


def is_ours(sock: "_socket.socket", home: bytes) -> bool:
    """Whether the process at the other end is run by this user; root, in a home of another user, takes its owner's.

    A home that was opened to others may hold anybody's socket.
    """
    try:
        if hasattr(_socket, "SO_PEERCRED"):
            peer = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        elif hasattr(_socket, "LOCAL_PEERCRED"):
            peer = sock.getsockopt(0, _socket.LOCAL_PEERCRED, 76)
        else:
            return True
        user = int.from_bytes(peer[4:8], sys.byteorder)
        me = posix.geteuid()
        return user == me or (me == 0 and user == posix.stat(home).st_uid)
    except OSError:
        return False


def quoted(value: bytes) -> bytes:
    """Return a header value: everything but plain printable ASCII percent-encoded."""
    return b"".join([bytes((b,)) if 32 < b < 127 and b != 37 else b"%%%02X" % b for b in value])


def build(client: str, event: str, payload: bytes, environ: Environ, data: bytes, budget: float) -> bytes:
    """Return the whole HTTP request for one event."""
    lines = [
        b"POST /hooks/%s/%s HTTP/1.1" % (client.encode(), event.encode()),
        b"Host: endless",
        b"Connection: close",
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(payload),
        b"X-Endless-Version: " + VERSION.encode(),
        b"X-Endless-Budget-Ms: %d" % (budget * 1000),
        b"X-Endless-Request: %d-%d" % (time.time_ns(), posix.getpid()),
        b"X-Endless-Data-Dir: " + quoted(data),
    ]
    for name, header in FORWARDED:
        if name in environ:
            lines.append(b"X-Endless-%s: %s" % (header, quoted(environ[name])))
    return b"\r\n".join(lines) + b"\r\n\r\n" + payload


def ask(home: bytes, path: bytes, message: bytes) -> tuple[int, bytes] | None:
    """Return (status, body) of the worker's answer; None when there is none, or it broke off."""
    if not trusted(path, home):
        return None
    answer = b""
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.connect(path)
        if not is_ours(sock, home):
            return None
        try:  # noqa: SIM105
            sock.sendall(message)
        except OSError:
            pass  # a refused body is answered before it has been read
        while chunk := sock.recv(65536):
            answer += chunk
    except OSError:
        pass  # what has arrived is judged below
    finally:
        sock.close()
    head, mark, body = answer.partition(b"\r\n\r\n")
    length = head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0].strip()
    if not mark or not length.isdigit() or len(body) != int(length):
        return None
    return int(head[9:12]), body


def read_all(fd: int) -> bytes:
    """Return what the descriptor holds up to its end; nothing when it is closed."""
    chunks: list[bytes] = []
    while True:
        try:
            chunk = posix.read(fd, 1 << 20)
        except BlockingIOError:
            time.sleep(0.005)
            continue
        except OSError:
            chunk = b""
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


def write_all(fd: int, data: bytes) -> None:
    """Write everything, or as much as the other side wants to have."""
    while data:
        try:
            data = data[posix.write(fd, data) :]
        except BlockingIOError:
            time.sleep(0.005)
        except OSError:
            return


def must_answer(event: str, payload: bytes) -> bool:
    """Whether the model is left without its handoff if this event goes unanswered."""
    if event != "SessionStart":
        return False
    value = payload.partition(b'"source"')[2].lstrip(b" \t\r\n:")
    return value.startswith((b'"compact"', b'"resume"'))


def leave(*_: object) -> None:
    """Signal handler: end at once, without an error."""
    posix._exit(0)


def late(*_: object) -> None:
    """Signal handler: give up waiting for the worker."""
    raise Late


def arm(seconds: float, handler: object = leave) -> None:
    """Set the deadline to ``seconds`` from now, replacing an earlier one; 0 takes it away."""
    _signal.setitimer(_signal.ITIMER_REAL, 0)
    _signal.signal(_signal.SIGALRM, handler)
    if seconds:
        _signal.setitimer(_signal.ITIMER_REAL, max(seconds, 0.001), 0.05)


def main(argv: list[str]) -> None:
    """Carry one event to the worker and its answer back."""
    environ = posix.environ
    if len(argv) < 3 or environ.get(b"CLAUDE_MEM_INTERNAL", b"0") not in (b"", b"0"):
        return
    client, event = argv[1], argv[2]
    if not (event.isalpha() and event.isascii() and client.replace("-", "").isalnum() and client.isascii()):
        return
    until = time.monotonic() + BUDGETS.get(event, OTHER_BUDGET)
    arm(until - time.monotonic())
    payload = read_all(0)
    must = must_answer(event, payload)
    if event == "SessionStart" and not must:
        until += OTHER_BUDGET - BUDGETS[event]
    data = argv[3].encode(sys.getfilesystemencoding(), "surrogateescape") if argv[3:] else data_dir(environ)
    home = home_dir(data)
    path = socket_path(home, environ)
    for_worker = max(until - time.monotonic() - (LAST_RESORT if must else 0), 0.05)
    message = build(client, event, payload, environ, data, for_worker)
    arm(for_worker, late if must else leave)
    try:
        answer = ask(home, path, message) or slow().recover(ask, home, path, message, must)
    except Late:
        answer = None
    arm(until - time.monotonic())
    if answer is not None and answer[0] == 200:
        write_all(1, answer[1])
    elif must:
        write_all(1, slow().last_resort(client, event, payload, home, until))


def slow() -> "Any":
    """Load the second file, which lies beside this one and may use the whole standard library."""
    sys.path.append(__file__.rpartition("/")[0])
    return __import__("slow")


if __name__ == "__main__":
    for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
        _signal.signal(number, leave)
    try:  # noqa: SIM105
        main(sys.argv)
    except BaseException:  # noqa: S110
        pass  # a hook never disturbs the client
    posix._exit(0)
