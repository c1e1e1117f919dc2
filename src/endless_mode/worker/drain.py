"""Waiting until every tool event of a session has its observation.

Drained = no event of the session is pending or claimed: one count over rows, so it survives a restart. The wait
wakes on every change, looks again at least every 250 ms, and has a hard deadline. An observer that does not run while
work is pending is believed dead only when two further looks and half a second have not found it running, because an
event is stored a moment before its observer starts.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

#: Longest time between two looks, in seconds.
TICK = 0.25
#: How long an observer may stand still before it is believed dead; two ticks and what a clock rounds off.
GRACE = 2 * TICK - 0.01


class Drains:
    """Wakes those who wait for a session's drain."""

    def __init__(self) -> None:
        self._changed: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def changed(self, session_id: str) -> None:
        """Something was confirmed, released or added for this session; call on the event loop."""
        if session_id in self._changed:
            self._changed.pop(session_id).set()

    async def wait(self, session_id: str, pending: Callable[[], int], dead: Callable[[], bool], timeout: float) -> int:
        """Wait for the drain; return how many events are still without observation (0 = drained).

        ``pending`` counts them, ``dead`` says whether the observer stands still with work left; both are called on
        the event loop and must not block.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        suspected, since = 0, 0.0
        while (left := pending()) > 0:
            now = loop.time()
            suspected = suspected + 1 if dead() else 0
            since = now if suspected == 1 else since
            remaining = deadline - now
            if remaining <= 0 or (suspected >= 3 and now - since >= GRACE):
                return left
            event = self._changed[session_id]
            try:
                await asyncio.wait_for(event.wait(), min(TICK, remaining))
            except TimeoutError:
                continue
        return 0
