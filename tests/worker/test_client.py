"""The command line's way to the worker, and the handshake between versions."""

from __future__ import annotations

import json
import sys

import pytest

from endless_mode.errors import EndlessError, WorkerError
from endless_mode.worker import client as client_module
from endless_mode.worker.client import ensure_worker
from endless_mode.worker.messages import RenderRequest, SealRequest, newer
from tests.processes import LONG
from tests.worker.parts import Place


@pytest.fixture(autouse=True)
def stand_in(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(place.python))


def test_a_worker_is_started_once_and_then_used(place: Place) -> None:
    first = ensure_worker(place.home, LONG)
    assert ensure_worker(place.home, LONG).pid == first.pid == place.worker_pid()
    assert len(place.log("started")) == 1


def test_a_worker_of_an_older_version_is_asked_to_stop_and_replaced(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = place.worker()
    monkeypatch.setattr(client_module, "__version__", "9.0.0")
    with pytest.raises(WorkerError):
        ensure_worker(place.home, 3.0)  # what it starts is 0.1.0 again, so it never has what it wants
    assert worker.wait(LONG) == 0, "it ended by itself"
    assert place.log("retiring")[0]["code"] == "asked"
    assert len(place.log("started")) >= 2


def test_a_worker_of_a_newer_version_is_used_as_it_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = place.worker()
    monkeypatch.setattr(client_module, "__version__", "0.0.1")
    assert ensure_worker(place.home, LONG).pid == worker.pid


def test_every_call_has_a_typed_answer(place: Place) -> None:
    place.worker()
    path = str(place.projects / "s-1.jsonl")
    assert place.client.seal(SealRequest("s-1", path)).gap == 2
    assert place.client.render_bottle(RenderRequest("s-1", path)).queued
    assert place.client.drain_status("s-1").pending == 3
    assert place.client.hook("claude-code", "Stop", place.payload("Stop", "say:yes")) == b"yes"


def test_an_error_of_the_worker_arrives_as_an_error(place: Place) -> None:
    place.worker()
    with pytest.raises(EndlessError) as caught:
        place.client.drain_status("no/session id")
    assert (caught.value.code, caught.value.status) == ("bad_session_id", 400)
    assert json.loads(caught.value.to_json()) == caught.value.to_dict()


def test_without_a_worker_there_is_an_error_with_a_hint(place: Place) -> None:
    with pytest.raises(WorkerError) as caught:
        place.client.health()
    assert caught.value.code == "no_worker" and caught.value.hint


def test_a_home_that_cannot_be_is_an_error(place: Place) -> None:
    place.data.write_text("in the way")
    with pytest.raises(EndlessError) as caught:
        ensure_worker(place.home, LONG)
    assert caught.value.code == "home_unusable"


@pytest.mark.parametrize(
    ("theirs", "ours", "later"),
    [
        ("0.2.0", "0.1.9", True),
        ("0.10.0", "0.9.0", True),
        ("0.1.0", "0.1.0", False),
        ("0.0.9", "0.1.0", False),
        ("", "0.1.0", False),
        ("x.y", "0.1.0", False),
    ],
)
def test_versions_are_compared_by_number(theirs: str, ours: str, later: bool) -> None:
    assert newer(theirs, ours) is later
