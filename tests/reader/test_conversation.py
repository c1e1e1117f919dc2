"""Every word of the conversation, once, verbatim, in order: proved by a second reader of both formats."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings

from endless_mode.bottle.session import render_session
from endless_mode.ingest import ingest_file
from endless_mode.privacy import clean
from endless_mode.store import Store
from tests.reader import transcript
from tests.reader.checker import STARTS, Slot, differences, slots
from tests.reader.files import FIXTURES, everything, label
from tests.reader.world import World, worlds


@pytest.mark.parametrize("path", everything(), ids=label)
def test_a_bottle_holds_every_message_once_verbatim_and_in_order(path: Path) -> None:
    with Store.temporary() as store:
        text = render_session(store, ingest_file(store, path).session, 0).text
    assert differences(transcript.read(path), text, clean) == []


@given(worlds())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_transcripts_made_by_chance_come_out_word_for_word(world: World) -> None:
    with TemporaryDirectory() as folder, Store.temporary() as store:
        path = Path(folder, "0f0f0f0f-0000-4000-8000-000000000000.jsonl")
        path.write_bytes(world.bytes())
        text = render_session(store, ingest_file(store, path).session, 0).text
        reading = transcript.read(path)
    assert differences(reading, text, clean) == []


RICH = FIXTURES / "recorded" / "2.1.197" / "interactive-rewind-bash-slash-paste.jsonl"


def test_the_rewound_branch_of_the_recorded_session_is_left_out() -> None:
    left = transcript.read(RICH).rewound
    assert [w.kind for w in left if w.role == "user"] == ["command", "prompt"] and len(left) >= 4


def test_the_checker_sees_what_is_missing_doubled_changed_moved_or_put_into_a_mouth() -> None:
    with Store.temporary() as store:
        text = render_session(store, ingest_file(store, RICH).session, 0).text
    reading = transcript.read(RICH)
    assert differences(reading, text, clean) == []
    said = slots(text)
    lines = text.split("\n")

    def changed(fake: list[str]) -> bool:
        try:
            return differences(reading, "\n".join(fake), clean) != []
        except AssertionError:
            return True

    for slot in said:
        at = slot.line - 1
        start = at - 1 if slot.role == "user" else at
        end = next(i for i in range(at + 1, len(lines)) if STARTS.fullmatch(lines[i]) or lines[i].startswith("## "))
        end -= lines[end].startswith("**User**")
        role = "Assistant" if slot.role == "user" else "User"
        head = [*(["---"] if role == "User" else []), f"**{role}** (—, {slot.kind})"]
        assert changed(lines[:start] + lines[end:]), "missing"
        assert changed([*lines[:end], *lines[start:]]), "doubled"
        assert changed([*lines[: at + 1], "x" + lines[at + 1], *lines[at + 2 :]]), "changed"
        assert changed([*lines[:start], *head, *lines[at + 1 :]]), "put into another mouth"
    for one, other in pairwise(said):
        if (one.role, one.text) != (other.role, other.text):
            assert changed(swapped(lines, one, other)), "moved"


def swapped(lines: list[str], one: Slot, other: Slot) -> list[str]:
    """The two messages' texts and heads exchanged."""
    a, b = lines[one.line - 1 : one.line + 1], lines[other.line - 1 : other.line + 1]
    made = list(lines)
    made[one.line - 1 : one.line + 1], made[other.line - 1 : other.line + 1] = b, a
    return made
