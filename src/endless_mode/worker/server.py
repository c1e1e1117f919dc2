"""The worker's life: get ready, serve, notice that it is time to go, and go without dropping anything."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from endless_mode import __version__, settings
from endless_mode.home import Home
from endless_mode.worker import spool
from endless_mode.worker.app import Api
from endless_mode.worker.lifecycle import BACKLOG, ENDING, Hold
from endless_mode.worker.log import Log
from endless_mode.worker.messages import ErrorBody
from endless_mode.worker.service import Factory, service_factory

#: Seconds a connection may take to send a request's head.
HEAD_SECONDS = 10.0
#: Seconds that running requests get when the worker ends (a seal may wait 20), and then the service to
#: finish.
RETIRE_SECONDS = 30.0
STOP_SECONDS = 10.0
#: Seconds between two looks at the lock, the home, the spool and the clock.
TICK = 1.0


class Patient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection that is closed when a request's head does not arrive in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._too_late.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._too_late.cancel()
        self._wait_for_head()

    def _wait_for_head(self) -> None:
        self._too_late = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def send_400_response(self, _: str) -> None:
        body = msgspec.json.encode(ErrorBody("malformed_http", "This is not an HTTP request.", ""))
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()


class _Uvicorn(uvicorn.Server):
    """Uvicorn without its signal handlers and its ten looks a second at whether to end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.ended.wait()


class Worker:
    """One run of the worker, from the bound socket to the drained service."""

    def __init__(self, home: Home, hold: Hold, factory: Factory | None = None) -> None:
        self.home = home
        self.hold = hold
        self.settings = settings.load(home)
        self.log = Log(home.log, self.settings.log_level)
        self.service = (factory or service_factory)(home, self.settings)
        self.api = Api(self.service, self.settings, self.log, self.retire)
        self.server = _Uvicorn(
            uvicorn.Config(
                self.api.app(),
                http=Patient,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=2,
            )
        )
        self._retiring: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Serve until it is time to go; return the exit code."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self.retire, "signal")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        for problem in self.settings.problems:
            self.log.write("settings", level="warning", code=problem.code)
        if not await self._ready():
            return 1
        self.log.write("started", code=__version__)
        gc.freeze()
        watch = asyncio.create_task(self._watch())
        await self.server.serve(sockets=[self.hold.listener])
        watch.cancel()
        return await self._finish()

    async def _ready(self) -> bool:
        try:
            await self.service.start()
        except Exception as error:
            self.log.write("start_failed", level="error", code="start_failed", error=error)
            self.hold.withdraw()
            with contextlib.suppress(OSError):
                self.home.failed.touch(mode=0o600)
            return False
        with contextlib.suppress(OSError):
            self.home.failed.unlink(missing_ok=True)
        return True

    def retire(self, reason: str) -> None:
        """Begin to end: no new connection, those that are here get their answer. A second call changes
        nothing.
        """
        if self._retiring is None:
            self.log.write("retiring", code=reason)
            self._retiring = asyncio.create_task(self._retire())

    async def _retire(self) -> None:
        with contextlib.suppress(OSError):
            self.hold.withdraw()
        until = time.monotonic() + RETIRE_SECONDS
        while await self._busy() and time.monotonic() < until:
            await asyncio.sleep(0.02)
        self.server.ended.set()

    async def _busy(self) -> bool:
        """Whether anybody is here. An accepted connection needs a few turns of the loop until it is counted."""
        for _ in range(10):
            if self.hold.waiting() or self.server.server_state.connections or self.api.running:
                return True
            await asyncio.sleep(0)
        return False

    async def _watch(self) -> None:
        """Look after the spool, and after the reasons to end."""
        while True:
            for path in spool.waiting(self.home.spool):
                if self._retiring:
                    return
                await self._take_kept(path)
            lost = self.hold.lost()
            if lost or self._idle():
                self.retire(lost or "idle")
                return
            await asyncio.sleep(min(TICK, self.settings.idle_seconds / 4))

    async def _take_kept(self, path: Path) -> None:
        self.api.running += 1
        try:
            await spool.take_one(path, self.api.take, self.log)
        except OSError as error:
            self.log.write("spool_failed", level="error", code="spool_unreadable", error=error)
        finally:
            self.api.running -= 1
            self.api.idle_since = time.monotonic()

    def _idle(self) -> bool:
        busy = self.api.running or self.server.server_state.connections or self.service.at_work()
        if busy or self.service.live_sessions():
            return False
        return time.monotonic() - self.api.idle_since >= self.settings.idle_seconds

    async def _finish(self) -> int:
        insist = threading.Timer(STOP_SECONDS + 2, os._exit, (1,))  # a stuck thread must not keep the lock
        insist.daemon = True
        insist.start()
        try:
            await asyncio.wait_for(self.service.stop(), STOP_SECONDS)
        except Exception as error:
            self.log.write("stop_failed", level="error", code="stop_failed", error=error)
            return 1
        self.log.write("ended", count=self.api.requests)
        return 0


def run(home: Home, hold: Hold, factory: Factory | None = None) -> int:
    """Run the worker in this process; return its exit code."""
    quiet = logging.getLogger("uvicorn")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False

    async def life() -> int:
        return await Worker(home, hold, factory).run()

    return asyncio.run(life())
