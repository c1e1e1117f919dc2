"""A small blocking client of the worker, for the command line."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import threading
import time
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

from endless_mode import __version__
from endless_mode.deliver.resume import Resumed
from endless_mode.errors import EndlessError, WorkerError
from endless_mode.forgetting import Forgot
from endless_mode.home import Home
from endless_mode.hook import hook, slow
from endless_mode.worker import messages

T = TypeVar("T")


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: bytes, home: bytes, timeout: float) -> None:
        super().__init__("endless", timeout=timeout)
        self._path = path
        self._home = home

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
        if not hook.is_ours(self.sock, self._home):
            raise ConnectionRefusedError


class WorkerClient:
    """Calls on the worker of one home. Every method raises :class:`WorkerError` when no worker answers."""

    def __init__(self, home: Home, timeout: float = 10.0) -> None:
        self.home = home
        self.timeout = timeout

    def health(self) -> messages.Health:
        return self._json("GET", "/api/health", None, messages.Health)

    def stop(self) -> messages.StopAnswer:
        """Ask the worker to finish what it does and end; returns at once."""
        return self._json("POST", "/api/worker/stop", messages.StopRequest(__version__), messages.StopAnswer)

    def seal(self, request: messages.SealRequest) -> messages.SealAnswer:
        return self._json("POST", "/api/sessions/seal", request, messages.SealAnswer)

    def render_bottle(self, request: messages.RenderRequest) -> messages.RenderAnswer:
        return self._json("POST", "/api/sessions/render-bottle", request, messages.RenderAnswer)

    def drain_status(self, session_id: str) -> messages.DrainStatus:
        path = "/api/sessions/drain-status?contentSessionId=" + quote(session_id, safe="")
        return self._json("GET", path, None, messages.DrainStatus)

    def begin_import(self, config_dir: Path) -> messages.ImportStatus:
        """Let the worker read past sessions in; returns at once."""
        return self._json("POST", "/api/import", messages.ImportRequest(), messages.ImportStatus, config_dir)

    def import_status(self) -> messages.ImportStatus:
        return self._json("GET", "/api/import", None, messages.ImportStatus)

    def index(self, seconds: float) -> messages.IndexAnswer:
        """Bring the full-text index up to date."""
        return self._json("POST", "/api/search/index", messages.IndexRequest(seconds), messages.IndexAnswer)

    def forget(self, request: messages.ForgetRequest) -> Forgot:
        return self._json("POST", "/api/forget", request, Forgot)

    def resume(self, session_id: str, config_dir: Path) -> Resumed:
        """Let a session's handoff wait for a new session."""
        request = messages.ResumeRequest(session_id)
        return self._json("POST", "/api/sessions/resume", request, Resumed, config_dir)

    def hook(self, client: str, event: str, payload: bytes, headers: dict[str, str] | None = None) -> bytes:
        """Send one hook event as its hook would; return what the hook would print."""
        return self.request("POST", f"/hooks/{client}/{event}", payload, headers)

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> bytes:
        """Return the body of a successful answer; raise the answer's own error, or :class:`WorkerError`."""
        socket_path = os.fsencode(self.home.socket)
        root = os.fsencode(self.home.root)
        if not hook.trusted(socket_path, root):
            raise _no_worker()
        connection = _Connection(socket_path, root, self.timeout)
        try:
            connection.request(method, path, body, {"Connection": "close", **(headers or {})})
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise _no_worker() from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise _error(answer.status, content)
        return content

    def _json(
        self, method: str, path: str, body: msgspec.Struct | None, kind: type[T], config_dir: Path | None = None
    ) -> T:
        encoded = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json"}
        if config_dir is not None:
            headers["X-Endless-Config-Dir"] = quote(str(config_dir))
        content = self.request(method, path, encoded, headers)
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise WorkerError(
                "bad_answer", "The worker's answer cannot be read.", "It may be of another version: stop it."
            ) from error


def ensure_worker(home: Home, timeout: float = 10.0) -> messages.Health:
    """Return the health of a running worker, starting one if there is none.

    A worker of an older version is asked to stop, and a new one started; one of a newer version is used as
    it is.
    """
    home.create()
    client = WorkerClient(home, timeout)
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if not slow.listens(os.fsencode(home.socket)) and not _start(home, until):
            break
        with contextlib.suppress(WorkerError):  # it may end between one call and the next
            health = client.health()
            if not messages.newer(__version__, health.version):
                return health
            client.stop()
            _wait_gone(home, until)
    raise _no_worker()


def _start(home: Home, until: float) -> bool:
    """Start a worker and wait for it; the wait is on a lock, so a helper thread bears it."""
    came: list[bool] = []

    def wait() -> None:
        came.append(slow.start(os.fsencode(home.root), os.fsencode(home.socket), wait=True))

    starter = threading.Thread(target=wait, daemon=True)
    starter.start()
    starter.join(max(until - time.monotonic(), 0))
    return came == [True]


def _wait_gone(home: Home, until: float) -> None:
    while time.monotonic() < until and slow.listens(os.fsencode(home.socket)):
        time.sleep(0.02)


def _no_worker() -> WorkerError:
    return WorkerError("no_worker", "No worker answers.", "See `endless doctor`, and the log in the home.")


def _error(status: int, content: bytes) -> EndlessError:
    try:
        body = msgspec.json.decode(content, type=messages.ErrorBody)
    except msgspec.DecodeError:
        body = messages.ErrorBody("bad_answer", f"The worker answered with status {status}.", "")
    error = WorkerError(body.code, body.message, body.hint)
    error.status = status
    return error
