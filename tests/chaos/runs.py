"""Many schedules one after the other: run, sum up, and cut a failing one down to what it takes."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.client import Client, carry_out
from tests.chaos.drivers import Inside, Outside
from tests.chaos.schedule import Action, schedule

#: Of so many schedules one goes through the real hook command and a real worker.
OUTSIDE_EVERY = 12


@dataclass
class Tally:
    """Sums over all runs. ``failed`` has, for each failing schedule, its seed, its problems and its short form."""

    runs: int = 0
    outside: int = 0
    compactions: int = 0
    handoffs: int = 0
    messages: int = 0
    hooks: int = 0
    real_hooks: int = 0
    kills: int = 0
    bad_exits: int = 0
    over_budget: list[str] = field(default_factory=list)
    failed: list[tuple[int, bool, list[str], list[Action]]] = field(default_factory=list)

    def lines(self) -> list[str]:
        problems = [problem for _, _, found, _ in self.failed for problem in found]

        def count(*words: str) -> int:
            return sum(any(word in problem for word in words) for problem in problems)

        return [
            f"runs {self.runs} ({self.outside} with real hooks and a real worker), kills -9 {self.kills}",
            f"compactions {self.compactions}, handoffs {self.handoffs}, messages {self.messages}",
            f"hooks {self.hooks} ({self.real_hooks} real processes)",
            f"lost messages {count('lost', 'twice or out of order', 'never said', 'no bottle')}",
            f"duplicate handoffs {count('times', 'without a compaction', 'under pressure')}",
            f"missing handoffs {count('was not handed over')}",
            f"non-zero exits {self.bad_exits}",
            f"hooks over budget {len(self.over_budget)} {self.over_budget[:3] or ''}",
            f"failing schedules {len(self.failed)}",
        ]


def run_one(actions: list[Action], inside: bool, tally: Tally | None = None) -> list[str]:
    """One schedule in a place of its own; what was wrong."""
    root = Path(tempfile.mkdtemp(prefix="chaos-"))
    driver: Inside | Outside = Inside(root) if inside else Outside(root)
    client = Client(driver)
    try:
        found = carry_out(client, actions)
    except Exception as error:
        found = [f"{type(error).__name__}: {error}"]
    finally:
        driver.close()
        shutil.rmtree(root, ignore_errors=True)
    if tally is not None:
        tally.runs += 1
        tally.kills += driver.kills
        tally.hooks += driver.hooks
        tally.over_budget += driver.over
        for _, account in client.sessions:
            tally.compactions += account.compactions
            tally.handoffs += account.handoffs
            tally.messages += len(account.ever)
        if isinstance(driver, Outside):
            tally.outside += 1
            tally.real_hooks += driver.hooks
            tally.bad_exits += len(driver.exits)
    return found


def shorten(actions: list[Action], fails: Callable[[list[Action]], bool], tries: int = 120) -> list[Action]:
    """A shorter schedule that still fails: halves, quarters, ... single actions left out."""
    size = max(1, len(actions) // 2)
    while tries > 0:
        start = 0
        while start < len(actions) and tries > 0:
            less = actions[:start] + actions[start + size :]
            tries -= 1
            if less and fails(less):
                actions = less
            else:
                start += size
        if size == 1:
            break
        size = max(1, size // 2)
    return actions


def run_many(
    runs: int, seed: int, *, seconds: float = float("inf"), short: bool = True, say: Callable[[str], None] = print
) -> Tally:
    """Run schedules ``seed``, ``seed + 1``, ... until their number or the time is used up."""
    tally, until = Tally(), time.monotonic() + seconds
    for number in range(seed, seed + runs):
        if time.monotonic() > until:
            break
        inside = number % OUTSIDE_EVERY != 0
        actions = schedule(number, inside)
        found = run_one(actions, inside, tally)
        if found:
            least = (
                shorten(actions, lambda a, i=inside: bool(run_one(a, i)), 120 if inside else 25) if short else actions
            )
            tally.failed.append((number, inside, found, least))
            say(f"seed {number} ({'inside' if inside else 'real'}): {found[0]}")
            if short:
                say("  " + " ".join(map(str, least)) + "\n  " + "; ".join(run_one(least, inside)))
    return tally
