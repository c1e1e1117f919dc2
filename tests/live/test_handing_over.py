"""Exactly one handoff per boundary: the ordinary ways and the crooked ones."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import threading
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from endless_mode.bottle import session as bottle_session
from endless_mode.deliver import desk as desk_module
from endless_mode.worker.messages import HookEnv, HookInput
from tests.live.parts import Served, Session, bottle, is_handoff, served_in
from tests.live.transcript import Transcript, marker_of
from tests.processes import eventually


def again(served: Served, s: Session) -> Session:
    """The same session at another service over the same home."""
    return Session(served.send, s.t)


def test_a_compaction_is_handed_over_once(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    printed = s.compaction()
    assert is_handoff(printed) and marker_of(printed)
    assert s.prompt_hook() == "" and s.resumed() == "" and s.compacted() == ""


def test_without_pre_compact_session_start_hands_over(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    assert is_handoff(s.compaction(seal=False))
    assert s.prompt_hook() == ""


def test_without_session_start_the_next_prompt_hands_over(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    assert s.compaction(start=False) == ""
    printed = s.prompt_hook()
    assert is_handoff(printed)
    s.t.prompt("go on")
    s.t.hooked(printed, "UserPromptSubmit")
    assert s.prompt_hook() == "" and s.resumed() == ""


def test_a_boundary_written_after_the_prompt_is_waited_for(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.pre_compact()
    s.post_compact()
    late = threading.Timer(0.08, s.t.boundary)
    late.start()
    printed = s.prompt_hook()
    late.join()
    assert is_handoff(printed)
    assert s.prompt_hook() == ""


def test_a_compaction_that_never_comes_costs_the_next_prompt_alone_a_wait(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.pre_compact()
    s.post_compact()
    waits = count()
    desk_tail = served.service.keeper.desk.tail_to_the_boundary
    served.service.keeper.desk.tail_to_the_boundary = lambda *given: next(waits) or desk_tail(*given)  # type: ignore[method-assign]
    assert s.prompt_hook() == "" and s.prompt_hook() == ""
    assert next(waits) == 1


def test_what_is_written_after_a_stop_comes_into_the_bottle(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.stop_hook()
    eventually(lambda: (served.home.bottles / "s-1.md").exists() and "Done with the parser." in bottle(served.home))
    s.t.say("Written late.")
    eventually(lambda: "Written late." in bottle(served.home))


def test_a_handoff_at_rest_names_lines_that_stay(served: Served) -> None:
    """A manual compaction fires neither prompt nor Stop; what the client writes after it changes no bottle."""
    s = served.session()
    s.t.turn("the parser")
    s.stop_hook()
    eventually((served.home.bottles / "s-1.md").exists)
    s.pre_compact("manual")
    assert is_handoff(s.compacted())
    named = bottle(served.home)
    s.post_compact()
    s.t.boundary("manual")
    live = served.service._following.get("s-1")
    assert live is not None
    eventually(lambda: live.size == s.t.path.stat().st_size)
    assert not served.service._renders._tasks
    assert bottle(served.home) == named


def test_a_look_that_failed_is_taken_again(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.stop_hook()
    eventually(lambda: (served.home.bottles / "s-1.md").exists() and "Done with the parser." in bottle(served.home))
    desk = served.service.keeper.desk
    real, fails = desk.tail, count()

    def tail(*given: Any) -> Any:
        if next(fails) == 0:
            raise sqlite3.OperationalError("database is locked")
        return real(*given)

    desk.tail = tail  # type: ignore[method-assign]
    s.t.say("Written late.")
    eventually(lambda: "Written late." in bottle(served.home))
    assert next(fails) > 1


def test_a_missed_handoff_after_work_names_its_whole_plan(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.compaction(start=False)
    s.t.bash("make")
    assert "Read(file_path=" in s.prompt_hook()


def test_without_a_boundary_nothing_is_handed_over(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    assert s.prompt_hook() == "" and s.resumed() == ""


def test_a_seal_that_comes_too_late_arms_nothing(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    keeper = served.service.keeper
    at = keeper.use(lambda desk: desk.tail("s-1", s.t.path))
    before = keeper.use(lambda desk: desk.handed(at))
    assert is_handoff(s.compacted())
    keeper.use(lambda desk: desk.seal(at, before))
    assert s.compacted() == ""
    s.t.boundary()
    assert s.prompt_hook() == "" and s.compacted() == ""


def test_a_compaction_that_was_given_up_takes_nothing_from_the_next(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.pre_compact()
    assert is_handoff(s.compacted())  # and then the client dies: no boundary
    s.t.turn("the lexer")
    assert s.prompt_hook() == ""
    s.t.boundary()  # of a compaction whose hooks were all missed
    assert is_handoff(s.prompt_hook())
    s.t.turn("the printer")
    assert is_handoff(s.compaction())
    assert s.prompt_hook() == ""


def test_two_given_up_compactions_leave_a_third_its_handoff(served: Served) -> None:
    s = served.session()
    for n in range(2):
        s.t.turn(f"thing {n}")
        s.pre_compact()
        assert is_handoff(s.compacted())
    s.t.turn("the last thing")
    assert is_handoff(s.compaction())
    s.t.turn("more")
    assert s.prompt_hook() == ""
    s.compaction(start=False, seal=False)
    assert is_handoff(s.prompt_hook())


def test_a_blocked_compaction_costs_nothing(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.pre_compact()  # "Not enough messages to compact."
    assert s.prompt_hook() == ""
    s.t.turn("the lexer")
    assert is_handoff(s.compaction(seal=False))
    assert s.prompt_hook() == ""


def test_a_boundary_already_in_the_file_is_handed_over_once(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.pre_compact()
    s.t.boundary()
    assert is_handoff(s.compacted())
    assert s.compacted() == "" and s.prompt_hook() == ""


def test_a_prompt_during_a_compaction_takes_nothing_from_it(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.compaction(start=False)
    s.t.turn("the lexer")
    s.pre_compact()
    first = s.prompt_hook("<task-notification>…")
    assert is_handoff(first)  # the older boundary's
    s.t.hooked(first, "UserPromptSubmit")
    assert is_handoff(s.compacted())
    s.t.boundary()
    assert s.prompt_hook() == ""


def test_lines_written_late_do_not_make_a_second_handoff(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    before = s.t.clock()
    s.pre_compact()
    assert is_handoff(s.compacted())
    s.t.clock = lambda: before
    s.t.say("Written late.")
    assert s.compacted() == ""
    s.t.boundary()
    assert s.prompt_hook() == ""


@pytest.mark.parametrize("skew", [-7200.0, -30.0, 30.0, 7200.0])
def test_clocks_that_jump_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skew: float) -> None:
    with served_in(tmp_path) as served:
        s = served.session()
        s.t.turn("the parser")
        real = desk_module.time.time
        assert is_handoff(s.compaction())
        s.t.turn("the lexer")
        s.pre_compact()
        monkeypatch.setattr(desk_module.time, "time", lambda: real() + skew)
        s.t.clock = lambda: real() + skew
        assert is_handoff(s.compacted())
        assert s.compacted() == ""
        s.t.boundary()
        assert s.prompt_hook() == "" and s.compacted() == ""


def test_a_clock_put_right_after_the_install_leaves_boundaries_eligible(tmp_path: Path) -> None:
    with served_in(tmp_path) as served:
        s = served.session()
        (served.home.root / "installed").write_text("32503680000000\n")  # the year 3000
    with served_in(tmp_path) as served:
        s = again(served, s)
        s.t.turn("the parser")
        s.compaction(start=False)
        assert is_handoff(s.prompt_hook())


def test_two_terminals_on_one_session_get_one_handoff(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    other = again(served, s)
    s.pre_compact()
    other.prompt_hook()
    printed = s.compacted()
    assert is_handoff(printed)
    s.t.boundary()
    other.t.turn("typed in the other window")
    s.t.hooked(printed)
    assert other.prompt_hook() == "" and s.prompt_hook() == ""


def test_a_transcript_cut_after_a_handoff_gives_no_second(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.t.turn("the lexer")
    size = s.t.path.stat().st_size
    s.t.turn("cut off")
    s.pre_compact()
    printed = s.compacted()
    os.truncate(s.t.path, size)
    s.t.boundary()
    assert s.compacted() == "" and s.prompt_hook() == ""
    s.t.hooked(printed)
    assert s.prompt_hook() == ""


def test_a_transcript_replaced_by_its_copy_gives_no_second(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    printed = s.compaction(record=False)
    assert is_handoff(printed)
    copy = s.t.path.with_suffix(".copy")
    shutil.copy(s.t.path, copy)
    copy.replace(s.t.path)
    assert s.prompt_hook() == ""


# -- pressure ----------------------------------------------------------------------------------------------


def test_boundaries_with_nothing_between_get_state_only_then_nothing(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    first = s.compaction()
    assert "Read(file_path=" in first
    s.t.bash("make")
    second = s.compaction()
    assert is_handoff(second) and "Read(file_path=" not in second and "## Where things stand" in second
    s.t.bash("make")
    assert s.compaction() == ""
    assert s.prompt_hook() == ""
    s.t.turn("the lexer")
    assert "Read(file_path=" in s.compaction()


def test_a_finished_turn_between_two_boundaries_is_progress(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.compaction()
    s.t.say("That is all there is to do.")
    assert "Read(file_path=" in s.compaction()


# -- what is lost, and what proves a delivery ---------------------------------------------------------------


def without_database(served: Served) -> None:
    for part in served.home.root.glob("endless.db*"):
        part.unlink()


def test_a_rebuild_hands_over_nothing_twice(tmp_path: Path) -> None:
    with served_in(tmp_path) as served:
        s = served.session()
        s.t.turn("the parser")
        assert is_handoff(s.compaction(record=False))
        served.use(lambda db: db.execute("UPDATE transcripts SET anchor = x''"))
        assert s.prompt_hook() == ""
        assert served.rows("SELECT gen FROM transcripts")[0][0] > 1


def test_a_deleted_database_hands_over_nothing_twice(tmp_path: Path) -> None:
    with served_in(tmp_path) as served:
        s = served.session()
        s.t.turn("the parser")
        assert is_handoff(s.compaction())
        s.t.turn("the lexer")
    without_database(served)
    with served_in(tmp_path) as served:
        s = again(served, s)
        assert s.prompt_hook() == "" and s.resumed() == ""


def test_a_database_deleted_under_a_worker_is_made_anew(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    printed = s.compaction()
    without_database(served)
    eventually(served.home.database.exists)
    s.t.turn("the lexer")
    assert s.prompt_hook() == ""
    assert is_handoff(printed) and is_handoff(s.compaction())
    assert s.t.said[-1][1] in bottle(served.home)


def test_a_first_install_hands_over_no_old_boundary(tmp_path: Path) -> None:
    t = Transcript(tmp_path / ".claude/projects/p/s-1.jsonl", clock=lambda: 1_700_000_000.0)
    t.turn("the parser")
    t.boundary()
    with served_in(tmp_path) as served:
        s = Session(served.send, t)
        assert s.prompt_hook() == "" and s.resumed() == ""


def test_a_worker_that_dies_between_claim_and_print_owes_the_handoff(tmp_path: Path) -> None:
    with served_in(tmp_path) as served:
        s = served.session()
        s.t.turn("the parser")
        s.pre_compact()
        assert is_handoff(s.compacted())
        served.use(lambda db: db.execute("UPDATE deliveries SET mode = '', units = 0"))  # as a kill leaves it
    with served_in(tmp_path) as served:
        s = again(served, s)
        assert is_handoff(s.compacted())
        assert s.compacted() == ""


def test_the_same_request_again_gets_the_same_handoff(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    payload = s.payload("SessionStart", source="compact")
    name = {"X-Endless-Request": "17-42"}
    first = served.send("SessionStart", payload, **name)
    assert is_handoff(first)
    assert marker_of(served.send("SessionStart", payload, **name)) == marker_of(first)
    assert served.send("SessionStart", payload, **{"X-Endless-Request": "18-1"}) == ""


def test_an_answer_nobody_waits_for_is_owed_to_the_next_prompt(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.pre_compact()
    late = served.send("SessionStart", s.payload("SessionStart", source="compact"), **{"X-Endless-Budget-Ms": "1"})
    assert late == ""
    s.t.boundary()
    assert is_handoff(s.prompt_hook())


# -- what is not the session's own compaction ---------------------------------------------------------------


def test_a_compaction_in_a_subagent_is_left_alone(served: Served) -> None:
    s = served.session()
    s.t.prompt("Look around.")
    s.t.agent()
    inside = {"agent_id": "a1", "agent_type": "general-purpose"}
    assert s.pre_compact(**inside) == "" and s.compacted(**inside) == ""
    assert served.rows("SELECT count(*) FROM deliveries") == [(0,)]


def test_a_compaction_in_a_subagent_of_an_old_client_is_left_alone(served: Served) -> None:
    s = served.session()
    s.t.prompt("Look around.")
    s.pre_compact("manual")  # armed, and then it did not come
    use = s.t.agent()
    assert s.pre_compact() == "" and s.compacted() == ""
    s.t.result(use, "Found it.")
    s.t.say("Found.")
    assert s.prompt_hook() == ""
    assert is_handoff(s.compaction())


def test_a_fork_of_a_session_that_was_handed_over_gets_nothing(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    assert is_handoff(s.compaction(record=False))
    s.t.say("Reading on.")
    assert s.resumed() == ""  # as old clients announce a fork: the old id
    fork = Transcript(served.projects / "s-fork.jsonl", "s-fork")
    fork.raw(s.t.path.read_bytes().replace(b'"sessionId":"s-1"', b'"sessionId":"s-fork"'))
    fork.leaf = s.t.leaf
    f = Session(served.send, fork)
    fork.prompt("in the fork")
    assert f.prompt_hook() == ""
    fork.say("Yes.")
    assert is_handoff(f.compaction())
    assert s.prompt_hook() == ""


def test_a_fork_of_a_session_with_a_proof_gets_nothing_without_a_database(tmp_path: Path) -> None:
    with served_in(tmp_path) as served:
        s = served.session()
        s.t.turn("the parser")
        s.compaction()
    without_database(served)
    with served_in(tmp_path) as served:
        fork = Transcript(served.projects / "s-fork.jsonl", "s-fork")
        fork.raw(s.t.path.read_bytes().replace(b'"sessionId":"s-1"', b'"sessionId":"s-fork"'))
        fork.prompt("in the fork")
        assert Session(served.send, fork).prompt_hook() == ""


# -- resume ------------------------------------------------------------------------------------------------


def test_resume_auto_gives_only_what_was_missed(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.compaction(start=False)
    assert is_handoff(s.resumed())
    assert s.resumed() == "" and s.prompt_hook() == ""


def test_resume_gives_again_what_died_with_its_client(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    assert is_handoff(s.compaction(record=False))  # killed before the client recorded it
    assert is_handoff(s.resumed())
    assert s.resumed() == "" and s.prompt_hook() == ""


def test_resume_always_gives_it_once_per_state(tmp_path: Path) -> None:
    with served_in(tmp_path, CLAUDE_MEM_ENDLESS_RESUME="always") as served:
        s = served.session()
        s.t.turn("the parser")
        assert is_handoff(s.resumed())
        assert s.resumed() == ""
        s.t.turn("the lexer")
        assert is_handoff(s.resumed())
        assert s.prompt_hook() == ""


def test_resume_never_gives_nothing(tmp_path: Path) -> None:
    with served_in(tmp_path, CLAUDE_MEM_ENDLESS_RESUME="never") as served:
        s = served.session()
        s.t.turn("the parser")
        s.compaction(start=False)
        assert s.resumed() == ""
        assert is_handoff(s.prompt_hook())


# -- what is switched off, and what throws ------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting", [{"CLAUDE_MEM_ENDLESS_MODE_ENABLED": "false"}, {"CLAUDE_MEM_EXCLUDED_PROJECTS": "tm*"}]
)
def test_gate_off_or_project_excluded_nothing_happens(tmp_path: Path, setting: dict[str, str]) -> None:
    with served_in(tmp_path, **setting) as served:
        s = served.session()
        s.t.turn("the parser")
        assert s.compaction() == "" and s.prompt_hook() == ""
        assert served.rows("SELECT count(*) FROM sessions") == [(0,)]
        assert list(served.home.bottles.glob("*.md")) == []


def throwing(*_: Any, **__: Any) -> Any:
    raise RuntimeError("told to")


def test_a_render_that_throws_leaves_the_old_bottle_and_the_ladder_goes_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = served.session()
    s.t.turn("the parser")
    served.seal(s)
    old = bottle(served.home)
    s.t.turn("the lexer")
    monkeypatch.setattr(bottle_session, "write", throwing)
    printed = s.compacted()
    assert is_handoff(printed) and "could not be brought up to date" in printed
    assert "Done with the lexer." in printed or "the lexer" in printed
    assert bottle(served.home) == old
    assert list(served.home.bottles.glob(".*")) == []
    s.t.boundary()
    assert s.prompt_hook() == ""


def test_when_nothing_can_be_made_the_boundary_is_owed_to_the_next_prompt(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = served.session()
    s.t.turn("the parser")
    with monkeypatch.context() as patch:
        patch.setattr(bottle_session, "write", throwing)
        patch.setattr(desk_module, "closing", throwing)
        assert not is_handoff(s.compaction(seal=False))
        assert s.prompt_hook() == ""
    assert is_handoff(s.prompt_hook())


def test_the_gap_line_stands_only_where_there_is_a_gap(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    printed = s.compacted()
    assert is_handoff(printed) and "observations still being written" not in printed


def test_spooled_events_are_taken_in_and_hand_over_nothing(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    s.compaction(start=False)
    for event in ("PreCompact", "UserPromptSubmit"):
        payload = HookInput("s-1", str(s.t.path), "/tmp", event)
        kept = served.service.hook("claude-code", event, payload, HookEnv(spooled=True))
        assert asyncio.run_coroutine_threadsafe(kept, served.loop).result(30) == b""
    assert is_handoff(s.prompt_hook())
