"""``endless status``: what happened at boundaries, told by a session under a real worker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from endless_mode.bottle.view import Cut
from endless_mode.install.history import Delivery, Rereads, bind, bottle_read, rereads
from endless_mode.worker.client import WorkerClient
from tests.install.user import User
from tests.live.transcript import Transcript


class Session:
    """A session whose transcript grows in the client's directory, with a worker that hears of its events."""

    def __init__(self, user: User) -> None:
        assert user.run("worker", "start").code == 0
        self.user = user
        self.t = Transcript(user.client / "projects/p/s-1.jsonl")

    def fire(self, event: str, **more: object) -> str:
        base = {"session_id": "s-1", "transcript_path": str(self.t.path), "cwd": "/tmp", "hook_event_name": event}
        headers = {"X-Endless-User-Home": str(self.user.root)}
        body = json.dumps({**base, **more}).encode()
        return WorkerClient(self.user.home).hook("claude-code", event, body, headers).decode()

    def read(self, path: str) -> None:
        self.t.result(self.t.call("Read", file_path=path), "1\tx")

    def compact(self, seal: bool = True) -> None:
        if seal:
            self.fire("PreCompact", trigger="auto")
        printed = self.fire("SessionStart", source="compact")
        self.t.boundary()
        self.t.hooked(printed)

    def report(self) -> Any:
        self.fire("PostCompact", trigger="auto")
        return self.user.run("status", "--json").json


def test_each_boundary_tells_what_became_of_it(user: User) -> None:
    user.run("install")
    session = Session(user)
    session.t.turn("the parser")
    session.read("/w/a.py")
    session.compact()
    session.read(str(user.home.bottles / "s-1.md"))
    session.read("/w/a.py")
    session.read("/w/b.py")
    session.t.turn("more")
    session.compact(seal=False)
    session.t.turn("and more", work=3)

    told = session.report()
    assert (told["on"], told["installed"], told["worker"]["running"]) == (True, True, True)
    first, second = told["sessions"][0]["boundaries"]
    assert first["sealed_at"] <= first["delivered_at"]
    assert first["delivered_by"].startswith("SessionStart")
    assert (first["bottle_read"], first["trigger"]) == (True, "auto")
    assert (first["reread"], first["tools"]) == (1, 3)
    assert (second["sealed_at"], second["bottle_read"]) == (None, False)
    assert second["delivered_at"] is not None
    assert (second["reread"], second["tools"]) == (0, 3)
    assert told["rereads"]["after"] == {"boundaries": 2, "tools": 6, "reread": 1, "share": 0.167}
    assert told["rereads"]["before"]["boundaries"] == 0

    text = user.run("status").out
    assert "Endless Mode 0.1.0 is on." in text
    assert "1 of 3" in text


def test_a_boundary_from_before_the_install_counts_as_before(user: User) -> None:
    session = Session(user)
    session.t.turn("the parser")
    session.read("/w/a.py")
    session.t.boundary()
    session.read("/w/a.py")
    user.run("install")
    told = session.report()
    assert told["rereads"]["before"] == {"boundaries": 1, "tools": 1, "reread": 1, "share": 1.0}
    assert told["sessions"][0]["boundaries"][0]["delivered_at"] is None


def test_without_an_install_it_is_off(user: User) -> None:
    told = user.run("status", "--json").json
    assert (told["on"], told["enabled"], told["installed"], told["sessions"]) == (False, True, False, [])
    assert told["worker"]["running"] is False
    assert "is off" in user.run("status").out


def test_the_gate_switches_it_off(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.run("install")
    assert user.run("status", "--json").json["on"] is True
    monkeypatch.setenv("CLAUDE_MEM_ENDLESS_MODE_ENABLED", "false")
    assert user.run("status", "--json").json["on"] is False


def test_hooks_that_the_client_is_told_not_to_run_leave_it_off(user: User) -> None:
    user.run("install")
    user.write(json.dumps({**json.loads(user.settings.read_text()), "disableAllHooks": True}))
    told = user.run("status", "--json").json
    assert (told["on"], told["installed"], told["enabled"]) == (False, True, True)
    assert "disableAllHooks" in told["switched_off"]
    assert "is off." in user.run("status").out


def test_a_settings_file_that_cannot_be_read_is_named_once(user: User) -> None:
    user.write("{ // mine\n}")
    assert user.run("status").out.count(str(user.settings)) == 1


def test_the_plugin_counts_as_installed(user: User) -> None:
    user.write('{"enabledPlugins": {"endless-mode@somewhere": true}}')
    told = user.run("status", "--json").json
    assert (told["plugin"], told["on"]) == ("endless-mode@somewhere", True)
    user.write('{"enabledPlugins": {"endless-mode@somewhere": false}}')
    assert user.run("status", "--json").json["on"] is False


def test_a_database_that_cannot_be_read_is_told_and_the_rest_still_shown(user: User) -> None:
    user.home.create()
    user.home.database.write_bytes(b"no database at all, only text" * 100)
    ran = user.run("status", "--json")
    assert ran.code == 0
    assert "cannot be read" in ran.json["problem"]


def test_a_reread_is_a_read_of_a_file_known_before_the_boundary() -> None:
    uses = [
        (1, "read", "a"),
        (2, "edit", "b"),
        (5, "read", "a"),
        (6, "read", "c"),
        (7, "read", "c"),
        (8, "edit", "b"),
        (9, "read", "b"),
    ]
    assert rereads(uses, [3]) == [(2, 5)]
    assert rereads(uses, []) == []
    assert rereads(uses, [3, 4, 20]) == [(0, 0), (2, 5), (0, 0)]
    assert rereads([(0, "read", "a"), *((n, "read", "a") for n in range(2, 100))], [1]) == [(30, 30)]


def test_a_delivery_whose_boundary_came_later_is_bound_to_it_once() -> None:
    cuts = [Cut(offset, 0, key, "auto", None, 0) for offset, key in ((100, "k1"), (200, "k2"), (300, "k3"))]
    known = Delivery(1, 2, 90, "SessionStart", "k1", "", 0)
    waiting = Delivery(3, 4, 150, "SessionStart", "", "", 0)
    armed = Delivery(5, None, 250, "", "", "", 0)
    assert bind(cuts, [known, waiting, armed]) == {"k1": known, "k2": waiting, "k3": armed}
    assert bind(cuts[:1], [known, waiting, armed]) == {"k1": known}


def test_whether_the_bottle_was_read_is_unknown_without_the_transcript(user: User) -> None:
    assert bottle_read(user.root / "gone.jsonl", 0, None) is None
    spoken = user.write(
        '{"message": {"content": "see /endless/bottles/x.md, a \\"tool_use\\""}}\n', user.root / "t.jsonl"
    )
    assert bottle_read(spoken, 0, None) is False


def test_shares_are_none_where_nothing_was_seen() -> None:
    assert Rereads().share is None
