"""Renders that are to come soon: one per session at a time, however often it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

#: Seconds after a Stop before its render, so that the last lines are there and a burst makes one bottle.
SETTLE = 0.3
#: Name of a render's task once it renders.
_RUNNING = "rendering"

#: Renders a session's bottle from its transcript; must not raise.
Render = Callable[[str, Path | None], Awaitable[None]]


class Renders:
    """The queue, on the event loop."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    def queue(self, session_id: str, path: Path | None) -> None:
        """One render soon; asked for while one runs, one more after it."""
        queued = self._tasks.get(session_id)
        if queued is None or queued.done() or queued.get_name() == _RUNNING:
            task = asyncio.create_task(self._soon(session_id, path, queued))
            self._tasks[session_id] = task
            task.add_done_callback(lambda done: self._tasks.get(session_id) is done and self._tasks.pop(session_id))

    async def _soon(self, session_id: str, path: Path | None, before: asyncio.Task[None] | None) -> None:
        await asyncio.sleep(SETTLE)
        if before is not None:
            await asyncio.wait([before])
        task = asyncio.current_task()
        if task is not None:
            task.set_name(_RUNNING)
            self._running[session_id] = task
        try:
            await self._render(session_id, path)
        finally:
            self._running.pop(session_id, None)

    async def take_back(self, session_id: str) -> None:
        """Take back a render that is queued, wait for one that runs."""
        queued, running = self._tasks.get(session_id), self._running.get(session_id)
        if queued is not None and queued.get_name() != _RUNNING:
            queued.cancel()
        waited = {task for task in (queued, running) if task is not None}
        if waited:
            await asyncio.wait(waited)

    async def stop(self) -> list[str]:
        """End; returns the sessions whose render was still to come."""
        waiting = [session_id for session_id, task in self._tasks.items() if not task.done()]
        await self.cancel()
        return waiting

    async def cancel(self) -> None:
        """Give up everything that waits or runs."""
        tasks = [*self._tasks.values(), *self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
