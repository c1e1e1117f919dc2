"""The worker's service: tails live sessions, seals them, hands over."""

from __future__ import annotations

import asyncio
import fnmatch
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from endless_mode.bottle.file import clean_leftovers
from endless_mode.bottle.session import Bottle
from endless_mode.bottle.view import SessionRow
from endless_mode.deliver import claims
from endless_mode.deliver.desk import Desk
from endless_mode.errors import BadRequest
from endless_mode.home import Home
from endless_mode.observe import slow
from endless_mode.observe.base import InlineObserver
from endless_mode.observe.rules import RulesObserver
from endless_mode.observe.slow import SlowObserver
from endless_mode.settings import Settings
from endless_mode.store.recovery import open_or_recover
from endless_mode.worker.drain import Drains
from endless_mode.worker.log import Log
from endless_mode.worker.messages import (
    DrainStatus,
    HookEnv,
    HookInput,
    RenderAnswer,
    RenderRequest,
    SealAnswer,
    SealRequest,
)

T = TypeVar("T")

#: Seconds between two looks at the live transcripts, and for one that has not grown for a while.
POLL, POLL_QUIET = 1.0, 10.0
_QUIET_AFTER = 600.0
#: Seconds after a Stop before its render, so that the last lines are there and a burst makes one bottle.
_SETTLE = 0.3


class Live(Struct):
    """A session whose transcript is being followed."""

    path: Path
    size: int = -1
    grew: float = 0.0
    looked: float = 0.0


class LiveService:
    """See :class:`endless_mode.worker.service.Service`."""

    def __init__(
        self, home: Home, settings: Settings, observer: InlineObserver | None = RulesObserver(), slow_observer: SlowObserver | None = None
    ) -> None:
        self.home = home
        self.settings = settings
        self.drains = Drains()
        self.slow = slow_observer
        self._observer = observer
        self._log = Log(home.log, settings.log_level)
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="desk")
        self._live: dict[str, Live] = {}
        self._renders: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.desk: Desk

    # -- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store (a damaged one is put aside) and begin to follow live sessions."""
        await self._run(self._open)
        self._spawn(self._poll())

    def _open(self) -> None:
        store, anew = open_or_recover(self.home.database, self.home.run / "suspect")
        if anew:
            self._log.write("database_recovered", level="warning")
        self.desk = Desk(self.home, self.settings, store, self._complain, self._observer)
        store.write(slow.release)
        clean_leftovers(self.home.bottles)

    async def stop(self) -> None:
        """Finish queued renders and drain the writer."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        waiting = [s for s, task in self._renders.items() if not task.done()]
        for task in self._renders.values():
            task.cancel()
        await asyncio.gather(*self._renders.values(), return_exceptions=True)
        for session_id in waiting:
            live = self._live.get(session_id)
            await self._run(partial(self._render_quietly, session_id, live.path if live else None))
        await self._run(self.desk.store.close)
        self._pool.shutdown(wait=False)

    def live_sessions(self) -> Collection[str]:
        """Sessions whose transcript grew within the idle time."""
        horizon = time.monotonic() - self.settings.idle_seconds
        return [s for s, live in self._live.items() if live.grew > horizon]

    # -- hooks ---------------------------------------------------------------------------------------------

    async def hook(self, client: str, event: str, payload: HookInput, env: HookEnv) -> bytes:
        """Take one hook event in; the bytes are what its hook prints."""
        if not self.settings.enabled or not payload.session_id or self._excluded(payload.cwd):
            return b""
        answer = self._answers().get((event, payload.source or "")) or self._answers().get((event, ""))
        if answer is None:
            return b""
        if payload.agent_id is not None and event in ("PreCompact", "SessionStart", "PostCompact"):
            return b""
        self._follow(payload)
        text = await answer(payload)
        return b"" if env.spooled else text.encode("utf-8", "replace")

    def _answers(self) -> dict[tuple[str, str], Callable[[HookInput], Awaitable[str]]]:
        return {
            ("SessionStart", "compact"): self._compacted,
            ("SessionStart", "resume"): self._resumed,
            ("SessionStart", "startup"): self._started,
            ("UserPromptSubmit", ""): self._prompted,
            ("PreCompact", ""): self._compacting,
            ("PostCompact", ""): self._seen,
            ("Stop", ""): self._stopped,
            ("SessionEnd", ""): self._ended,
        }

    async def _compacted(self, payload: HookInput) -> str:
        return await self._run(lambda: self.desk.after_compaction(payload.session_id, _path(payload), payload.cwd))

    async def _resumed(self, payload: HookInput) -> str:
        return await self._run(lambda: self.desk.at_resume(payload.session_id, _path(payload), payload.cwd))

    async def _prompted(self, payload: HookInput) -> str:
        return await self._run(lambda: self.desk.at_prompt(payload.session_id, _path(payload), payload.cwd))

    async def _started(self, payload: HookInput) -> str:
        return await self._run(lambda: self.desk.at_startup(payload.session_id, payload.cwd))

    async def _compacting(self, payload: HookInput) -> str:
        """Seal. Prints nothing, ever: the client pastes PreCompact's output into the summariser's prompt."""
        await self._seal(payload.session_id, _path(payload), self.settings.seal_timeout_ms, manual=payload.trigger == "manual")
        return ""

    async def _seen(self, payload: HookInput) -> str:
        await self._run(lambda: self.desk.tail(payload.session_id, _path(payload)))
        return ""

    async def _stopped(self, payload: HookInput) -> str:
        if payload.transcript_path:
            self._queue_render(payload.session_id, _path(payload))
        return ""

    async def _ended(self, payload: HookInput) -> str:
        path = _path(payload)
        if payload.reason == "clear":
            await self._run(lambda: self._clear(payload.session_id, path))
        elif path is not None:
            self._queue_render(payload.session_id, path)
        self._live.pop(payload.session_id, None)
        return ""

    def _clear(self, session_id: str, path: Path | None) -> None:
        self._render_quietly(session_id, path)
        self.desk.archive(session_id)

    # -- the API -------------------------------------------------------------------------------------------

    async def seal(self, request: SealRequest) -> SealAnswer:
        """Drain, render, arm."""
        path = Path(request.transcript_path) if request.transcript_path else None
        timeout = self.settings.seal_timeout_ms if request.timeout_ms is None else request.timeout_ms
        sealed = await self._seal(request.content_session_id, path, timeout, manual=True)
        if sealed is None:
            return SealAnswer(False, 0)
        return SealAnswer(True, sealed.gap, str(sealed.path), sealed.mode)

    async def render_bottle(self, request: RenderRequest) -> RenderAnswer:
        """Render now (``wait``) or soon."""
        path = Path(request.transcript_path) if request.transcript_path else self._known_path(request.content_session_id)
        if not request.wait:
            self._queue_render(request.content_session_id, path)
            return RenderAnswer(True)
        bottle = await self._run(lambda: self._render(request.content_session_id, path))
        if bottle is None:
            raise BadRequest("nothing_to_render", "Nothing is known of this session.", "Give its transcript's path.", status=404)
        return RenderAnswer(False, str(bottle.path), bottle.mode)

    async def drain_status(self, session_id: str) -> DrainStatus:
        """How many events are without observation."""

        def ask() -> dict[str, int]:
            rows = self.desk.store.read(
                lambda db: db.execute(
                    "SELECT state, count(*) FROM tool_events e JOIN sessions s ON s.id = e.session_id"
                    " WHERE content_session_id = ? AND state IN ('pending', 'claimed') GROUP BY state",
                    (session_id,),
                ).fetchall()
            )
            return {state: int(count) for state, count in rows}

        waiting = await self._run(ask)
        pending, claimed = waiting.get("pending", 0), waiting.get("claimed", 0)
        return DrainStatus(session_id, pending + claimed == 0, pending, claimed, claimed > 0)

    # -- seal and render -----------------------------------------------------------------------------------

    async def _seal(self, session_id: str, path: Path | None, timeout_ms: int, *, manual: bool) -> Bottle | None:
        began = int(time.time() * 1000)
        at = await self._run(lambda: self.desk.tail_to_the_end(session_id, path))
        if not manual and await self._run(lambda: self.desk.store.read(lambda db: claims.in_subagent(db, at))):
            return None
        if not await self._run(lambda: self._holds_something(at)):
            return None
        await self._drained(at, timeout_ms / 1000)
        sealed = await self._run(lambda: self.desk.seal(at, began))
        self._log.write("sealed", session=session_id, count=sealed.gap)
        return sealed.bottle

    def _holds_something(self, at: SessionRow) -> bool:
        return at.gen > 0

    async def _drained(self, at: SessionRow, timeout: float) -> None:
        if self.slow is None:
            return
        observer, session_id = self.slow, at.content_session_id

        def waiting() -> int:
            return self.desk.gap(at)

        await self.drains.wait(session_id, waiting, lambda: observer.standing_still(session_id), timeout)

    def _queue_render(self, session_id: str, path: Path | None) -> None:
        """One render soon, however often it is asked for."""
        queued = self._renders.get(session_id)
        if queued is None or queued.done():
            self._renders[session_id] = asyncio.create_task(self._render_soon(session_id, path))

    async def _render_soon(self, session_id: str, path: Path | None) -> None:
        await asyncio.sleep(_SETTLE)
        await self._run(lambda: self._render_quietly(session_id, path))

    def _render_quietly(self, session_id: str, path: Path | None) -> None:
        try:
            self._render(session_id, path)
        except Exception as error:
            self._complain("render_failed", session_id, error)

    def _render(self, session_id: str, path: Path | None) -> Bottle | None:
        at = self.desk.tail(session_id, path)
        return self.desk.render(at) if at.gen > 0 else None

    # -- following -----------------------------------------------------------------------------------------

    def _follow(self, payload: HookInput) -> None:
        path = _path(payload)
        if path is not None:
            live = self._live.setdefault(payload.session_id, Live(path))
            live.path, live.grew = path, time.monotonic()

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL)
            now = time.monotonic()
            grown = [s for s, live in self._live.items() if _has_grown(live, now)]
            for session_id in grown:
                try:
                    await self._run(partial(self.desk.tail, session_id, self._live[session_id].path))
                    self.drains.changed(session_id)
                except Exception as error:
                    self._complain("tail_failed", session_id, error)

    def _known_path(self, session_id: str) -> Path | None:
        live = self._live.get(session_id)
        return live.path if live else None

    def _excluded(self, cwd: str) -> bool:
        return any(
            fnmatch.fnmatch(cwd, pattern) or fnmatch.fnmatch(Path(cwd).name, pattern) for pattern in self.settings.excluded_projects
        )

    def _complain(self, name: str, session: str, error: BaseException) -> None:
        self._log.write(name, level="error", session=session, error=error)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _spawn(self, coroutine: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _has_grown(live: Live, now: float) -> bool:
    if now - live.grew > _QUIET_AFTER and now - live.looked < POLL_QUIET:
        return False
    live.looked = now
    try:
        size = live.path.stat().st_size
    except OSError:
        return False
    if size == live.size:
        return False
    live.size, live.grew = size, now
    return True


def _path(payload: HookInput) -> Path | None:
    return Path(payload.transcript_path) if payload.transcript_path else None


def factory(home: Home, settings: Settings) -> LiveService:
    """The product's service, with the default observer."""
    return LiveService(home, settings)


