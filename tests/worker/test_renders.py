"""Renders that are to come soon."""

from __future__ import annotations

import asyncio
from pathlib import Path

from endless_mode.worker import renders as module
from endless_mode.worker.renders import Renders


def test_taking_back_waits_for_the_render_that_runs_and_drops_the_one_behind_it() -> None:
    done: list[str] = []

    async def go() -> None:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def render(session_id: str, _: Path | None) -> None:
            begun.set()
            await may_end.wait()
            done.append(session_id)

        renders = Renders(render)
        renders.queue("s-1", None)
        await begun.wait()
        renders.queue("s-1", None)  # one more, behind the one that runs
        taking = asyncio.create_task(renders.take_back("s-1"))
        await asyncio.sleep(0)
        assert not taking.done()
        may_end.set()
        await taking
        assert done == ["s-1"]
        await asyncio.sleep(2 * module.SETTLE)
        assert done == ["s-1"]

    asyncio.run(go())
