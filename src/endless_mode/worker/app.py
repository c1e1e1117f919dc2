"""The worker's HTTP surface: routes, limits, and errors as JSON."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from endless_mode import __version__
from endless_mode.errors import BadRequest, EndlessError
from endless_mode.names import is_session_id
from endless_mode.paths import check_transcript, client_root
from endless_mode.settings import Settings
from endless_mode.worker import messages
from endless_mode.worker.log import Log
from endless_mode.worker.openapi import document
from endless_mode.worker.service import Service

#: Seconds a request's body may take to arrive.
BODY_SECONDS = 10.0
#: Message and hint for a failure of our own.
FAILED = ("The worker failed on this request.", "The worker's log says where.")

_CLIENT = re.compile(r"[a-z][a-z0-9-]{0,31}")
_EVENT = re.compile(r"[A-Z][A-Za-z]{0,39}")
_STATUS_CODES = {404: "not_found", 405: "method_not_allowed"}

Endpoint = Callable[[Request], Awaitable[Response]]


class Api:
    """The routes over one service, and what the server must know of them: what runs, and since when
    nothing does.
    """

    def __init__(self, service: Service, settings: Settings, log: Log, retire: Callable[[str], None]) -> None:
        self.service = service
        self.settings = settings
        self.log = log
        self.retire = retire
        self.running = 0
        self.requests = 0
        self.started_at = self.idle_since = time.monotonic()

    def app(self) -> Starlette:
        """Return the ASGI application."""
        routes = [
            Route("/hooks/{client}/{event}", self._counted(self.hook), methods=["POST"]),
            Route("/api/sessions/seal", self._counted(self.seal), methods=["POST"]),
            Route("/api/sessions/render-bottle", self._counted(self.render), methods=["POST"]),
            Route("/api/sessions/drain-status", self._counted(self.drain_status), methods=["GET"]),
            Route("/api/import", self._counted(self.begin_import), methods=["POST"]),
            Route("/api/import", self.import_status, methods=["GET"]),
            Route("/api/search/index", self._counted(self.index), methods=["POST"]),
            Route("/api/forget", self._counted(self.forget), methods=["POST"]),
            Route("/api/sessions/resume", self._counted(self.resume), methods=["POST"]),
            Route("/api/health", self.health, methods=["GET"]),
            Route("/api/worker/stop", self.stop, methods=["POST"]),
            Route("/api/openapi.json", self.openapi, methods=["GET"]),
        ]
        handlers: dict[Any, Any] = {
            EndlessError: self._refused,
            HTTPException: self._no_route,
            ClientDisconnect: self._gone,
            Exception: self._failed,
        }
        return Starlette(routes=routes, exception_handlers=handlers)

    async def hook(self, request: Request) -> Response:
        """Take one hook event as the client sent it; answer with the bytes to print."""
        client, event = request.path_params["client"], request.path_params["event"]
        env = messages.HookEnv.from_headers(dict(request.headers))
        answer = await self.take(client, event, await read_body(request), env)
        if messages.newer(env.version, __version__):
            self.retire("newer_version")
        return Response(answer, media_type="text/plain; charset=utf-8")

    async def take(self, client: str, event: str, body: bytes, env: messages.HookEnv) -> bytes:
        """Check one event, hand it to the service, and log that it came."""
        if not _CLIENT.fullmatch(client) or not _EVENT.fullmatch(event):
            raise BadRequest("unknown_hook", "There is no such client or event.", "", status=404)
        begun = time.perf_counter()
        payload = messages.decode_hook(body)
        if payload.session_id and not is_session_id(payload.session_id):
            raise BadRequest("bad_session_id", "The session id is no safe file name.", "")
        if payload.transcript_path:
            path = self._transcript(payload.transcript_path, client, env)
            payload = msgspec.structs.replace(payload, transcript_path=str(path))
        try:
            answer = await self.service.hook(client, event, payload, env)
        except Exception as error:
            self.log.write(
                "failed",
                level="error",
                code="internal_error",
                session=payload.session_id,
                client=client,
                event=event,
                error=error,
            )
            raise EndlessError("internal_error", *FAILED) from error
        self.log.write(
            "spooled_hook" if env.spooled else "hook",
            session=payload.session_id,
            client=client,
            event=event,
            size=len(body),
            answer=len(answer),
            ms=(time.perf_counter() - begun) * 1000,
        )
        return answer

    async def seal(self, request: Request) -> Response:
        body = messages.decode(await read_body(request), messages.SealRequest)
        path = self._transcript(body.transcript_path, "claude-code", _env(request))
        timeout = self.settings.seal_timeout_ms if body.timeout_ms is None else body.timeout_ms
        body = msgspec.structs.replace(body, transcript_path=str(path), timeout_ms=timeout)
        answer = await self.service.seal(body)
        self.log.write("seal", session=body.content_session_id, count=answer.gap)
        return _json(answer)

    async def render(self, request: Request) -> Response:
        body = messages.decode(await read_body(request), messages.RenderRequest)
        if body.transcript_path:
            path = self._transcript(body.transcript_path, "claude-code", _env(request))
            body = msgspec.structs.replace(body, transcript_path=str(path))
        answer = await self.service.render_bottle(body)
        self.log.write("render", session=body.content_session_id)
        return _json(answer, 202 if answer.queued else 200)

    async def drain_status(self, request: Request) -> Response:
        session = request.query_params.get("contentSessionId", "")
        if not is_session_id(session):
            raise BadRequest("bad_session_id", "`contentSessionId` is missing or no session id.", "")
        return _json(await self.service.drain_status(session))

    async def begin_import(self, request: Request) -> Response:
        messages.decode(await read_body(request) or b"{}", messages.ImportRequest)
        root = self._root("claude-code", _env(request))
        if root is None:
            raise BadRequest("no_config_dir", "No configuration directory is known.", "Set CLAUDE_CONFIG_DIR.")
        return _json(await self.service.import_from(root), 202)

    async def import_status(self, _: Request) -> Response:
        return _json(await self.service.import_status())

    async def index(self, request: Request) -> Response:
        body = messages.decode(await read_body(request) or b"{}", messages.IndexRequest)
        return _json(messages.IndexAnswer(await self.service.index(body.seconds)))

    async def forget(self, request: Request) -> Response:
        return _json(await self.service.forget(messages.decode(await read_body(request), messages.ForgetRequest)))

    async def resume(self, request: Request) -> Response:
        body = messages.decode(await read_body(request), messages.ResumeRequest)
        return _json(await self.service.resume(body.content_session_id, self._root("claude-code", _env(request))))

    async def health(self, _: Request) -> Response:
        uptime = int((time.monotonic() - self.started_at) * 1000)
        live = len(self.service.live_sessions())
        return _json(messages.Health(
            __version__, messages.PROTOCOL, os.getpid(), uptime, self.requests, live
        ))  # fmt: skip

    async def stop(self, request: Request) -> Response:
        body = await read_body(request)
        messages.decode(body or b"{}", messages.StopRequest)
        self.retire("asked")
        return _json(messages.StopAnswer(), 202)

    async def openapi(self, _: Request) -> Response:
        return Response(document(), media_type="application/json")

    def _counted(self, endpoint: Endpoint) -> Endpoint:
        async def run(request: Request) -> Response:
            self.requests += 1
            self.running += 1
            try:
                return await endpoint(request)
            finally:
                self.running -= 1
                self.idle_since = time.monotonic()

        return run

    def _transcript(self, path: str, client: str, env: messages.HookEnv) -> Path:
        """Check a path against the directory of the client that sent it, which may not be the worker's
        own.
        """
        root = self._root(client, env)
        return check_transcript(path, [*self.settings.extra_roots, *([root] if root else [])])

    def _root(self, client: str, env: messages.HookEnv) -> Path | None:
        """The configuration directory of the client that sent a request."""
        home = env.user_home or os.environ.get("HOME", "")
        return client_root(client, env.config_dir or os.environ.get("CLAUDE_CONFIG_DIR", ""), home)

    async def _refused(self, _: Request, error: EndlessError) -> Response:
        if error.status < 500:
            self.log.write("refused", level="warning", code=error.code, status=error.status)
        return _error(error.status, error.code, error.message, error.hint)

    async def _no_route(self, _: Request, error: HTTPException) -> Response:
        code = _STATUS_CODES.get(error.status_code, "http_error")
        self.log.write("refused", level="warning", code=code, status=error.status_code)
        answer = _error(error.status_code, code, f"{error.detail}.", "See /api/openapi.json.")
        answer.headers.update(error.headers or {})
        return answer

    async def _gone(self, _: Request, __: ClientDisconnect) -> Response:
        return _error(400, "body_broke_off", "The connection ended within the body.", "")

    async def _failed(self, _: Request, error: Exception) -> Response:
        self.log.write("failed", level="error", code="internal_error", error=error)
        return _error(500, "internal_error", *FAILED)


async def read_body(request: Request, limit: int = messages.MAX_BODY) -> bytes:
    """Return a request's body, never holding more than ``limit`` bytes; raise :class:`BadRequest` (413,
    408).
    """
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                if len(body) + len(chunk) > limit:
                    raise _too_large(limit)
                body += chunk
    except TimeoutError as error:
        raise BadRequest("slow_body", "The body did not arrive in time.", "", status=408) from error
    return bytes(body)


def _env(request: Request) -> messages.HookEnv:
    return messages.HookEnv.from_headers(dict(request.headers))


def _too_large(limit: int) -> BadRequest:
    return BadRequest("too_large", f"The body is larger than {limit} bytes.", "", status=413)


def _json(answer: msgspec.Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type="application/json")


def _error(status: int, code: str, message: str, hint: str) -> Response:
    answer = _json(messages.ErrorBody(code, message, hint), status)
    if status in (400, 408, 413):
        answer.headers["connection"] = "close"
    return answer
