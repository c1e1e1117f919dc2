"""A session survives its compactions: automatic, typed, reactive, several in a row, with hooks or worker gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from .answers import bash, call, prompt_too_long, say
from .client import Client
from .home import wait_until
from .messages_api import MessagesApi
from .plan import handoffs_in
from .surviving import Plan, Surviving, surviving

pytestmark = pytest.mark.e2e


@pytest.fixture
def us(client: Client, api: MessagesApi, endless_bin: Path) -> Iterator[Surviving]:
    with surviving(client, api, endless_bin) as found:
        yield found


def test_automatic_in_mid_turn(us: Surviving, api: MessagesApi) -> None:
    plan = Plan()
    api.script([call(bash("echo one")), call(bash("echo two")).full(), plan, call(bash("echo three")), say("Through.")])
    result = us.client.run("Count the herons until full")
    assert result.text == "Through.", result.stderr
    handoff = us.once(api.after_compaction(), "Count the herons until full", result.session_id)
    assert "endless show" in handoff
    record = plan.got(api.main[-2])
    assert "Count the herons until full" in record and "echo one" in record and "echo two" in record
    assert [len(handoffs_in(request)) for request in api.main] == [0, 0, 1, 1, 1]
    assert len(api.summariser) == 1
    wait_until(lambda: "Through." in us.bottle(result.session_id), what="the bottle after the end")


def test_automatic_between_turns(us: Surviving, api: MessagesApi) -> None:
    plan = Plan()
    with us.client.stream() as stream:
        api.script([call(bash("echo one")), say("Seventeen herons.").full()])
        stream.ask("Count the herons")
        api.script([plan, say("No storks.")])
        assert stream.ask("And the storks?")["result"] == "No storks."
        api.script([say("You are welcome.")])
        stream.ask("Thank you")
        stream.finish()
    us.once(api.after_compaction(), "Seventeen herons.")
    record = plan.got(api.main[3])
    assert "Count the herons" in record and "Seventeen herons." in record
    assert [len(handoffs_in(request)) for request in api.main] == [0, 0, 1, 1, 1]


def test_typed_into_the_terminal(us: Surviving, api: MessagesApi, terminal: None) -> None:
    plan = Plan()
    api.script([call(bash("echo one")), say("Seventeen herons."), say("Two storks."), plan, say("Nine cranes.")])
    with us.client.tui() as tui:
        tui.ready().enter("count the herons")
        tui.answered("Seventeen herons.")
        tui.enter("count the storks")
        tui.answered("Two storks.")
        tui.enter("/compact keep it short")
        tui.wait_for("Compacted")
        tui.enter("count the cranes")
        tui.answered("Nine cranes.")
        tui.leave()
    assert len(api.summariser) == 1
    us.once(api.after_compaction(), "count the storks", "Two storks.")
    record = plan.got(api.main[-1])
    assert all(said in record for said in ("count the herons", "Seventeen herons.", "count the storks"))


def test_typed_into_a_stream(us: Surviving, api: MessagesApi) -> None:
    plan = Plan()
    with us.client.stream() as stream:
        api.script([call(bash("echo one")), say("Seventeen herons."), say("Two storks.")])
        stream.ask("count the herons")
        stream.ask("count the storks")
        stream.ask("/compact keep it short")
        api.script([plan, say("Nine cranes.")])
        assert stream.ask("count the cranes")["result"] == "Nine cranes."
        stream.finish()
    assert len(api.summariser) == 1
    us.once(api.after_compaction(), "count the storks", "Two storks.")
    assert "Seventeen herons." in plan.got(api.main[-1])


def test_three_in_one_process(us: Surviving, api: MessagesApi) -> None:
    plans = [Plan(), Plan(), Plan()]
    birds = ["herons", "storks", "cranes"]
    with us.client.stream() as stream:
        for plan, bird in zip(plans, birds, strict=True):
            api.script([call(bash(f"echo {bird}")), call(bash("echo more")).full(), plan, say(f"All {bird} counted.")])
            assert stream.ask(f"Count the {bird}")["result"] == f"All {bird} counted."
        api.script([say("Good bye.")])
        stream.ask("Thank you")
        session = stream.session_id
        stream.finish()
    assert len(api.summariser) == 3
    for number, bird in enumerate(birds):
        after = api.after_compaction(number)
        us.once(after, f"Count the {bird}")
        record = plans[number].got(api.main_after(after)[0])
        assert all(f"Count the {known}" in record for known in birds[: number + 1])
        assert all(f"All {known} counted." in record for known in birds[:number])
    assert len(handoffs_in(api.main[-1])) == 1
    wait_until(lambda: f"All {birds[-1]} counted." in us.bottle(session), 20)
    whole = us.bottle(session)
    assert all(whole.partition("## Where things stand")[0].count(f"All {bird} counted.") == 1 for bird in birds)


def test_two_in_one_turn(us: Surviving, api: MessagesApi) -> None:
    first, second = Plan(), Plan()
    work = [call(bash(f"echo bird {n}")) for n in range(8)]
    steps = [*work, call(bash("echo full")).full(), first, *work, call(bash("echo full again")).full(), second]
    api.script([*steps, say("Through.")])
    result = us.client.run("Count all birds", seconds=60)
    assert result.text == "Through.", result.stderr
    assert len(api.summariser) == 2
    us.once(api.after_compaction(0), "Count all birds")
    us.once(api.after_compaction(1), "Count all birds")
    assert "echo bird 7" in second.got(api.main[-1])


def test_because_the_api_says_too_long(us: Surviving, api: MessagesApi) -> None:
    plan = Plan()
    api.script([call(bash("echo one")), call(bash("echo two")), prompt_too_long(), plan, say("Through.")])
    result = us.client.run("Work until too long")
    assert result.text == "Through.", result.stderr
    us.once(api.after_compaction(), "Work until too long")
    assert "echo one" in plan.got(api.main[-1])


def test_without_the_precompact_hook(us: Surviving, api: MessagesApi) -> None:
    us.remove_hook("PreCompact")
    plan = Plan()
    api.script([call(bash("echo one")), call(bash("echo two")).full(), plan, say("Through.")])
    result = us.client.run("Count the herons")
    assert result.text == "Through.", result.stderr
    us.once(api.after_compaction(), "Count the herons")
    assert "echo one" in plan.got(api.main[-1])


def test_without_the_session_start_hook_the_next_prompt_brings_it(us: Surviving, api: MessagesApi) -> None:
    us.remove_hook("SessionStart")
    plan = Plan()
    with us.client.stream() as stream:
        api.script([call(bash("echo one")), call(bash("echo two")).full(), say("Seventeen herons.")])
        stream.ask("Count the herons")
        assert handoffs_in(api.main[-1]) == []
        api.script([plan, say("No storks."), say("You are welcome.")])
        stream.ask("And the storks?")
        us.once(api.main[3], "Seventeen herons.")
        assert "Count the herons" in plan.got(api.main[-1])
        stream.ask("Thank you")
        us.once(api.main[-1])
        stream.finish()


def test_a_worker_killed_while_the_summary_is_written(us: Surviving, api: MessagesApi) -> None:
    plan, written = Plan(), threading.Event()
    api.summary = say("<summary>\nThe work goes on.\n</summary>").held(written)
    api.script([call(bash("echo one")), call(bash("echo two")).full(), plan, say("Through.")])
    with us.client.start("Count the herons") as running:
        api.wait(lambda api: len(api.summariser) == 1)
        us.kill_worker()
        written.set()
        result = running.wait()
    assert result.text == "Through.", result.stderr
    us.once(api.after_compaction(), "Count the herons")
    assert "echo two" in plan.got(api.main[-1])


def test_a_worker_killed_before_the_compaction(us: Surviving, api: MessagesApi) -> None:
    plan, ready = Plan(), threading.Event()
    api.script([call(bash("echo one")), call(bash("echo two")).full().held(ready), plan, say("Through.")])
    with us.client.start("Count the herons") as running:
        api.wait(lambda api: len(api.main) == 2)
        killed = us.kill_worker()
        ready.set()
        result = running.wait()
    assert result.text == "Through.", result.stderr
    us.once(api.after_compaction(), "Count the herons")
    assert "echo two" in plan.got(api.main[-1])
    assert wait_until(us.worker, 10, "a new worker") != killed
