"""Kept events are taken in, in order, exactly as they would have come."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from endless_mode.errors import BadRequest
from endless_mode.hook import hook, slow
from endless_mode.worker import spool
from tests.processes import eventually
from tests.worker.parts import Place


def keep(place: Place, event: str, payload: bytes) -> None:
    home = os.fsencode(place.home.root)
    slow.prepare(home)
    environ = {b"HOME": os.fsencode(place.root), b"CLAUDE_PROJECT_DIR": "/pröj".encode()}
    slow.keep(home, hook.build("claude-code", event, payload, environ, os.fsencode(place.data), 2.0))


def test_kept_events_are_taken_in_order_when_a_worker_starts(place: Place) -> None:
    for n in range(20):
        keep(place, "Stop", place.payload("Stop", f"event {n}"))
    place.worker()
    calls = eventually(lambda: len(place.calls()) == 20 and place.calls())
    assert [call["prompt"] for call in calls] == [f"event {n}" for n in range(20)]
    assert all(call["env"]["spooled"] and call["env"]["project_dir"] == "/pröj" for call in calls)
    eventually(lambda: not list(place.home.spool.iterdir()))


def test_an_event_kept_while_a_worker_runs_is_taken_too(place: Place) -> None:
    place.worker()
    keep(place, "Stop", place.payload("Stop", "late"))
    assert eventually(place.calls)[0]["prompt"] == "late"


def test_what_cannot_be_taken_does_not_stop_the_rest(place: Place) -> None:
    slow.prepare(os.fsencode(place.home.root))
    for n, content in enumerate([b"", b"garbage", b"POST /hooks/x HTTP/1.1\r\n\r\n", b"\xff" * 100]):
        (place.home.spool / f"{n}.http").write_bytes(content)
    keep(place, "Stop", b"not json")
    keep(place, "Stop", place.payload("Stop", "fail:now"))
    keep(place, "Stop", place.payload("Stop", transcript_path="/etc/passwd"))
    keep(place, "Stop", place.payload("Stop", "good"))
    (place.home.spool / ".unfinished").write_bytes(b"half")
    place.worker()
    eventually(lambda: any(call["prompt"] == "good" for call in place.calls()))
    eventually(lambda: [path.name for path in place.home.spool.iterdir()] == [".unfinished"])


def test_a_torn_file_is_refused(tmp_path: Path) -> None:
    message = hook.build("claude-code", "Stop", b"{}", {}, b"/d", 2.0)
    assert spool.parse(message)[:3] == ("claude-code", "Stop", b"{}")
    for end in range(len(message)):
        with pytest.raises(BadRequest):
            spool.parse(message[:end])
