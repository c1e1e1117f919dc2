"""The worker's service: tails live sessions, seals them, hands over."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from endless_mode.bottle.file import clean_leftovers
from endless_mode.bottle.view import SessionRow
from endless_mode.bottle.write import Bottle
from endless_mode.deliver import resume
from endless_mode.deliver.desk import RULES, Caller, Desk
from endless_mode.deliver.eligible import is_excluded
from endless_mode.deliver.keeper import Keeper
from endless_mode.deliver.resume import Resumed
from endless_mode.errors import BadRequest, EndlessError
from endless_mode.forgetting import Forgot
from endless_mode.home import Home
from endless_mode.observe.base import InlineObserver
from endless_mode.observe.slow import SlowObserver
from endless_mode.paths import client_root
from endless_mode.settings import Settings
from endless_mode.worker.drain import Drains
from endless_mode.worker.following import POLL, Following, Live
from endless_mode.worker.log import Log
from endless_mode.worker.messages import (
    DrainStatus,
    ForgetRequest,
    HookEnv,
    HookInput,
    ImportStatus,
    RenderAnswer,
    RenderRequest,
    SealAnswer,
    SealRequest,
)
from endless_mode.worker.past import Past
from endless_mode.worker.renders import Renders

T = TypeVar("T")

#: Seconds an answer may need from here to the hook.
_ON_ITS_WAY = 0.05
#: Seconds to wait for a command that holds the store for a moment.
_OPEN_PATIENCE = 5.0


class LiveService:
    """See :class:`endless_mode.worker.service.Service`."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        observer: InlineObserver | None = RULES,
        slow_observer: SlowObserver | None = None,
    ) -> None:
        self.home = home
        self.settings = settings
        self.drains = Drains()
        self.slow = slow_observer
        self._log = Log(home.log, settings.log_level)
        self.keeper = Keeper(home, settings, self._complain, observer)
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="desk")
        self._following = Following()
        self.past = Past(home, settings, self.keeper, self._log, self._following.__contains__)
        self._renders = Renders(self._render_quietly)
        self._tasks: set[asyncio.Task[None]] = set()

    # -- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store (a damaged one is put aside) and begin to follow live sessions."""
        await self._run(self._open)
        self._spawn(self._poll())
        self.past.start()

    def _open(self) -> None:
        if self.keeper.open(_OPEN_PATIENCE):
            self._log.write("database_recovered", level="warning")
        clean_leftovers(self.home.bottles)

    async def stop(self) -> None:
        """Finish queued renders and drain the writer."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for session_id in await self._renders.stop():
            await self._render_quietly(session_id, self._following.path(session_id))
        await self._run(self.past.stop)
        await self._run(self.keeper.close)
        self._pool.shutdown(wait=False)

    def live_sessions(self) -> Collection[str]:
        """Sessions whose transcript grew within the idle time."""
        return self._following.since(time.monotonic() - self.settings.idle_seconds)

    # -- hooks ---------------------------------------------------------------------------------------------

    async def hook(self, client: str, event: str, payload: HookInput, env: HookEnv) -> bytes:
        """Take one hook event in; the bytes are what its hook prints."""
        until = time.monotonic() + env.budget_ms / 1000 - _ON_ITS_WAY if env.budget_ms else float("inf")
        if not self.settings.enabled or not payload.session_id or is_excluded(self.settings, payload.cwd):
            return b""
        answer = self._answers().get((event, payload.source or "")) or self._answers().get((event, ""))
        if answer is None:
            return b""
        if payload.agent_id is not None and event in ("PreCompact", "SessionStart", "PostCompact"):
            return b""
        if payload.transcript_path:
            self._following.follow(payload.session_id, Path(payload.transcript_path))
        home = env.user_home or os.environ.get("HOME", "")
        self.past.saw_hook(client_root(client, env.config_dir or os.environ.get("CLAUDE_CONFIG_DIR", ""), home))
        if env.spooled and event not in ("Stop", "SessionEnd"):
            answer = self._seen  # nobody reads the answer, so nothing may be handed over or sealed
        caller = Caller(payload.session_id, _path(payload), payload.cwd, env.request, until)
        try:
            text = await answer(payload, caller)
        except EndlessError as error:
            if error.code != "forgotten":
                raise
            return b""
        return b"" if env.spooled else text.encode("utf-8", "replace")

    def _answers(self) -> dict[tuple[str, str], Callable[[HookInput, Caller], Awaitable[str]]]:
        return {
            ("SessionStart", "compact"): self._compacted,
            ("SessionStart", "resume"): self._resumed,
            ("SessionStart", "startup"): self._started,
            ("UserPromptSubmit", ""): self._prompted,
            ("PreCompact", ""): self._compacting,
            ("PostCompact", ""): self._over,
            ("Stop", ""): self._stopped,
            ("SessionEnd", ""): self._ended,
        }

    async def _compacted(self, _: HookInput, caller: Caller) -> str:
        return await self._run(lambda: self.keeper.after_compaction(caller))

    async def _resumed(self, _: HookInput, caller: Caller) -> str:
        return await self._run(lambda: self.keeper.at_resume(caller))

    async def _prompted(self, _: HookInput, caller: Caller) -> str:
        live = self._following.get(caller.session_id)
        if live is not None:
            over, live.compacted, live.resting = live.compacted, False, False
            if over:
                await self._use(lambda desk: desk.tail_to_the_boundary(caller.session_id, caller.path))
        taken = await self._taken_up(caller, "UserPromptSubmit")
        return taken or await self._run(lambda: self.keeper.at_prompt(caller))

    async def _taken_up(self, caller: Caller, event: str) -> str:
        return await self._use(lambda desk: resume.claim(desk, caller.session_id, event))

    async def _started(self, _: HookInput, caller: Caller) -> str:
        """The handoff of the session this one goes on from; else what happened lately in the project."""
        taken = await self._taken_up(caller, "SessionStart:startup")
        return taken or await self._use(lambda desk: desk.at_startup(caller))

    async def _compacting(self, payload: HookInput, caller: Caller) -> str:
        """Seal. What is printed goes into the summariser's prompt, so that is nothing, or one line if the user asks."""
        if live := self._following.get(caller.session_id):
            live.resting = False  # the handoff names lines of the bottle as it will be sealed
        timeout, manual = self.settings.seal_timeout_ms, payload.trigger == "manual"
        sealed = await self._seal(caller.session_id, caller.path, timeout, manual=manual)
        if sealed is None or not self.settings.precompact_line:
            return ""
        return f"Keep this line in the summary: the full record of this session is the file {sealed.path}"

    async def _over(self, payload: HookInput, caller: Caller) -> str:
        """A compaction is over. When no SessionStart came, its handoff is due at the next prompt."""
        if live := self._following.get(caller.session_id):
            live.compacted = True
        return await self._seen(payload, caller)

    async def _seen(self, _: HookInput, caller: Caller) -> str:
        await self._use(lambda desk: desk.tail(caller.session_id, caller.path))
        return ""

    async def _stopped(self, _: HookInput, caller: Caller) -> str:
        if caller.path is not None:
            self._renders.queue(caller.session_id, caller.path)
        if live := self._following.get(caller.session_id):
            live.resting = True
        return ""

    async def _ended(self, payload: HookInput, caller: Caller) -> str:
        if payload.reason == "clear":
            await self._renders.take_back(caller.session_id)
            await self._use(lambda desk: self._clear(desk, caller))
        elif caller.path is not None:
            self._renders.queue(caller.session_id, caller.path)
        self._following.leave(caller.session_id)
        await self._use(lambda desk: desk.ended(caller.session_id, payload.reason or ""))
        return ""

    def _clear(self, desk: Desk, caller: Caller) -> None:
        try:
            self._render(desk, caller.session_id, caller.path)
        except OSError as error:
            self._complain("render_failed", caller.session_id, error)
        desk.archive(caller.session_id)

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
        path = (
            Path(request.transcript_path)
            if request.transcript_path
            else self._following.path(request.content_session_id)
        )
        if not request.wait:
            self._renders.queue(request.content_session_id, path)
            return RenderAnswer(True)
        bottle = await self._use(lambda desk: self._render(desk, request.content_session_id, path))
        if bottle is None:
            raise BadRequest(
                "nothing_to_render", "Nothing is known of this session.", "Give its transcript's path.", status=404
            )
        return RenderAnswer(False, str(bottle.path), bottle.mode)

    async def drain_status(self, session_id: str) -> DrainStatus:
        """How many events are without observation."""

        def ask(desk: Desk) -> dict[str, int]:
            rows = desk.store.read(
                lambda db: db.execute(
                    "SELECT state, count(*) FROM tool_events e JOIN sessions s ON s.id = e.session_id"
                    " WHERE content_session_id = ? AND state IN ('pending', 'claimed') GROUP BY state",
                    (session_id,),
                ).fetchall()
            )
            return {state: int(count) for state, count in rows}

        waiting = await self._use(ask)
        pending, claimed = waiting.get("pending", 0), waiting.get("claimed", 0)
        return DrainStatus(session_id, pending + claimed == 0, pending, claimed, claimed > 0)

    # -- past sessions -------------------------------------------------------------------------------------

    async def import_from(self, root: Path) -> ImportStatus:
        """Begin to import everything under a configuration directory."""
        return self.past.import_from(root)

    async def import_status(self) -> ImportStatus:
        """How far that import is."""
        return self.past.status()

    async def index(self, seconds: float) -> int:
        """Bring the full-text index up to date."""
        return await self._run(lambda: self.past.index(seconds))

    async def forget(self, request: ForgetRequest) -> Forgot:
        """Forget; a session that is forgotten is followed no longer."""
        found = await self._run(lambda: self.past.forget(request.selection, dry_run=request.dry_run, now=request.now))
        for one in found.sessions:
            if one.whole and not request.dry_run:
                self._following.leave(one.session)
        return found

    async def resume(self, session_id: str, root: Path | None) -> Resumed:
        """Let a session's handoff wait for a new session."""
        return await self._run(lambda: self.past.resume(session_id, root))

    def at_work(self) -> bool:
        """Whether an import or the like goes on."""
        return self.past.at_work()

    # -- seal and render -----------------------------------------------------------------------------------

    async def _seal(self, session_id: str, path: Path | None, timeout_ms: int, *, manual: bool) -> Bottle | None:
        await self._run(lambda: self.keeper.bring_back(session_id))
        at, before = await self._use(partial(_look, session_id=session_id, path=path))
        if not manual and await self._use(lambda desk: desk.in_subagent(at)):
            return None
        if at.gen == 0:
            return None
        await self._drained(at, timeout_ms / 1000)
        sealed = await self._use(lambda desk: desk.seal(desk.row(session_id), before))
        self._log.write("sealed", session=session_id, count=sealed.gap)
        return sealed.bottle

    async def _drained(self, at: SessionRow, timeout: float) -> None:
        if self.slow is None:
            return
        observer, session_id = self.slow, at.content_session_id

        def waiting() -> int:
            return self.keeper.use(lambda desk: desk.gap(at))

        await self.drains.wait(session_id, waiting, lambda: observer.standing_still(session_id), timeout)

    async def _render_quietly(self, session_id: str, path: Path | None) -> None:
        try:
            await self._use(lambda desk: self._render(desk, session_id, path))
        except Exception as error:
            self._failed("render_failed", session_id, error)

    def _failed(self, name: str, session_id: str, error: Exception) -> None:
        """Work for a live session failed; one that was forgotten is followed no longer."""
        if isinstance(error, EndlessError) and error.code == "forgotten":
            self._following.leave(session_id)
        else:
            self._complain(name, session_id, error)

    def _render(self, desk: Desk, session_id: str, path: Path | None) -> Bottle | None:
        at = desk.tail(session_id, path)
        return desk.render(at) if desk.holds_something(at) else None

    # -- following -----------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL)
            try:
                await self._run(self.keeper.look_after)
            except Exception as error:
                self._complain("store_not_looked_after", "", error)
            for session_id in self._following.grown():
                live = self._following.get(session_id)
                if live is not None:
                    await self._tail(session_id, live)

    async def _tail(self, session_id: str, live: Live) -> None:
        try:
            at = await self._use(lambda desk: desk.tail(session_id, live.path))
            self.drains.changed(session_id)
            if live.resting and not await self._use(lambda desk: desk.is_rendered(at)):
                self._renders.queue(session_id, live.path)
        except Exception as error:
            live.size = -1  # it is looked at again
            self._failed("tail_failed", session_id, error)

    def _complain(self, name: str, session: str, error: BaseException) -> None:
        self._log.write(name, level="error", session=session, error=error)

    async def _use(self, work: Callable[[Desk], T]) -> T:
        """Do work with the desk on a thread."""
        return await self._run(lambda: self.keeper.use(work))

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _spawn(self, coroutine: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _look(desk: Desk, session_id: str, path: Path | None) -> tuple[SessionRow, int]:
    """A session at the beginning of its seal, and how many handoffs it has had by then."""
    before = desk.handed(desk.row(session_id))
    return desk.tail_to_the_end(session_id, path), before


def _path(payload: HookInput) -> Path | None:
    return Path(payload.transcript_path) if payload.transcript_path else None


def factory(home: Home, settings: Settings) -> LiveService:
    """The product's service, with the default observer."""
    return LiveService(home, settings)
