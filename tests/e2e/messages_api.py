"""A scripted Messages API on loopback: the model behind the real client, with a test as its mind.

A test hands over a *script*, one step per request of the main line of the conversation, and reads
back every request the client sent. What the client asks for its own purposes (the summary of a
compaction, titles, token counts, subagents) is recognised and answered plausibly, so that a script
speaks of the conversation alone.

    with MessagesApi([call(bash("ls")), say("Three files.")]) as api:
        ...
        assert api.main[1].count("notes.txt") == 1
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from .answers import Answer, Step, say
from .recorded import Kind, Request, classify
from .side import answer_side
from .wire import error_body, message_body, sse_events, tokens_of

DEFAULT_SUMMARY = (
    "<analysis>\nThe conversation in short.\n</analysis>\n\n"
    "<summary>\n1. Primary Request and Intent:\n   The work goes on as before.\n</summary>"
)

#: How long the summary takes, in seconds. A real one takes tens of seconds, so the client's asynchronous writer (up to
#: 82 ms late) has long written all there is when it comes.
SUMMARY_SECONDS = 0.4


class MessagesApi:
    """The server, its script and its record. Use as a context manager.

    `script`: steps for the main line, in order; see `answers.Step`. `otherwise` answers when the
    script is used up. `subagents` is the same for requests made by subagents. `summary` is what the
    summariser's model says. All of them may be changed while the client runs.
    """

    def __init__(
        self,
        script: Iterable[Step] | Callable[[Request], Answer | None] = (),
        *,
        otherwise: Step | None = None,
        subagents: Iterable[Step] = (),
        summary: Step | str = DEFAULT_SUMMARY,
    ) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._steps: dict[Kind, list[Step]] = {"main": [], "subagent": list(subagents)}
        self.otherwise: Step = otherwise or say("All right.")
        self.summary = summary
        self.requests: list[Request] = []
        self.failures: list[BaseException] = []
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.closing = threading.Event()
        self.script(script)

    # --- what a test says -------------------------------------------------------------------

    def script(self, steps: Iterable[Step] | Callable[[Request], Answer | None]) -> None:
        """Replace what is left of the script; a single callable answers every main request."""
        if callable(steps):
            self.otherwise = steps
            steps = ()
        with self._lock:
            self._steps["main"] = list(steps)

    def script_subagents(self, steps: Iterable[Step]) -> None:
        """Replace what is left of the subagents' script (one script for all of them, in order)."""
        with self._lock:
            self._steps["subagent"] = list(steps)

    def then(self, *steps: Step) -> None:
        """Append steps to the script of the main line."""
        with self._lock:
            self._steps["main"].extend(steps)

    # --- what a test reads ------------------------------------------------------------------

    def of_kind(self, kind: Kind) -> list[Request]:
        """The requests of one kind so far, in order of arrival."""
        with self._lock:
            return [request for request in self.requests if request.kind == kind]

    @property
    def main(self) -> list[Request]:
        """The requests of the conversation itself."""
        return self.of_kind("main")

    @property
    def summariser(self) -> list[Request]:
        """The requests that asked for a compaction's summary."""
        return self.of_kind("summariser")

    @property
    def side(self) -> list[Request]:
        """Titles, probes and the like."""
        return self.of_kind("side")

    @property
    def subagent(self) -> list[Request]:
        """The requests made by subagents."""
        return self.of_kind("subagent")

    def main_after(self, request: Request) -> list[Request]:
        """The main requests that arrived after `request`."""
        return [later for later in self.main if later.number > request.number]

    def after_compaction(self, nth: int = 0) -> Request:
        """The first main request after the nth compaction (counted from 0; -1 = the newest)."""
        return self.main_after(self.summariser[nth])[0]

    @property
    def steps_left(self) -> int:
        """How many steps of the main script were not used."""
        with self._lock:
            return len(self._steps["main"])

    def wait(self, ready: Callable[[MessagesApi], bool], seconds: float = 15.0) -> None:
        """Block until `ready(api)`, looked at after each request; TimeoutError past the deadline."""
        deadline = time.monotonic() + seconds
        while not ready(self):
            with self._changed:
                left = deadline - time.monotonic()
                if left <= 0:
                    kinds = [request.kind for request in self.requests]
                    raise TimeoutError(f"not so after {seconds} s; requests so far: {kinds}")
                self._changed.wait(min(left, 0.25))

    # --- the server -------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The value for ANTHROPIC_BASE_URL."""
        assert self._server is not None, "the API is not running"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> MessagesApi:
        handler = type("Handler", (_Handler,), {"api": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        if self._thread is not None:
            self._thread.join(5)
        if self.failures and error is None:
            raise AssertionError(f"the script failed: {self.failures[0]!r}") from self.failures[0]

    def answer(self, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        """Record one request and decide its answer. Called from the server's threads."""
        with self._lock:
            request = Request(len(self.requests), classify(body, headers), body, headers)
            self.requests.append(request)
            try:
                chosen = self._decide(request)
            except Exception as error:
                self.failures.append(error)
                chosen = Answer(error=(400, "invalid_request_error", f"script failed: {error!r}"))
            request.answer = chosen
            self._changed.notify_all()
        return chosen

    def _decide(self, request: Request) -> Answer:
        if request.kind == "side":
            return answer_side(request)
        if request.kind == "summariser":
            if isinstance(self.summary, str):
                return say(self.summary).after(SUMMARY_SECONDS)
            return _take(self.summary, request)
        steps = self._steps[request.kind]
        while steps:
            chosen = steps[0](request) if callable(steps[0]) else steps[0]
            if chosen is None or not chosen.stay:
                steps.pop(0)
            if chosen is not None:
                return chosen
        return _take(self.otherwise, request) if request.kind == "main" else say("Subagent done.")


def _take(step: Step, request: Request) -> Answer:
    chosen = step(request) if callable(step) else step
    return chosen or say("All right.")


class _Handler(BaseHTTPRequestHandler):
    """One connection of the client. A client that hangs up is no error of ours."""

    api: MessagesApi
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError, ValueError):
            super().handle()

    def do_HEAD(self) -> None:
        self._send(200, b"")

    def do_GET(self) -> None:
        self._json(404, error_body("not_found_error", self.path))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            self._json(200, {"input_tokens": tokens_of(json.loads(raw))})
        elif path == "/v1/messages":
            body = json.loads(raw)
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._message(body, self.api.answer(body, headers))
        else:
            self._json(404, error_body("not_found_error", self.path))

    def _message(self, body: dict[str, Any], answer: Answer) -> None:
        if answer.delay:
            self.api.closing.wait(answer.delay)
        while answer.hold is not None and not answer.hold.wait(0.05):
            if self.api.closing.is_set():
                break
        if answer.error is not None:
            status, kind, words = answer.error
            self._json(status, error_body(kind, words), answer.headers)
            return
        message = message_body(body, answer)
        if not body.get("stream"):
            self._json(200, message, answer.headers)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("request-id", "req_" + str(message["id"]))
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, event in sse_events(message):
            data = f"event: {name}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), headers)

    def _send(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Silent: a test prints what it wants to see."""
