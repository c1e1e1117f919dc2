"""Screening many entries at once stores what cleaning every text of them stores."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endless_mode.clients.claude_code import reader
from endless_mode.ingest import ingest_file
from endless_mode.store import Store
from tests.reader.files import FIXTURES
from tests.reader.rows import rows
from tests.reader.world import STEPS, World, step

NAME = "0f0f0f0f-0000-4000-8000-000000000000.jsonl"
TOKEN = "ghp_a8B3c9D2e7F1g6H5i0J4k8L2m7N1o6P5q0R4"  # made up
DIRTY = [
    "plain words",
    "a <private>b</private> c",
    "<private>all of it</private>",
    "<PRIVATE> never closed",
    "closed alone </private> here",
    "<system-reminder>note</system-reminder>rest",
    "<",
    "private> joined with what stands before it",
    "\uff1cprivate\uff1ewide</private>",
    TOKEN,
    TOKEN[:20],
    f"password = '{TOKEN[4:]}'",
    "password =",
    TOKEN[4:],
    "postgres://u:h4nds0ff@host/db",
    "\ud83d lone",
]
HELD = st.sampled_from(DIRTY)


def changed(world: World, before: str, after: str) -> None:
    """An edit whose patch holds each text as lines of their own."""
    world.call("Edit", {"file_path": "/p/a.py", "old_string": before, "new_string": after})
    lines = [" x", *(f"-{line}" for line in before.split("\n")), *(f"+{line}" for line in after.split("\n"))]
    detail = {"filePath": "/p/a.py", "structuredPatch": [{"oldStart": 1, "newStart": 1, "lines": lines}]}
    world.answer_call(world.open.pop()[0], f"The file was edited.\n{after}", detail, False)


@st.composite
def dirty_worlds(draw: Any) -> World:
    """A transcript in which any text may hold what must not be stored."""
    world = World()
    world.typed("begin")
    for kind in draw(st.lists(st.sampled_from([*STEPS, "edit", "parts", "keyed"]), max_size=25)):
        text = draw(HELD)
        if kind == "edit":
            changed(world, text, draw(HELD))
        elif kind == "parts":
            world.call("mcp__x__y", {"api_key": text, "q": draw(HELD)})
            world.result([{"type": "text", "text": text}, {"type": "text", "text": draw(HELD)}])
        elif kind == "keyed":
            world.call("Bash", {"command": f"echo {text}", "token": draw(HELD)})
            world.result(f"{text}\nx = 1", {"stdout": text})
        else:
            step(world, kind, text, draw)
    return world


def stored(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with Store.temporary() as store:
        ingest_file(store, path)
        return rows(store)


def stored_without_screening(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with patch.object(reader, "cleared", lambda entries: [False] * len(entries)):
        return stored(path)


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(dirty_worlds())
def test_screening_stores_what_cleaning_everything_stores(world: World) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / NAME
        path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in world.lines))
        assert stored(path) == stored_without_screening(path)


@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.jsonl*")), ids=lambda path: path.name)
def test_screening_a_recorded_session_stores_what_cleaning_everything_stores(path: Path) -> None:
    assert stored(path) == stored_without_screening(path)


def test_an_entry_is_cleared_only_when_nothing_in_it_has_to_change() -> None:
    world = World()
    for text in ("plain words", f"the key is {TOKEN}", "more plain words"):
        world.said({"type": "text", "text": text})
    entries = [reader.decode(json.dumps(line).encode(), 0) for line in world.lines]
    assert reader.cleared([entry for found in entries if found for _, entry in found]) == [True, False, True]
