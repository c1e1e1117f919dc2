"""What a hook does when no worker answers: keep the event, start one worker, and know a last resort.

Loaded by ``hook.py`` from its path, without site-packages, so only the standard library is used; the
command line imports it as a module of the package for :func:`start`.

However many processes find no worker at the same time, one starts it. The right to start is a file lock on
``run/start.lock``; the new worker inherits the locked descriptor and closes it when it listens. So the
lock also tells when to go on: whoever gets it finds a worker, or one that died on its way.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import sys
import time

# What ``json`` is made of, without the 4 ms of importing it: many hooks can be here at once.
from _json import encode_basestring_ascii as quoted
from _json import make_scanner
from collections.abc import Callable

#: Events kept for a worker that does not come; enough for a long day, bounded for a broken install.
SPOOL_FILES = 500
#: The worker refuses larger bodies.
SPOOL_BYTES = 8 * 1024 * 1024 + 16 * 1024
#: What of an event is kept: whose it is and what happened, no words.
KEPT = (
    *("session_id", "transcript_path", "cwd", "hook_event_name", "prompt_id", "permission_mode"),
    *("agent_id", "agent_type", "source", "trigger", "reason"),
)
#: After a worker failed to start, hooks that need no answer wait this long (seconds) before they start
#: another.
BACKOFF = 30.0

#: What a worker may inherit. The client's environment holds keys to the running client, which are not ours
#: to keep.
INHERITED = {
    *("HOME", "USER", "LOGNAME", "PATH", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"),
    *("CLAUDE_CONFIG_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT"),
}
INHERITED_PREFIXES = ("LC_", "CLAUDE_MEM_")

Answer = tuple[int, bytes]
Ask = Callable[[bytes, bytes, bytes], Answer | None]


def recover(ask: Ask, home: bytes, path: bytes, message: bytes, must: bool) -> Answer | None:
    """Keep the event for a later worker and start one; if the event must be answered, wait and ask again."""
    try:
        prepare(home)
        if not must and (kept := bare(message)):
            keep(home, kept)
        if not start(home, path, wait=must) or not must:
            return None
    except OSError:
        return None
    return ask(home, path, message)


def prepare(home: bytes) -> None:
    """Make the directories a worker is started with; raise :class:`OSError` when that cannot be."""
    for directory in (os.path.dirname(home), home, home + b"/run", home + b"/run/spool"):
        os.makedirs(directory, mode=0o700, exist_ok=True)


class _Plain:
    """How the scanner reads values: as they are."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, str
    memo: dict[str, str] = {}  # noqa: RUF012


def bare(message: bytes) -> bytes:
    """Return the request without what anybody said: the worker reads that in the transcript, where it is
    cleaned; here it would lie as it is, for as long as no worker comes. Nothing for a body nobody can take.
    """
    head, mark, body = message.partition(b"\r\n\r\n")
    try:
        given, _ = make_scanner(_Plain)(body.decode("utf-8", "replace").lstrip(), 0)  # type: ignore[arg-type]
    except (ValueError, StopIteration, RecursionError):
        return b""
    if not isinstance(given, dict):
        return b""
    pairs = [f'"{name}":{quoted(given[name])}' for name in KEPT if isinstance(given.get(name), str)]
    kept = f"{{{','.join(pairs)}}}".encode()
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length:")]
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(kept)]) + mark + kept


def keep(home: bytes, message: bytes) -> None:
    """Write one event's request into the spool, whole or not at all."""
    spool = home + b"/run/spool/"
    if len(message) > SPOOL_BYTES or len(os.listdir(spool)) >= SPOOL_FILES:
        return
    name = b"%020d-%d" % (time.time_ns(), os.getpid())
    fd = os.open(spool + b"." + name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "wb") as file:
        file.write(message)
    os.rename(spool + b"." + name, spool + name + b".http")


def start(home: bytes, path: bytes, wait: bool) -> bool:
    """Start a worker unless one listens or is on its way; return whether one listens now.

    With ``wait`` this blocks until a worker listens, or two have died on their way; the caller sets the
    deadline.
    """
    run = home + b"/run/"
    for attempt in range(3):
        lock = os.open(run + b"start.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if listens(path):
                return True
            if attempt == 2 or (not wait and failed_lately(run)):
                return False
            spawn(home, lock)
        except BlockingIOError:
            return False
        finally:
            os.close(lock)
        if not wait:
            return False
    return False


def listens(path: bytes) -> bool:
    """Whether somebody accepts connections at this path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


def failed_lately(run: bytes) -> bool:
    """Whether a worker said within the last :data:`BACKOFF` seconds that it cannot start."""
    try:
        return abs(time.time() - os.stat(run + b"failed").st_mtime) < BACKOFF
    except OSError:
        return False


def spawn(home: bytes, lock: int) -> None:
    """Start the worker in a session of its own; it inherits ``lock`` and nothing else that is open."""
    inherited = fcntl.fcntl(lock, fcntl.F_DUPFD, 10)
    arguments = ["-I", "-m", "endless_mode.worker", "--start-lock", str(inherited)]
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    command = [sys.executable, *arguments]
    environ = worker_environment(home)
    try:
        os.posix_spawn(sys.executable, command, environ, file_actions=null, setsid=True)
    except NotImplementedError:  # the worker leaves the process group by itself, a moment later
        os.posix_spawn(sys.executable, command, environ, file_actions=null)
    finally:
        os.close(inherited)


def worker_environment(home: bytes) -> dict[str, str]:
    """Return the environment of our own processes."""
    kept = {k: v for k, v in os.environ.items() if k in INHERITED or k.startswith(INHERITED_PREFIXES)}
    return {**kept, "CLAUDE_MEM_DATA_DIR": os.fsdecode(os.path.dirname(home) or b"/")}


def last_resort(client: str, event: str, payload: bytes, home: bytes, until: float) -> bytes:
    """Have a child process answer the event before ``until`` (monotonic seconds); return nothing if it
    does not.
    """
    if len(payload) > select.PIPE_BUF * 8:  # must fit a pipe that nobody reads yet
        return b""
    stdin, to_child = os.pipe()
    from_child, stdout = os.pipe()
    os.write(to_child, payload)
    os.close(to_child)
    actions = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_RDWR, 0),
    ]
    command = [sys.executable, "-I", "-m", "endless_mode.worker.fallback", client, event]
    pid = os.posix_spawn(sys.executable, command, worker_environment(home), file_actions=actions)
    os.close(stdin)
    os.close(stdout)
    answer = read_until(from_child, until - 0.1)
    if answer is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return b""
    return answer if os.waitpid(pid, 0)[1] == 0 else b""


def read_until(fd: int, until: float) -> bytes | None:
    """Return all the descriptor has to give, or None if it has not ended by ``until``."""
    answer = b""
    ready = select.poll()  # unlike select(), for descriptors of any number
    ready.register(fd, select.POLLIN)
    while (left := until - time.monotonic()) > 0:
        if not ready.poll(left * 1000):
            return None
        chunk = os.read(fd, 65536)
        if not chunk:
            return answer
        answer += chunk
    return None
