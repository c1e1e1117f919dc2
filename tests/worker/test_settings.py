"""Settings: environment over file over default, and nobody's keys lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from endless_mode.errors import SettingsError
from endless_mode.home import Home
from endless_mode.settings import EXCLUDED, GATE, SETTINGS, Settings, load, set_value


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "data", {})
    made.create()
    return made


def test_every_default_is_a_value_its_setting_takes() -> None:
    assert all(setting.check(setting.default) is None for setting in SETTINGS)
    assert [value.source for value in Settings().all()] == ["default"] * len(SETTINGS)


def test_the_environment_beats_the_file_and_the_file_the_default(home: Home) -> None:
    home.settings.write_text('{"CLAUDE_MEM_ENDLESS_PLAN_TOKENS": "1000", "CLAUDE_MEM_ENDLESS_RESUME": "never"}')
    settings = load(home, {"CLAUDE_MEM_ENDLESS_PLAN_TOKENS": "2000"})
    assert (settings.plan_tokens, settings.resume, settings.seal_timeout_ms) == (2000, "never", 20_000)
    sources = [settings.get(name).source for name in ("PLAN_TOKENS", "RESUME", "TIMELINE")]
    assert sources == ["environment", "file", "default"]


def test_typed_values() -> None:
    settings = Settings(
        {
            "CLAUDE_MEM_ENDLESS_TIMELINE": "off",
            "CLAUDE_MEM_ENDLESS_KEEP_CONVERSATION": "False",
            "CLAUDE_MEM_ENDLESS_IDLE_MINUTES": "0.5",
            "CLAUDE_MEM_ENDLESS_EXTRA_ROOTS": "/a:/b c",
            "CLAUDE_MEM_ENDLESS_LOG_LEVEL": "DEBUG",
            "CLAUDE_MEM_ENDLESS_PRECOMPACT_LINE": "on",
            "CLAUDE_MEM_ENDLESS_RESUME": "Always",
        }
    )
    assert not settings.timeline and not settings.keep_conversation and settings.precompact_line
    assert settings.idle_seconds == 30
    assert settings.extra_roots == (Path("/a"), Path("/b c"))
    assert (settings.log_level, settings.resume) == ("debug", "always")


def test_a_value_that_does_not_fit_is_passed_over_and_reported_once(home: Home) -> None:
    home.settings.write_text('{"CLAUDE_MEM_ENDLESS_PLAN_TOKENS": "many"}')
    settings = load(home, {"CLAUDE_MEM_ENDLESS_PLAN_TOKENS": "-1"})
    assert settings.plan_tokens == settings.plan_tokens == 30_000
    assert [problem.code for problem in settings.problems] == ["bad_setting"]


def test_writing_keeps_what_others_wrote(home: Home) -> None:
    home.settings.write_text('\ufeff{"SOMEBODY": {"else": [1]}, "CLAUDE_MEM_ENDLESS_RESUME": "never"}')
    set_value(home, "plan_tokens", "500")
    set_value(home, "CLAUDE_MEM_ENDLESS_RESUME", None)
    assert json.loads(home.settings.read_text()) == {
        "SOMEBODY": {"else": [1]},
        "CLAUDE_MEM_ENDLESS_PLAN_TOKENS": "500",
    }
    assert home.settings.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.root.glob(".settings*")] == []


@pytest.mark.parametrize("content", ["{", "[]", '"text"', "\x00", "[" * 100_000])
def test_a_broken_file_is_an_error_for_people_and_defaults_for_the_worker(home: Home, content: str) -> None:
    home.settings.write_text(content)
    with pytest.raises(SettingsError) as caught:
        load(home, {}, strict=True)
    assert caught.value.code == "settings_broken" and str(home.settings) in caught.value.message
    with pytest.raises(SettingsError):
        set_value(home, "RESUME", "never")
    assert home.settings.read_text() == content
    settings = load(home, {})
    assert settings.plan_tokens == 30_000
    assert [problem.code for problem in settings.problems] == ["settings_broken"]


def test_a_missing_file_is_no_problem(home: Home) -> None:
    assert load(home, {}, strict=True).problems == []


def test_unknown_names_and_bad_values_are_refused(home: Home) -> None:
    for key, value, code in (
        ("COLOUR", "red", "unknown_setting"),
        ("RESUME", "perhaps", "bad_setting"),
        ("PLAN_TOKENS", "nan", "bad_setting"),
        ("EXTRA_ROOTS", "relative/dir", "bad_setting"),
    ):
        with pytest.raises(SettingsError) as caught:
            set_value(home, key, value)
        assert caught.value.code == code
    assert not home.settings.exists()


@pytest.mark.parametrize(
    ("content", "enabled"),
    [("{}", True), ('{"%s": "false"}', False), ('{"env": {"%s": "false"}}', False), ('{"%s": "true"}', True),
     ('{"%s": false}', False), ("broken", True)],
)  # fmt: skip
def test_the_master_switch_is_read_from_claude_mem(home: Home, content: str, enabled: bool) -> None:
    home.claude_mem_settings.write_text(content.replace("%s", GATE))
    before = home.claude_mem_settings.read_bytes()
    assert load(home, {}).enabled is enabled
    assert load(home, {GATE: "false"}).enabled is False
    assert home.claude_mem_settings.read_bytes() == before


def test_excluded_projects_are_read_from_claude_mem(home: Home) -> None:
    home.claude_mem_settings.write_text(json.dumps({EXCLUDED: " a*, ,/b/** "}))
    assert load(home, {}).excluded_projects == ["a*", "/b/**"]
