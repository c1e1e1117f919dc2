"""Random schedules for as long as ``ENDLESS_CHAOS_SECONDS`` says; ``python -m tests.chaos`` runs any number."""

from __future__ import annotations

import os

import pytest

from tests.chaos.model import Account
from tests.chaos.runs import run_many, run_one, shorten
from tests.chaos.schedule import Action, schedule

SECONDS = float(os.environ.get("ENDLESS_CHAOS_SECONDS", "90"))
SEED = int(os.environ.get("ENDLESS_CHAOS_SEED", "1000"))


@pytest.mark.chaos
def test_nothing_is_lost_doubled_or_missed_in_random_schedules() -> None:
    found: list[str] = []
    tally = run_many(100_000, SEED, seconds=SECONDS, say=found.append)
    assert not tally.failed, "\n".join(found)
    assert tally.bad_exits == 0
    assert tally.runs > 0 and tally.handoffs > 0 and tally.messages > 0


def test_a_seed_gives_the_same_schedule_for_ever() -> None:
    assert schedule(7, True) == schedule(7, True) != schedule(8, True)


def test_the_account_sees_a_lost_message_and_a_second_handoff() -> None:
    account = Account("s-1")
    account.add("u", 10, "one")
    account.add("a", 20, "two")
    account.holds("here", ["one"])
    compaction = account.begin()
    account.printed("here", compaction, 1, due=True, plain=False)
    account.printed("here", compaction, 1, due=True, plain=False)
    account.printed("here", account.begin(), 0, due=True, plain=False)
    assert [problem.split(": ", 1)[1] for problem in account.problems] == [
        "lost ['two']",
        "compaction 1 was handed over 2 times",
        "compaction 2 was not handed over",
    ]


def test_a_failing_schedule_is_cut_down_to_what_it_takes() -> None:
    actions = [Action("say"), Action("bash"), Action("kill"), Action("say"), Action("restart"), Action("stop")]
    least = shorten(actions, lambda some: {"kill", "restart"} <= {action.name for action in some})
    assert [action.name for action in least] == ["kill", "restart"]


def test_one_schedule_with_real_hooks_comes_out_right() -> None:
    plain = [Action("prompt"), Action("bash"), Action("say"), Action("compact", {"kill": 0.3}), Action("prompt")]
    assert run_one(plain, inside=False) == []
