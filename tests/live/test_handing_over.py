"""Exactly one handoff per boundary: the ordinary ways and the crooked ones."""

from __future__ import annotations

from tests.live.parts import Served, is_handoff
from tests.live.transcript import marker_of


def test_a_compaction_is_handed_over_once(served: Served) -> None:
    s = served.session()
    s.t.turn("the parser")
    printed = s.compaction()
    assert is_handoff(printed)
    assert s.prompt_hook() == ""
    assert s.resumed() == ""
    assert marker_of(printed)
