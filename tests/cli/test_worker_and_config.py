"""``endless worker`` and ``endless config``."""

from __future__ import annotations

import json

import pytest

from tests.install.user import User

STATE = {"running", "version", "pid", "uptime_ms", "live_sessions", "requests"}


def test_a_worker_is_started_seen_and_stopped(user: User) -> None:
    ran = user.run("worker", "status", "--json")
    assert (ran.code, ran.json["running"], set(ran.json)) == (1, False, STATE)
    started = user.run("worker", "start", "--json")
    assert (started.code, started.json["running"], set(started.json)) == (0, True, STATE)
    seen = user.run("worker", "status", "--json")
    assert seen.json["pid"] == started.json["pid"]
    assert user.run("worker", "start", "--json").json["pid"] == started.json["pid"]
    assert user.run("worker", "stop", "--json").json == {"stopped": True}
    assert user.run("worker", "stop", "--json").json == {"stopped": False}
    ran = user.run("worker", "status")
    assert (ran.code, ran.err) == (1, "")
    assert "No worker runs." in ran.out


def test_the_log_is_shown_from_its_end_across_a_rotation(user: User) -> None:
    user.home.create()
    user.home.log.with_name("worker.log.1").write_text('{"name": "old"}\n')
    user.home.log.write_text('{"name": "started"}\nbroken\n{"name": "ended"}\n')
    assert user.run("worker", "logs", "-n", "2").out == 'broken\n{"name": "ended"}\n'
    names = [entry["name"] for entry in user.run("worker", "logs", "--json").json]
    assert names == ["old", "started", "ended"]


def test_settings_are_set_listed_and_unset_with_their_sources(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "CLAUDE_MEM_ENDLESS_PLAN_TOKENS"
    assert user.run("config", "get", "plan_tokens").out == "30000\n"
    assert user.run("config", "set", "plan_tokens", "1000", "--json").json["source"] == "file"
    assert json.loads(user.home.settings.read_text()) == {key: "1000"}
    monkeypatch.setenv(key, "2000")
    assert user.run("config", "get", key, "--json").json["source"] == "environment"
    assert "environment beats the file" in user.run("config", "set", "plan_tokens", "1500").err
    monkeypatch.delenv(key)
    assert user.run("config", "unset", "plan_tokens", "--json").json["source"] == "default"
    listed = {value["key"]: value["source"] for value in user.run("config", "list", "--json").json}
    assert listed[key] == "default"
    assert all(key in user.run("config", "list").out for key in listed)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("set", "plan_tokens", "many"), "bad_setting"),
        (("get", "nothing"), "unknown_setting"),
        (("unset", "nothing"), "unknown_setting"),
    ],
)
def test_a_bad_name_or_value_is_refused_and_nothing_is_written(user: User, words: tuple[str, ...], code: str) -> None:
    ran = user.run("config", *words, "--json")
    assert ran.code == 2
    assert json.loads(ran.err)["code"] == code
    assert not user.home.settings.exists()


def test_a_broken_settings_file_is_an_error_on_the_command_line(user: User) -> None:
    user.home.create()
    user.home.settings.write_text("{")
    assert json.loads(user.run("config", "list", "--json").err)["code"] == "settings_broken"
