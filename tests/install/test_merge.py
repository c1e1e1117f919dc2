"""Our entries in a settings text: added once, and taken out without a trace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endless_mode.install import merge
from endless_mode.install.entries import InstallError, command, event_of, hook_entries

from .texts import KEYS, PATIENT, VALUES, layouts

RULES = ["Read(//home/ada/.claude-mem/endless/bottles/**)", "Bash(endless show:*)", "Bash(endless search:*)"]
HOOKS = hook_entries()

_foreign_hook = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(["true", "./mine.sh", "hook.py Stop"])}
)
_entry = st.fixed_dictionaries(
    {"hooks": st.lists(_foreign_hook, max_size=2)}, optional={"matcher": st.sampled_from(["", "*", "compact"])}
)
_events = st.sampled_from([*HOOKS, "PreToolUse", "Notification"])
_hooks = st.dictionaries(_events, st.lists(_entry | VALUES, max_size=3), max_size=4)
_permissions = st.fixed_dictionaries(
    {},
    optional={
        "allow": st.lists(st.sampled_from(["Read", "Bash(ls)", RULES[1]]), max_size=3),
        "deny": st.lists(st.text(max_size=3)),
    },
)
_rest = st.dictionaries(KEYS.filter(lambda key: key not in ("hooks", "permissions")), VALUES, max_size=3)


@st.composite
def settings_values(draw: st.DrawFn) -> dict[str, Any]:
    """Settings as a client might have them, members in any order."""
    value: dict[str, Any] = draw(_rest)
    if draw(st.booleans()):
        value["hooks"] = draw(_hooks)
    if draw(st.booleans()):
        value["permissions"] = draw(_permissions)
    return dict(draw(st.permutations(list(value.items()))))


@given(text=layouts(settings_values()))
@PATIENT
def test_install_then_uninstall_gives_the_same_bytes(text: str) -> None:
    after, trace = merge.install(text, "settings", HOOKS, RULES, None)
    assert merge.uninstall(after, "settings", trace) == text


@given(text=layouts(settings_values()))
@PATIENT
def test_install_adds_ours_and_changes_nothing_else(text: str) -> None:
    before, after = json.loads(text), json.loads(merge.install(text, "settings", HOOKS, RULES, None)[0])
    for event, entry in HOOKS.items():
        assert after["hooks"][event].pop() == entry
        assert after["hooks"][event] == before.get("hooks", {}).get(event, [])
    assert set(RULES) <= set(after["permissions"]["allow"])
    kept = before.get("permissions", {}).get("allow", [])
    assert after["permissions"]["allow"][: len(kept)] == kept
    mine = ("hooks", "permissions")
    assert {k: v for k, v in after.items() if k not in mine} == {k: v for k, v in before.items() if k not in mine}
    others = set(before.get("hooks", {})) - set(HOOKS)
    assert all(after["hooks"][event] == before["hooks"][event] for event in others)
    assert after["permissions"].get("deny") == before.get("permissions", {}).get("deny")


@given(text=layouts(settings_values()))
@PATIENT
def test_a_second_install_changes_no_byte(text: str) -> None:
    once, trace = merge.install(text, "settings", HOOKS, RULES, None)
    again, kept = merge.install(once, "settings", HOOKS, RULES, trace)
    assert (again, kept) == (once, trace)


@given(text=layouts(settings_values()))
@PATIENT
def test_an_older_install_elsewhere_is_replaced_and_its_trace_lost_nothing(text: str) -> None:
    older = {
        event: {
            "hooks": [
                {"type": "command", "command": command(event, "", "/old/python", "/old/endless_mode/hook/hook.py")}
            ]
        }
        for event in [*HOOKS, "PostToolUse"]
    }
    old_rules = ["Read(//old/endless/bottles/**)", *RULES[1:]]
    was, trace = merge.install(text, "settings", older, old_rules, None)
    now, newer = merge.install(was, "settings", HOOKS, RULES, trace)
    assert "/old/" not in now
    assert merge.uninstall(now, "settings", newer) == text


@given(text=layouts(settings_values()))
@PATIENT
def test_without_a_trace_ours_still_goes_and_the_users_stays(text: str) -> None:
    after = json.loads(merge.uninstall(merge.install(text, "settings", HOOKS, RULES, None)[0], "settings", None))
    before = json.loads(text)
    assert not merge.found(after)
    for event, entries in before.get("hooks", {}).items():
        assert after.get("hooks", {}).get(event, []) == entries
    theirs = [rule for rule in before.get("permissions", {}).get("allow", []) if rule not in RULES]
    assert after.get("permissions", {}).get("allow", []) == theirs


def test_the_users_own_hook_in_an_entry_of_ours_stays() -> None:
    after, trace = merge.install("{}", "settings", HOOKS, RULES, None)
    value = json.loads(after)
    value["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "true"})
    left = json.loads(merge.uninstall(json.dumps(value), "settings", trace))
    assert left == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}


def test_a_rule_the_user_had_before_stays_after_uninstalling() -> None:
    text = json.dumps({"permissions": {"allow": [RULES[1]]}})
    after, trace = merge.install(text, "settings", HOOKS, RULES, None)
    assert json.loads(after)["permissions"]["allow"].count(RULES[1]) == 1
    assert json.loads(merge.uninstall(after, "settings", trace)) == json.loads(text)


@pytest.mark.parametrize("text", ["", "\n", " \r\n", "\ufeff"])
def test_a_text_in_which_nothing_stands_holds_no_settings_and_comes_back(text: str) -> None:
    after, trace = merge.install(text, "settings", HOOKS, RULES, None)
    assert set(json.loads(after)) == {"hooks", "permissions"}
    again, kept = merge.install(after, "settings", HOOKS, RULES[1:], trace)
    assert merge.uninstall(again, "settings", kept) == text
    changed = json.dumps({**json.loads(again), "model": "opus"})
    assert json.loads(merge.uninstall(changed, "settings", kept)) == {"model": "opus"}


def test_a_settings_text_with_a_byte_order_mark_keeps_it() -> None:
    text = '\ufeff{\n  "model": "opus"\n}\n'
    after, trace = merge.install(text, "settings", HOOKS, RULES, None)
    assert after.startswith("\ufeff{")
    assert merge.uninstall(after, "settings", trace) == text


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ('{\n  // mine\n  "a": 1\n}', "settings_broken", "line 2"),
        ('{"a": 1,}', "settings_broken", "not valid JSON"),
        ("[" * 100_000, "settings_broken", "not valid JSON"),
        ("[]", "settings_shape", "not an object"),
        ('{"hooks": []}', "settings_shape", "`hooks` is not an object"),
        ('{"hooks": null}', "settings_shape", "`hooks` is not an object"),
        ('{"hooks": {"Stop": {}}}', "settings_shape", "`hooks.Stop` is not a list"),
        ('{"permissions": []}', "settings_shape", "`permissions` is not an object"),
        ('{"permissions": {"allow": "Read"}}', "settings_shape", "`permissions.allow` is not a list"),
    ],
)
def test_settings_that_cannot_be_extended_are_refused_with_a_reason(text: str, code: str, says: str) -> None:
    with pytest.raises(InstallError) as raised:
        merge.install(text, "settings.json", HOOKS, RULES, None)
    assert raised.value.code == code
    assert says in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize("directory", ["/opt/x", "/home/ada lovelace/env", "/home/ünï", "/it's/$HOME", '/"q"/`d`'])
def test_a_hook_of_ours_is_known_again_wherever_it_lies(directory: str) -> None:
    for name in ("run.py", "hook.py"):
        line = command("Stop", "/data dir", f"{directory}/bin/python", f"{directory}/endless_mode/hook/{name}")
        assert event_of({"type": "command", "command": line}) == "Stop"
    assert event_of({"command": "python hook.py claude-code Stop"}) == ""
    assert event_of("text") == event_of({"command": 3}) == ""
