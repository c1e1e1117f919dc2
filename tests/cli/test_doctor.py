"""``endless doctor``: each thing that can be wrong, made wrong on purpose."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from endless_mode.claude_mem.beside import beside, stands_down
from endless_mode.ingest import ingest_file
from endless_mode.install import check_client, check_home, check_past, look
from endless_mode.install.check_client import covers
from endless_mode.install.check_home import exposed, kind_of
from endless_mode.install.checks import Check, Context, context
from endless_mode.install.entries import our_interpreter
from endless_mode.settings import load
from endless_mode.store import Store
from tests.install.user import User
from tests.live.transcript import Transcript


def findings(user: User, *words: str) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in user.run("doctor", "--json", *words).json["checks"]}


def status(user: User, name: str) -> str:
    return str(findings(user)[name]["status"])


def change(user: User, **keys: Any) -> None:
    value = json.loads(user.settings.read_text()) if user.settings.exists() else {}
    user.write(json.dumps({**value, **keys}))


def at(user: User, **more: Any) -> Context:
    made = context(user.home)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def transcript(user: User, name: str, age: float = 0, text: str = "{}\n") -> Path:
    path = user.write(text, user.client / f"projects/p/{name}.jsonl")
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def test_after_an_install_nothing_fails_and_the_exit_code_says_so(user: User) -> None:
    user.run("install")
    ran = user.run("doctor", "--json")
    assert (ran.code, ran.json["ok"]) == (0, True), ran.out
    assert [check["name"] for check in ran.json["checks"] if check["status"] == "fail"] == []
    assert all(check["message"].endswith(".") or ":" in check["message"] for check in ran.json["checks"])
    assert "FAIL" not in user.run("doctor").out


def test_without_an_install_it_fails_with_a_way_out(user: User) -> None:
    ran = user.run("doctor")
    assert ran.code == 1
    assert "FAIL  hooks" in ran.out
    assert "Run `endless install`." in ran.out


def test_being_switched_off_keeps_it_from_working(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.run("install")
    assert "Nothing keeps it from working" in user.run("doctor").err
    monkeypatch.setenv("CLAUDE_MEM_ENDLESS_MODE_ENABLED", "false")
    ran = user.run("doctor")
    assert (ran.code, "FAIL  settings" in ran.out, "Nothing keeps" in ran.err) == (1, True, False)


def test_where_nothing_is_installed_no_session_is_missed(user: User) -> None:
    user.run("install")
    user.run("uninstall")
    (user.home.root / "installed").write_text("1\n")
    assert findings(user)["arriving"]["message"] == "Nothing is installed, so no hook is expected."


def test_looking_changes_nothing(user: User) -> None:
    user.run("install")
    user.settings.chmod(0o644)
    before = user.files()
    user.run("doctor")
    user.run("status")
    assert user.files() == before


def test_hooks_of_another_install_are_told_and_replaced_by_fix(user: User) -> None:
    user.run("install")
    was = user.settings.read_text()
    user.write(was.replace("endless_mode/hook/run.py", "old/endless_mode/hook/hook.py"))
    found = findings(user)
    assert found["hooks"]["status"] == "fail"
    assert "another install" in found["hooks"]["message"]
    assert found["programs"]["status"] == "fail"
    fixed = findings(user, "--fix")
    assert (fixed["hooks"]["status"], fixed["hooks"]["fixed"]) == ("ok", "installed anew")
    assert json.loads(user.settings.read_text()) == json.loads(was)


def test_a_missing_hook_is_named(user: User) -> None:
    user.run("install")
    value = json.loads(user.settings.read_text())
    del value["hooks"]["PreCompact"]
    user.write(json.dumps(value))
    assert "PreCompact" in findings(user)["hooks"]["message"]


def test_broken_settings_are_told_and_not_touched_by_fix(user: User) -> None:
    user.write("{ // mine\n}")
    found = findings(user, "--fix")
    assert found["hooks"]["status"] == "fail"
    assert found["hooks"]["fixed"].startswith("no:")
    assert user.settings.read_text() == "{ // mine\n}"
    ran = user.run("doctor", "--fix")
    assert ran.out.count(found["hooks"]["message"]) == 1 and "not fixed\n" in ran.out and "fixed: no" not in ran.out


def test_the_plugin_beside_the_hooks_sends_everything_twice(user: User) -> None:
    change(user, enabledPlugins={"endless-mode@m": True})
    assert status(user, "hooks") == "ok"
    user.run("install")
    assert status(user, "hooks") == "warn"
    assert findings(user, "--fix")["hooks"]["status"] == "ok"
    assert "hooks" not in json.loads(user.settings.read_text())


def test_an_interpreter_that_does_not_run_the_hook_fails(user: User) -> None:
    user.run("install")
    broken = user.root / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    user.write(user.settings.read_text().replace(our_interpreter(), str(broken)))
    assert "does not run" in findings(user)["programs"]["message"]


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        ({"deny": ["Read(~/.claude-mem/**)"]}, "warn"),
        ({"ask": ["Read"]}, "warn"),
        ({"deny": ["Read(~/secrets/**)", "Bash(rm:*)"]}, "ok"),
        ({"allow": []}, "fail"),
        ({"allow": ["Read"]}, "warn"),
        ({"allow": ["Read", "Bash"]}, "ok"),
    ],
)
def test_rules_are_judged_by_what_they_do_to_bottles(user: User, permissions: dict[str, Any], expected: str) -> None:
    user.run("install")
    value = json.loads(user.settings.read_text())
    change(user, permissions={**value["permissions"], **permissions})
    assert status(user, "rules") == expected


@pytest.mark.parametrize(
    ("rule", "covered"),
    [
        ("Read", True),
        ("Read(//**)", True),
        ("Read(//data/endless/bottles/**)", True),
        ("Read(//data/**)", True),
        ("Read(//data/endless/bottles/*.md)", True),
        ("Read(/data/endless/bottles/**)", False),
        ("Read(//data/other/**)", False),
        ("Edit(//data/**)", False),
        ("Read(src/**)", False),
        (3, False),
    ],
)
def test_a_rule_covers_a_directory_or_not(rule: object, covered: bool) -> None:
    assert covers(rule, "/data/endless/bottles", Path("/project")) is covered


def test_a_rule_relative_to_the_settings_covers_what_lies_there() -> None:
    assert covers("Read(/endless/**)", "/project/endless/bottles", Path("/project"))


def test_hooks_switched_off_anywhere_fail(user: User) -> None:
    user.run("install")
    user.write('{"disableAllHooks": true}', user.project / ".claude/settings.json")
    found = findings(user)["silenced"]
    assert found["status"] == "fail"
    assert str(user.project) in found["message"]


@pytest.mark.parametrize(
    ("managed", "expected"),
    [
        ({"allowManagedHooksOnly": True}, "fail"),
        ({"disableAllHooks": True}, "fail"),
        ({"allowManagedPermissionRulesOnly": True}, "warn"),
        ({"allowManagedHooksOnly": False}, "ok"),
    ],
)
def test_an_administrators_settings_can_silence_hooks_and_rules(
    user: User, managed: dict[str, Any], expected: str
) -> None:
    assert check_client.silenced(at(user, managed={"/etc/m.json": managed})).status == expected


def test_managed_settings_lie_where_each_system_has_them(tmp_path: Path) -> None:
    linux, mac = tmp_path / "etc/claude-code", tmp_path / "Library/Application Support/ClaudeCode"
    for directory in (linux, mac):
        (directory / "managed-settings.d").mkdir(parents=True)
        (directory / "managed-settings.json").write_text("{}")
        (directory / "managed-settings.d/10-x.json").write_text("{}")
    names = ["managed-settings.json", "10-x.json"]
    assert [path.name for path in look.managed("Linux", tmp_path)] == names
    assert [path for path in look.managed("Darwin", tmp_path) if linux in path.parents] == []
    assert [path.name for path in look.managed("Darwin", tmp_path)] == names


def test_what_the_client_got_from_its_server_counts_as_managed(user: User) -> None:
    user.run("install")
    user.write('{"allowManagedHooksOnly": true}', user.client / "remote-settings.json")
    assert status(user, "silenced") == "fail"


def test_transcripts_that_grow_without_a_hook_are_told(user: User) -> None:
    user.run("install")
    (user.home.root / "installed").write_text(f"{int((time.time() - 3600) * 1000)}\n")
    assert status(user, "arriving") == "ok"
    transcript(user, "s-1")
    assert status(user, "arriving") == "fail"
    with Store.open(user.home.database) as store:
        store.write(
            lambda db: db.execute("INSERT INTO sessions (platform_source, content_session_id) VALUES ('claude', 's-1')")
        )
    assert status(user, "arriving") == "ok"
    transcript(user, "s-2")
    assert status(user, "arriving") == "warn"


def test_sessions_from_before_the_install_and_of_observers_need_no_hook(user: User) -> None:
    user.run("install")
    transcript(user, "s-1", age=3600)
    user.write("{}", user.client / "projects/-home-observer-sessions/s-2.jsonl")
    (user.home.root / "installed").write_text(f"{int((time.time() - 1800) * 1000)}\n")
    assert status(user, "arriving") == "ok"


def past_session(user: User, name: str, days: float, cwd: str = "/home/dev/app") -> Path:
    path = user.client / f"projects/-p/{name}.jsonl"
    Transcript(path, name, cwd).turn("count the herons")
    os.utime(path, (time.time() - days * 86_400, time.time() - days * 86_400))
    return path


def test_transcripts_about_to_be_deleted_are_named_with_whether_they_are_held(user: User) -> None:
    user.run("install")
    path = past_session(user, "s-1", 25)
    found = findings(user)["retention"]
    assert found["status"] == "warn" and "deletes 1 transcript not held in full" in found["message"]
    assert len(found["details"]) == 1 and found["details"][0].endswith(f"{path}  NOT held in full")
    assert str(path) in user.run("doctor").out
    change(user, cleanupPeriodDays=60)
    assert (status(user, "retention"), findings(user)["retention"]["details"]) == ("ok", [])
    change(user, cleanupPeriodDays=20)
    with Store.open(user.home.database) as store:
        ingest_file(store, path, session_id="s-1")
    found = findings(user)["retention"]
    assert found["status"] == "ok" and found["details"][0].endswith(f"{path}  held in full")
    before = path.stat()
    with path.open("ab") as file:
        file.write(path.read_bytes().replace(b'"uuid":"', b'"uuid":"x'))
    os.utime(path, (before.st_atime, before.st_mtime))
    past_session(user, "s-2", 24)
    found = findings(user)["retention"]
    assert found["status"] == "warn" and "2 transcripts not held" in found["message"]


def test_a_subagents_file_that_was_not_read_is_not_held(user: User) -> None:
    user.run("install")
    path = past_session(user, "s-1", 25)
    with Store.open(user.home.database) as store:
        ingest_file(store, path, session_id="s-1")
    user.write("{}\n", path.with_suffix("") / "subagents/agent-a1.jsonl")
    assert status(user, "retention") == "warn"


def test_what_is_not_to_be_held_is_not_missed(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.run("install")
    past_session(user, "forgotten", 25)
    past_session(user, "excluded", 25, cwd="/secret/place")
    observer = past_session(user, "observer", 25)
    (user.client / "projects/-home-observer-sessions").mkdir()
    observer.rename(user.client / "projects/-home-observer-sessions" / observer.name)
    assert "3 transcripts" not in findings(user)["retention"]["message"]
    monkeypatch.setenv("CLAUDE_MEM_EXCLUDED_PROJECTS", "/secret/*")
    with Store.open(user.home.database) as store:
        assert "deletes 1 transcript not" in findings(user)["retention"]["message"]
        store.write(
            lambda db: (
                db.execute(
                    "INSERT INTO tombstones (platform_source, content_session_id, at) VALUES ('claude', 'forgotten', 1)"
                ).rowcount
            )
        )
    assert status(user, "retention") == "ok"


def test_of_many_transcripts_about_to_be_deleted_the_first_are_named_and_the_rest_counted(user: User) -> None:
    user.run("install")
    for n in range(14):
        past_session(user, f"s-{n:02}", 25 + n / 10)
    details = findings(user)["retention"]["details"]
    assert len(details) == 11 and "s-13.jsonl" in details[0] and details[-1] == "… and 4 more"


def test_where_nothing_is_to_be_kept_nothing_is_missing(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.run("install")
    transcript(user, "s-1", age=25 * 86_400)
    monkeypatch.setenv("CLAUDE_MEM_ENDLESS_KEEP_CONVERSATION", "false")
    assert status(user, "retention") == "ok"


def test_a_neighbour_is_named_and_one_that_hands_over_by_itself_warned_of(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Nobody else" in findings(user)["beside"]["message"]
    user.write("", user.home.data_dir / "claude-mem.db")
    assert "only read" in findings(user)["beside"]["message"]
    change(user, enabledPlugins={"claude-mem@x": True})
    found = findings(user)["beside"]
    assert found["status"] == "ok" and "claude-mem works here too" in found["message"]
    user.write("# Session bottle", user.home.data_dir / "bottles" / "s-1.md")
    found = findings(user)["beside"]
    assert found["status"] == "warn" and "hands nothing over here: claude-mem hands over by itself" in found["message"]
    monkeypatch.setenv("CLAUDE_MEM_ENDLESS_BESIDE", "always")
    assert "two handoffs" in findings(user)["beside"]["message"]


def test_the_neighbour_is_judged_as_the_handoff_judges_it(user: User) -> None:
    groups = [{"matcher": "compact|resume", "hooks": [{"type": "command", "command": "node /x/claude-mem/hook.js"}]}]
    change(user, hooks={"SessionStart": groups})
    found = findings(user)["beside"]
    assert found["status"] == "warn"
    reason = stands_down(beside(user.client, user.home.data_dir), load(user.home))
    assert reason and reason in found["message"]


def test_a_home_open_to_others_fails_and_fix_closes_it(user: User) -> None:
    user.run("install")
    leak = user.home.bottles / "s.md"
    leak.write_text("x")
    leak.chmod(0o644)
    assert exposed(user.home.root) == [leak]
    assert status(user, "modes") == "fail"
    assert findings(user, "--fix")["modes"]["status"] == "ok"
    assert leak.stat().st_mode & 0o777 == 0o600


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:40 / /home/ada rw - nfs4 server:/home rw
31 30 0:41 / /home/ada/local\\040disk rw - xfs /dev/sdb rw
32 22 0:42 / /home/adam rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ada/.claude-mem", "nfs4"),
        ("/home/ada/local disk/x", "xfs"),
        ("/home/adam", "tmpfs"),
        ("/var", "ext4"),
        ("/home/ada", "nfs4"),
    ],
)
def test_the_innermost_mount_decides_on_which_file_system_a_path_is(path: str, kind: str) -> None:
    assert kind_of(Path(path), MOUNTS) == kind


def test_a_home_on_a_network_file_system_is_warned_of(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_home.filesystem(at(user)).status == "ok"
    monkeypatch.setattr(check_home, "kind_of", lambda _: "nfs4")
    assert check_home.filesystem(at(user)).status == "warn"


def test_the_worker_is_reported_running_absent_and_broken(user: User) -> None:
    user.run("install")
    assert "the next hook starts one" in findings(user)["worker"]["message"]
    user.run("worker", "start")
    assert "answers" in findings(user)["worker"]["message"]
    user.run("worker", "stop")
    user.home.failed.touch()
    assert status(user, "worker") == "fail"
    user.home.failed.unlink()
    (user.home.spool / "1.http").write_text("")
    assert status(user, "worker") == "warn"


def test_a_worker_of_another_version_is_stopped_by_fix(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.run("install")
    user.run("worker", "start")
    monkeypatch.setattr(check_home, "__version__", "9.9.9")
    assert "older version" in findings(user)["worker"]["message"]
    assert findings(user, "--fix")["worker"]["fixed"] == "asked to stop"
    assert user.run("worker", "status").code == 1


def test_a_database_that_is_none_or_damaged_fails(user: User) -> None:
    user.run("install")
    with Store.open(user.home.database) as store:
        store.write(lambda db: db.execute("INSERT INTO meta VALUES ('k', ?)", ("x" * 50_000,)))
    assert status(user, "database") == "ok"
    whole = user.home.database.read_bytes()
    user.home.database.write_bytes(whole[: len(whole) // 2])
    assert status(user, "database") == "fail"
    user.home.database.write_bytes(b"only text, no database" * 100)
    assert status(user, "database") == "fail"


def test_a_database_of_a_newer_version_is_told(user: User) -> None:
    user.run("install")
    with Store.open(user.home.database) as store:
        store.write(lambda db: db.execute("INSERT INTO migrations VALUES ('m999_later', '')"))
    assert "newer version" in findings(user)["database"]["message"]


def test_the_command_must_be_on_the_path_for_the_model(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(user.root))
    assert status(user, "command") == "warn"
    program = user.root / "endless"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert status(user, "command") == "ok"


def test_a_setting_that_does_not_fit_is_warned_of(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_MEM_ENDLESS_PLAN_TOKENS", "many")
    assert status(user, "settings") == "warn"


def test_a_socket_directory_that_others_own_fails(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = user.root / ("d" * 90)
    monkeypatch.setenv("CLAUDE_MEM_DATA_DIR", str(deep))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(user.root))
    assert status(user, "socket") == "ok"
    directory = user.home.socket.parent
    if user.home.socket.is_relative_to(user.home.root):
        pytest.fail("the path was meant to be too long for a socket")
    directory.mkdir()
    directory.chmod(0o777)
    try:
        assert status(user, "socket") == "fail"
    finally:
        directory.rmdir()


def test_a_check_that_breaks_hides_no_other(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Context) -> Check:
        raise RuntimeError("boom")

    monkeypatch.setattr(check_past, "beside", broken)
    found = findings(user)
    assert "RuntimeError" in found["broken"]["message"]
    assert "sqlite" in found
