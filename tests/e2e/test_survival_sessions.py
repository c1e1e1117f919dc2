"""Sessions that branch, end and come back: subagents, /clear, resume, kill -9, fork, queued prompts, rewind."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from .answers import agent, bash, call, say
from .client import Client
from .home import wait_until
from .messages_api import MessagesApi
from .plan import handoffs_in
from .recorded import Request
from .surviving import Plan, Surviving, surviving

pytestmark = pytest.mark.e2e


@pytest.fixture
def us(client: Client, api: MessagesApi, endless_bin: Path) -> Iterator[Surviving]:
    with surviving(client, api, endless_bin) as found:
        yield found


def compacted(us: Surviving, api: MessagesApi, prompt: str = "Count the herons", end: str = "Seventeen herons.") -> str:
    """A session that compacted once, got its handoff and followed it; its id."""
    api.script([call(bash("echo one")), call(bash("echo two")).full(), Plan(), say(end)])
    result = us.client.run(prompt)
    assert result.text == end, result.stderr
    us.once(api.after_compaction(), prompt)
    wait_until(lambda: end in us.bottle(result.session_id), what="the bottle after the end")
    return result.session_id


def test_a_subagents_compaction_hands_nothing_over(us: Surviving, api: MessagesApi) -> None:
    """The subagent is in the foreground in 2.1.197, in the background in 2.1.332."""
    done = threading.Event()

    def last(request: Request) -> object:
        done.set()
        return say("Nine herons.")

    work = [call(bash("echo one")), call(bash("echo two")), call(bash("echo three")).full()]
    api.script_subagents([*work, last])  # type: ignore[list-item]
    api.script([call(bash("echo begin")), call(agent("Count the herons at the lake"))])
    api.otherwise = say("They are counted.")
    with us.client.start("Send somebody to the lake") as running:
        assert done.wait(20), "the subagent's end"
        result = running.wait()
    assert result.text == "They are counted.", result.stderr
    assert len(api.summariser) == 1
    assert all(handoffs_in(request) == [] for request in api.requests)
    seen = len(api.main)
    plan = Plan()
    api.script([call(bash("echo three")).full(), plan, say("Through.")])
    again = us.client.run("Now the storks", resume=result.session_id)
    assert again.text == "Through.", again.stderr
    assert handoffs_in(api.main[seen]) == []
    assert len(api.summariser) == 2
    us.once(api.after_compaction(1), "Now the storks")
    assert "Send somebody to the lake" in plan.got(api.main[-1])


def test_clear_archives_and_hands_nothing_over(us: Surviving, api: MessagesApi, terminal: None) -> None:
    api.script([say("Seventeen herons."), say("A new beginning.")])
    with us.client.tui() as tui:
        tui.ready().enter("count the herons")
        tui.answered("Seventeen herons.")
        (old,) = us.home.transcripts()
        wait_until(lambda: us.bottle(old.stem), what="the bottle")
        tui.enter("/clear")
        archived = us.root / "bottles/archive"
        wait_until(lambda: list(archived.glob(f"*-{old.stem}.md")), what="the archived bottle")
        tui.ready().enter("what now?")
        tui.answered("A new beginning.")
        tui.leave()
    assert us.bottle(old.stem) == ""
    assert "Seventeen herons." in next(archived.glob(f"*-{old.stem}.md")).read_text()
    assert all(handoffs_in(request) == [] for request in api.requests)


@pytest.mark.parametrize("way", ["resume", "continue"])
def test_an_intact_resume_gets_nothing_twice(us: Surviving, api: MessagesApi, way: str) -> None:
    session = compacted(us, api)
    seen = len(api.main)
    api.script([say("Of the herons."), say("Still of them.")])
    how = {"resume": session} if way == "resume" else {"proceed": True}
    result = us.client.run("What was it about?", **how)
    assert (result.text, result.session_id) == ("Of the herons.", session)
    us.once(api.main[seen], "Count the herons")
    us.client.run("And now?", **how)
    us.once(api.main[seen + 1], "Count the herons")


def test_killed_in_a_tool_and_resumed(us: Surviving, api: MessagesApi) -> None:
    started = us.home.root / "started"
    us.home.allow("Bash")
    api.script(
        [
            call(bash("echo one")),
            call(bash("echo two")).full(),
            Plan(),
            call(bash(f"touch {started}; while [ -e {started} ]; do sleep 0.1; done")),
        ]
    )
    with us.client.start("Count the herons") as running:
        wait_until(started.exists, 20, "the tool's start")
        (transcript,) = us.home.transcripts()
        wait_until(lambda: "while [ -e" in transcript.read_text(), 5, "the call's line")
        running.kill9()
    started.unlink()
    seen, plan = len(api.main), Plan()
    api.script([call(bash("echo three")), call(bash("echo four")).full(), plan, say("Through.")])
    result = us.client.run("Go on", resume=transcript.stem)
    assert result.text == "Through.", result.stderr
    us.once(api.main[seen], "Count the herons")
    us.once(api.after_compaction(1), "Go on")
    record = plan.got(api.main[-1])
    assert "Count the herons" in record and "while [ -e" in record


def test_killed_before_the_first_request_after_a_compaction(us: Surviving, api: MessagesApi) -> None:
    """The handoff was printed, but no line of it or of the boundary need be in the file yet.

    Without a boundary the context is as full as before, so the client compacts again by itself.
    """
    never = threading.Event()
    api.script([call(bash("echo one")), call(bash("echo two")).full(), say("Lost.").held(never)])
    with us.client.start("Count the herons") as running:
        api.wait(lambda api: len(api.main) == 3)
        running.kill9()
    (transcript,) = us.home.transcripts()
    seen = len(api.main)
    api.script([say("Of the herons.")])
    assert us.client.run("What was it about?", resume=transcript.stem).text == "Of the herons."
    us.once(api.main[seen], "Count the herons")


def test_a_fork_holds_the_parents_handoff_once(us: Surviving, api: MessagesApi) -> None:
    session = compacted(us, api)
    before = us.bottle(session)
    seen, plan = len(api.main), Plan()
    api.script([say("Of the herons."), call(bash("echo three")), call(bash("echo four")).full(), plan, say("Through.")])
    fork = us.client.run("What was it about?", resume=session, fork=True)
    assert fork.session_id != session
    us.once(api.main[seen], "Count the herons")
    again = us.client.run("Now the storks", resume=fork.session_id)
    assert again.text == "Through.", again.stderr
    us.once(api.main[seen + 1], "Count the herons")
    handoff = us.once(api.after_compaction(1), "Now the storks", fork.session_id)
    assert session not in handoff
    assert "Seventeen herons." in plan.got(api.main[-1])
    assert us.bottle(session).partition("rendered:")[0] == before.partition("rendered:")[0]
    assert "Now the storks" not in us.bottle(session)


def test_a_fork_of_a_session_that_never_compacted_gets_nothing(us: Surviving, api: MessagesApi) -> None:
    api.script([say("Noted."), say("The heron.")])
    first = us.client.run("Remember the heron")
    fork = us.client.run("What was it?", resume=first.session_id, fork=True)
    assert fork.text == "The heron."
    assert all(handoffs_in(request) == [] for request in api.requests)


def test_a_prompt_queued_across_a_compaction_is_kept(us: Surviving, api: MessagesApi) -> None:
    go, plan = threading.Event(), Plan()
    with us.client.stream() as stream:
        api.script([call(bash("echo one")), call(bash("echo two")).full().held(go), plan])
        api.otherwise = say("All counted.")
        stream.send("Count the herons")
        api.wait(lambda api: len(api.main) == 2)
        stream.send("And the storks, too")
        queued = '"operation":"enqueue"'
        wait_until(lambda: us.home.transcripts()[0].read_text().count(queued) == 2, 10, "the queued prompt's line")
        go.set()
        stream.wait_event(lambda event: event.get("type") == "result")
        api.wait(lambda api: any("And the storks, too" in request.conversation for request in api.main))
        session = stream.session_id
        stream.finish()
    us.once(api.after_compaction(), "Count the herons")
    plan.got(api.main_after(api.after_compaction())[0])
    assert all(len(handoffs_in(request)) == 1 for request in api.main_after(api.summariser[0]))
    talk = wait_until(lambda: "All counted." in us.bottle(session) and us.bottle(session))
    talk = talk.partition("## Where things stand")[0]
    assert talk.count("And the storks, too") == 1


def test_a_rewound_prompt_is_not_in_the_record(us: Surviving, api: MessagesApi, terminal: None) -> None:
    plan = Plan()
    api.script([say("Seventeen herons."), say("Two storks.")])
    with us.client.tui() as tui:
        tui.ready().enter("count the herons")
        tui.answered("Seventeen herons.")
        tui.enter("count the storks")
        tui.answered("Two storks.")
        (transcript,) = us.home.transcripts()
        wait_until(lambda: "Two storks." in us.bottle(transcript.stem), what="the end of the turn")
        tui.ready()
        tui.keys("Escape")
        tui.keys("Escape")
        tui.wait_for("❯ (current)")
        tui.keys("Up")
        wait_until(lambda: "❯ (current)" not in (shown := tui.screen) and "(current)" in shown, what="the choice")
        tui.keys("Enter")
        tui.wait_for("Restore conversation")
        tui.keys("Enter")
        wait_until(lambda: "Two storks." not in (shown := tui.screen) and "count the storks" in shown, what="rewound")

        def cleared() -> bool:
            tui.keys("C-u")
            return "count the storks" not in tui.screen

        wait_until(cleared, what="an empty prompt")
        api.script([call(bash("echo cranes")), call(bash("echo more")).full(), plan, say("Nine cranes.")])
        tui.enter("count the cranes instead")
        tui.wait_for("Nine cranes.", 25)
        tui.leave()
    handoff = us.once(api.after_compaction(), "count the cranes instead")
    record = plan.got(api.main[-1])
    assert "count the herons" in record and "count the storks" not in record + handoff


def test_three_sessions_at_once_in_one_folder(us: Surviving, api: MessagesApi) -> None:
    """Each gets the handoff of its own work; the API tells them apart by what they were asked."""
    # A session that starts later would be told of the others' requests, by which they are told apart here.
    us.home.extra_env["CLAUDE_MEM_ENDLESS_TIMELINE"] = "off"
    birds = ["herons", "storks", "cranes"]
    plans = {bird: Plan() for bird in birds}
    asked = dict.fromkeys(birds, 0)

    def model(request: Request) -> object:
        bird = next(bird for bird in birds if f"count the {bird}" in request.conversation)
        asked[bird] += 1
        if asked[bird] <= 2:
            answer = call(bash(f"echo {bird} {asked[bird]}"))
            return answer.full() if asked[bird] == 2 else answer
        return plans[bird](request) or say(f"All {bird} counted.")

    api.script(model)  # type: ignore[arg-type]
    running = [us.client.start(f"Please count the {bird}") for bird in birds]
    results = [one.wait() for one in running]
    assert [result.text for result in results] == [f"All {bird} counted." for bird in birds]
    assert len(api.summariser) == 3
    for bird, result in zip(birds, results, strict=True):
        mine = [request for request in api.main if f"count the {bird}" in request.conversation]
        assert [len(handoffs_in(request)) for request in mine] == [0, 0, 1, 1]
        us.once(mine[2], f"count the {bird}", result.session_id)
        assert f"echo {bird} 1" in plans[bird].got(mine[3])
    assert len({result.session_id for result in results}) == 3


def test_in_a_git_worktree(us: Surviving, api: MessagesApi) -> None:
    git = "git -c user.name=u -c user.email=u@example.org"
    made = us.home.command(
        ["sh", "-c", f"git init -q . && {git} commit -q --allow-empty -m begin && git worktree add -q tree -b tree"]
    )
    assert made.returncode == 0, made.stderr
    us.home.project = us.home.project / "tree"
    state = json.loads((us.home.home / ".claude.json").read_text())
    state["projects"][str(us.home.project)] = {"hasTrustDialogAccepted": True}
    (us.home.home / ".claude.json").write_text(json.dumps(state))
    compacted(us, api)
    assert [len(handoffs_in(request)) for request in api.main] == [0, 0, 1, 1]
