"""Sessions no client should produce, and some it does."""

from __future__ import annotations

import shutil
from uuid import uuid4

from tests.live.conftest import served
from tests.live.parts import Served, Session, bottle, is_handoff
from tests.live.transcript import Transcript

__all__ = ["served"]


def test_an_empty_session_that_compacts_is_quiet_or_hands_over_and_never_fails(served: Served) -> None:
    s = served.session()
    s.t.path.touch()
    assert s.pre_compact() == ""
    s.compacted()
    s.t.boundary()
    s.prompt_hook()
    s.t.turn("the parser")
    assert is_handoff(s.compaction())


def test_hooks_without_a_transcript_and_unknown_events_are_quiet(served: Served) -> None:
    s = served.session("s-none")
    assert s.pre_compact() == "" and s.compacted() == "" and s.prompt_hook() == ""
    assert s.fire("Notification") == "" and s.fire("SomethingNew", prompt="x") == ""


def test_a_transcript_that_moves_to_another_directory_goes_on(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    assert is_handoff(s.compaction())
    other = served.projects.parent / "q" / "s-1.jsonl"
    other.parent.mkdir()
    shutil.move(s.t.path, other)
    s.t.path = other
    assert s.prompt_hook() == ""
    s.t.turn("the lexer")
    assert is_handoff(s.compaction())
    assert "the parser" in bottle(served.home) and "the lexer" in bottle(served.home)


def test_a_session_with_a_hundred_legs_hands_over_each_once(served: Served) -> None:
    s = served.session()
    for n in range(100):
        s.t.turn(f"thing {n}")
        assert is_handoff(s.compaction()), n
        assert s.prompt_hook() == "", n
    assert "legs: 101" in bottle(served.home) or "legs: 100" in bottle(served.home)
    assert "thing 0" in bottle(served.home)


def test_an_id_used_by_two_projects_hands_over_in_both(served: Served) -> None:
    first = served.session()
    first.t.turn("the parser")
    assert is_handoff(first.compaction())
    second = Session(
        served.send, Transcript(served.projects.parent / "q" / "s-1.jsonl", "s-1", uuids=lambda: str(uuid4()))
    )
    second.t.turn("another project")
    assert is_handoff(second.compaction())
    assert "another project" in bottle(served.home)
