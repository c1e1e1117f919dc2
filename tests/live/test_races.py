"""Many hooks at once, and a worker that dies among them: one handoff per boundary.

``ENDLESS_RACE_ROUNDS`` sets the number of rounds; the whole proof is 200.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from endless_mode.errors import EndlessError
from tests.live.parts import Living, Session
from tests.live.transcript import marker_of
from tests.processes import eventually

ROUNDS = int(os.environ.get("ENDLESS_RACE_ROUNDS", "12"))
AT_ONCE = 64


def burst(living: Living, s: Session, pool: ThreadPoolExecutor, number: int, kill: bool) -> set[str]:
    """Fire SessionStart(compact) from all threads at once; the markers of the handoffs that came back.

    Each behaves as the hook does: an answer that breaks off is asked for again, under the same name.
    """
    payload, barrier = s.payload("SessionStart", source="compact"), Barrier(AT_ONCE + 1)

    def fire(n: int) -> str:
        headers = {"X-Endless-User-Home": str(living.root), "X-Endless-Request": f"{number}-{n}"}
        barrier.wait()
        return eventually(lambda: _answer(living, payload, headers))[0]  # type: ignore[no-any-return]

    jobs = [pool.submit(fire, n) for n in range(AT_ONCE)]
    barrier.wait()
    if kill:
        living.kill()
        living.start()
    printed = [job.result(60) for job in jobs]
    return {marker for marker in map(marker_of, printed) if marker}


def _answer(living: Living, payload: bytes, headers: dict[str, str]) -> list[str]:
    """The answer in a list of one, or an empty list while there is none."""
    try:
        return [living.client.hook("claude-code", "SessionStart", payload, headers).decode()]
    except EndlessError:
        return []


def rounds(living: Living, count: int, kill_every: int) -> None:
    living.start()
    s = living.direct(living.session())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number in range(count):
            s.t.turn(f"thing {number}")
            if number % 3:
                s.pre_compact()
            kill = bool(kill_every) and number % kill_every == 0
            markers = burst(living, s, pool, number, kill)
            assert len(markers) == 1, (number, kill, markers)
            s.t.boundary()
            assert marker_of(s.prompt_hook()) == ""
    bound = living.rows("SELECT count(*), count(DISTINCT boundary_key) FROM deliveries WHERE consumed_at IS NOT NULL")
    assert bound == [(count, count)]


def test_of_64_hooks_at_once_one_hands_over(living: Living) -> None:
    rounds(living, ROUNDS, kill_every=0)


def test_of_64_hooks_across_a_killed_worker_one_hands_over(living: Living) -> None:
    rounds(living, max(4, ROUNDS // 2), kill_every=1)
