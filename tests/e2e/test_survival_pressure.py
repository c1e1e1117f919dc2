"""A small window and a long talk: with us the client compacts no more often than without us."""

from __future__ import annotations

from pathlib import Path

import pytest

from .answers import Answer, bash, call, say
from .client import Client
from .home import Home, wait_until
from .messages_api import MessagesApi
from .plan import handoffs_in
from .recorded import Request
from .surviving import Plan, surviving
from .wire import tokens_of

pytestmark = pytest.mark.e2e

WINDOW = 100_000
SIZE = 16_000


def long_talk(client: Client, api: MessagesApi, turns: int, plan: Plan) -> None:
    """Turns of three long texts each: a prompt, a command's output, an answer. Usage is what was really sent."""
    with client.stream() as stream:
        for number in range(turns):
            work = [call(bash(f"echo '{words('output', number)}'")), say(words("answer", number))]

            def model(request: Request, work: list[Answer] = work) -> Answer | None:
                return plan(request) or (work.pop(0) if work else None)

            api.script(model)
            stream.ask(words("prompt", number))
            assert work == []
        stream.finish()


def words(kind: str, number: int) -> str:
    """A long text that no summary would keep."""
    return " ".join(f"{kind} {number}.{n}.{n * 7919 % 10007}" for n in range(SIZE // 20))


def test_a_small_window_compacts_no_more_often_than_without_us(
    client: Client, api: MessagesApi, endless_bin: Path
) -> None:
    turns, plan = 12, Plan()
    client.home.extra_env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = str(WINDOW)
    with MessagesApi() as other:
        without = Home(other.url)
        without.extra_env.update(client.home.extra_env)
        try:
            long_talk(Client(client.version, client.path, without), other, turns, Plan())
        finally:
            without.close()
        with surviving(client, api, endless_bin) as us:
            long_talk(us.client, api, turns, plan)
            (transcript,) = us.home.transcripts()
            wait_until(lambda: len(us.bottle(transcript.stem)) > 20 * SIZE, what="a large bottle")
        assert len(other.summariser) >= 2
        assert len(api.summariser) <= len(other.summariser)
    assert len(plan.issued) >= len(api.summariser)
    for number in range(len(api.summariser)):
        after = api.main_after(api.summariser[number])
        assert [len(handoffs_in(request)) for request in after[:2]] == [1, 1]
        assert tokens_of(after[1].body) < WINDOW / 2, "reading what the handoff names leaves room to work"


def test_a_marathon_in_a_small_window_does_not_thrash(client: Client, api: MessagesApi, endless_bin: Path) -> None:
    """One turn, full after every eighth tool use: each leg gets one handoff, and the client never gives up."""
    plan = Plan()
    legs = 3
    steps: list[Answer | Plan] = []
    for leg in range(legs):
        work = [call(bash(f"echo leg {leg} step {step}")) for step in range(9)]
        steps += [*work[:-1], work[-1].full(), plan]
    with surviving(client, api, endless_bin) as us:
        api.script([*steps, say("Through.")])
        result = us.client.run("Count every bird", seconds=60)
        assert result.text == "Through.", result.stderr
        assert len(api.summariser) == legs
        for leg in range(legs):
            us.once(api.after_compaction(leg), "Count every bird")
