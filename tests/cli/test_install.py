"""``endless install`` and ``endless uninstall`` on real files."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from endless_mode.cli.install import refuse_windows
from endless_mode.errors import EndlessError
from endless_mode.install import file
from endless_mode.install.entries import TIMEOUTS, InstallError, our_interpreter
from tests.install.user import User

BEFORE = '{\n    "model": "opus",\n    "hooks": {"Stop": []},\n\n    "env": {"A":"1"}\n}\n'


def test_a_fresh_user_gets_hooks_rules_a_home_and_compiled_code(user: User) -> None:
    ran = user.run("install")
    assert (ran.code, ran.out) == (0, "")
    value = json.loads(user.settings.read_text())
    assert {event: entries[0]["hooks"][0]["timeout"] for event, entries in value["hooks"].items()} == TIMEOUTS
    assert not any("Tool" in event for event in value["hooks"])
    bottles = os.path.realpath(user.home.bottles)
    assert value["permissions"]["allow"] == [f"Read(/{bottles}/**)", "Bash(endless show:*)", "Bash(endless search:*)"]
    assert int((user.home.root / "installed").read_text()) > 0
    assert (user.home.run / "install.json").stat().st_mode & 0o777 == 0o600
    assert user.home.root.stat().st_mode & 0o777 == 0o700


def test_installing_twice_changes_no_byte_and_makes_no_second_backup(user: User) -> None:
    user.write(BEFORE)
    assert "Installed into" in user.run("install").err
    once = user.files()
    assert "nothing was changed" in user.run("install").err
    assert {k: v for k, v in user.files().items() if "install.json" not in k} == {
        k: v for k, v in once.items() if "install.json" not in k
    }


def test_uninstalling_gives_back_the_bytes_from_before(user: User) -> None:
    user.write(BEFORE)
    user.settings.chmod(0o640)
    user.run("install")
    assert user.settings.read_text() != BEFORE
    assert stat.S_IMODE(user.settings.stat().st_mode) == 0o640
    ran = user.run("uninstall", "--json")
    assert ran.json["changed"] is True
    assert user.settings.read_text() == BEFORE
    assert stat.S_IMODE(user.settings.stat().st_mode) == 0o640
    assert user.home.root.is_dir()
    assert not (user.home.root / "installed").exists()


def test_the_backup_holds_what_was_there(user: User) -> None:
    user.write(BEFORE)
    user.settings.chmod(0o600)
    backup = Path(user.run("install", "--json").json["backup"])
    assert backup.parent == user.settings.parent
    assert backup.read_text() == BEFORE
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_a_file_and_directory_that_install_made_are_gone_after_uninstalling(user: User) -> None:
    user.run("install")
    user.run("uninstall")
    assert not user.client.exists()


def test_a_file_that_install_made_stays_when_something_else_is_in_it_by_then(user: User) -> None:
    user.run("install")
    value = json.loads(user.settings.read_text())
    user.write(json.dumps({**value, "model": "opus"}))
    user.run("uninstall")
    assert json.loads(user.settings.read_text()) == {"model": "opus"}


def test_what_the_client_rewrote_in_its_own_layout_is_still_taken_out(user: User) -> None:
    user.write(BEFORE)
    user.run("install")
    user.write(json.dumps(json.loads(user.settings.read_text()), indent=2))
    user.run("uninstall")
    assert json.loads(user.settings.read_text()) == json.loads(BEFORE)


def test_a_dry_run_prints_the_settings_and_touches_nothing(user: User) -> None:
    user.write(BEFORE)
    before = user.files()
    ran = user.run("install", "--dry-run")
    assert user.files() == before
    planned = ran.out
    user.run("install")
    assert user.settings.read_text() == planned
    installed = user.files()
    assert user.run("uninstall", "--dry-run").out == BEFORE
    assert user.files() == installed


def test_settings_behind_a_link_are_changed_where_they_are(user: User) -> None:
    real = user.write(BEFORE, user.root / "dotfiles/claude.json")
    user.client.mkdir()
    user.settings.symlink_to(Path("../dotfiles/claude.json"))
    user.run("install")
    assert user.settings.is_symlink()
    assert "PreCompact" in real.read_text()
    user.run("uninstall")
    assert user.settings.is_symlink()
    assert real.read_text() == BEFORE


def test_a_project_install_goes_into_its_local_settings(user: User) -> None:
    user.run("install", "--project")
    local = user.project / ".claude/settings.local.json"
    assert "PreCompact" in local.read_text()
    assert not user.settings.exists()
    user.run("uninstall", "--project")
    assert not local.parent.exists()


def test_the_clients_directory_may_be_elsewhere(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(user.root / "elsewhere"))
    user.run("install")
    assert (user.root / "elsewhere/settings.json").exists()
    assert not user.client.exists()


def test_a_chosen_data_directory_is_written_into_the_hooks(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_MEM_DATA_DIR", str(user.root / "da ta"))
    user.run("install")
    value = json.loads(user.settings.read_text())
    assert value["hooks"]["Stop"][0]["hooks"][0]["command"].endswith(f" Stop '{user.root}/da ta'; exit 0")
    assert f"/{user.root}/da ta/endless/bottles/**" in value["permissions"]["allow"][0]


def test_rules_only_leaves_the_hooks_to_the_plugin(user: User) -> None:
    user.run("install", "--rules-only")
    assert list(json.loads(user.settings.read_text())) == ["permissions"]


PROMISE = "survive compaction"


def test_rules_only_after_an_install_leaves_the_hooks_where_they_are(user: User) -> None:
    user.run("install")
    before = user.settings.read_bytes()
    ran = user.run("install", "--rules-only")
    assert user.settings.read_bytes() == before
    assert "The hooks that were there stay" in ran.err and PROMISE not in ran.err
    assert user.run("status", "--json").json["on"] is True


def test_rules_only_takes_out_hooks_that_an_enabled_plugin_doubles(user: User) -> None:
    user.run("install")
    user.write(json.dumps({**json.loads(user.settings.read_text()), "enabledPlugins": {"endless-mode@m": True}}))
    ran = user.run("install", "--rules-only")
    assert set(json.loads(user.settings.read_text())) == {"permissions", "enabledPlugins"}
    assert "the plugin endless-mode@m brings the same" in ran.err and PROMISE not in ran.err


def test_rules_alone_promise_nothing_and_are_called_rules(user: User) -> None:
    ran = user.run("install", "--rules-only")
    assert "The permission rules were put into" in ran.err and "no session is recorded" in ran.err
    assert PROMISE not in ran.err
    ran = user.run("uninstall")
    assert "Our permission rules were taken out of" in ran.err and "hooks" not in ran.err.partition("\n")[0]


def test_what_is_still_elsewhere_is_called_what_it_is(user: User) -> None:
    user.run("install", "--rules-only")
    user.run("install", "--project")
    ran = user.run("uninstall", "--project")
    assert "Our hooks and permission rules were taken out of" in ran.err
    assert f"Our permission rules are still in {user.settings}." in ran.err


def test_an_install_that_something_switches_off_promises_nothing(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.write('{"disableAllHooks": true}')
    ran = user.run("install")
    assert "it does not work yet: `disableAllHooks`" in ran.err and PROMISE not in ran.err
    user.write("{}")
    monkeypatch.setenv("CLAUDE_MEM_ENDLESS_MODE_ENABLED", "false")
    assert PROMISE not in user.run("install").err


@pytest.mark.parametrize("text", ["", "\n"])
def test_an_empty_file_holds_no_settings_and_is_empty_again_afterwards(user: User, text: str) -> None:
    user.write(text)
    assert user.run("install").code == 0
    assert user.run("status", "--json").json["on"] is True
    user.run("uninstall")
    assert user.settings.read_text() == text


def test_of_many_backups_the_first_and_the_newest_stay(user: User) -> None:
    user.write(BEFORE)
    for n in range(7):
        user.run("install")
        user.write(json.dumps({**json.loads(user.settings.read_text()), "n": n}))
        user.run("uninstall")
    (user.client / "settings.json.endless-mine").write_text("not ours")
    user.run("install")
    kept = file.backups(user.settings)
    assert len(kept) == 1 + file.KEPT
    assert kept[0].read_text() == BEFORE
    assert json.loads(kept[-1].read_text())["n"] == 6
    assert (user.client / "settings.json.endless-mine").exists()


def test_an_uninstall_finds_the_home_that_the_hooks_name(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_MEM_DATA_DIR", str(user.root / "it's da ta"))
    user.run("install")
    chosen = user.home
    monkeypatch.delenv("CLAUDE_MEM_DATA_DIR")
    ran = user.run("uninstall", "--json")
    assert ran.json["home"] == str(chosen.root)
    assert not user.client.exists()
    assert not (chosen.root / "installed").exists() and not (chosen.run / "install.json").exists()


def test_a_directory_that_somebody_else_wrote_into_hooks_is_not_purged(user: User) -> None:
    user.run("install")
    precious = user.root / "precious/endless"
    precious.mkdir(parents=True)
    local = user.project / ".claude/settings.local.json"
    user.write(user.settings.read_text().replace("; exit 0", f" {precious.parent}; exit 0"), local)
    ran = user.run("uninstall", "--project", "--purge", "--json")
    assert ran.json["home"] == str(user.home.root)
    assert precious.exists()


def test_an_install_with_another_data_directory_takes_the_first_ones_place(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.write(BEFORE)
    user.run("install")
    first = user.home
    monkeypatch.setenv("CLAUDE_MEM_DATA_DIR", str(user.root / "data"))
    user.run("install")
    user.run("uninstall")
    assert user.settings.read_text() == BEFORE
    monkeypatch.delenv("CLAUDE_MEM_DATA_DIR")
    assert user.run("uninstall", "--json").json["changed"] is False
    assert not (first.root / "installed").exists()


@pytest.mark.parametrize(
    ("text", "code"),
    [('{"a": 1 // no', "settings_broken"), ('{"hooks": [1]}', "settings_shape"), ("\udc80", "settings_broken")],
)
def test_settings_that_cannot_be_changed_stay_and_nothing_else_is_made(user: User, text: str, code: str) -> None:
    user.client.mkdir()
    user.settings.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = user.files()
    ran = user.run("install", "--json")
    assert ran.code == 1
    assert json.loads(ran.err)["code"] == code
    assert json.loads(ran.err)["hint"]
    assert user.files() == before
    assert not user.home.root.exists()


def test_a_read_only_file_is_respected(user: User) -> None:
    user.write(BEFORE)
    user.settings.chmod(0o400)
    before = user.files()
    ran = user.run("install")
    assert ran.code == 1
    assert "read-only" in ran.err
    assert user.files() == before


def test_a_directory_in_the_files_place_is_an_error_with_a_hint(user: User) -> None:
    user.settings.mkdir(parents=True)
    ran = user.run("install")
    assert (ran.code, "hint:" in ran.err) == (1, True)


def test_a_change_by_another_program_meanwhile_is_not_lost(user: User) -> None:
    user.write(BEFORE)
    read = file.read(user.settings)
    user.write('{"other": true}')
    with pytest.raises(InstallError) as raised:
        file.replace(read, "{}")
    assert raised.value.code == "settings_changed"
    assert user.settings.read_text() == '{"other": true}'
    assert list(user.client.iterdir()) == [user.settings]


def test_purging_deletes_the_home_and_stops_the_worker(user: User) -> None:
    user.run("install")
    assert user.run("worker", "start").code == 0
    ran = user.run("uninstall", "--purge", "--json")
    assert (ran.json["worker_stopped"], ran.json["purged"]) == (True, True)
    assert not user.home.root.exists()


def test_purging_takes_the_hooks_out_of_every_place_they_were_put(user: User) -> None:
    user.run("install")
    user.run("install", "--project")
    local = user.project / ".claude/settings.local.json"
    assert user.run("uninstall", "--json").json["remaining"] == [str(local)]
    user.run("install")
    assert user.run("uninstall", "--purge", "--json").json["remaining"] == []
    assert not local.exists()
    assert not user.home.root.exists()


def test_beside_the_plugin_the_doubled_hooks_are_pointed_out(user: User) -> None:
    user.write('{"enabledPlugins": {"endless-mode@m": true}}')
    assert "--rules-only" in user.run("install").err
    assert "--rules-only" not in user.run("install", "--rules-only").err


def test_a_home_that_is_a_link_is_not_purged(user: User) -> None:
    (user.root / "valuable").mkdir()
    (user.root / "valuable/file").write_text("x")
    (user.root / ".claude-mem").mkdir()
    user.home.root.symlink_to(user.root / "valuable")
    assert user.run("uninstall", "--purge").code == 1
    assert (user.root / "valuable/file").exists()


def test_installing_again_after_an_uninstall_starts_a_new_time(user: User) -> None:
    user.run("install")
    (user.home.root / "installed").write_text("1\n")
    user.run("install")
    assert (user.home.root / "installed").read_text() == "1\n"
    user.run("uninstall")
    user.run("install")
    assert int((user.home.root / "installed").read_text()) > 1


def hook_line(user: User, event: str) -> str:
    command: str = json.loads(user.settings.read_text())["hooks"][event][0]["hooks"][0]["command"]
    return command


def sh(line: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["/bin/sh", "-c", line], input=b"{}", capture_output=True, timeout=60, env=environ, check=False
    )


def test_the_installed_hook_runs_in_a_plain_shell_and_is_silent(user: User) -> None:
    user.run("install")
    done = sh(hook_line(user, "PreCompact"), HOME=str(user.root), CLAUDE_MEM_INTERNAL="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("gone", ["interpreter", "hook"])
def test_a_hook_whose_install_is_gone_says_nothing_and_blocks_nothing(user: User, gone: str) -> None:
    """Python itself exits with 2 when its script is missing, and for the client that means: do not compact."""
    from endless_mode.install.entries import command

    here = user.root / "it's a $HOME ünï"
    here.mkdir()
    (here / "python").symlink_to(sys.executable)
    (here / "run.py").write_text("print('ran', *__import__('sys').argv[1:])")
    line = command("PreCompact", "", str(here / "python"), str(here / "run.py"))
    assert sh(line).stdout == b"ran claude-code PreCompact\n"
    (here / {"interpreter": "python", "hook": "run.py"}[gone]).unlink()
    done = sh(line)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_programs_are_named_for_the_plugin(user: User) -> None:
    interpreter, hook = user.run("install", "--programs").out.splitlines()
    assert os.access(interpreter, os.X_OK)
    assert Path(hook).name == "run.py"
    assert Path(hook).exists()
    assert not user.client.exists()


def test_the_interpreter_has_one_name_however_the_command_was_started(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = user.root / "bin"
    directory.mkdir()
    for name in ("python", "python3", "python3.11"):
        (directory / name).symlink_to(sys.executable)
    (directory / "other").write_text("another program")
    names = set()
    for name in ("python", "python3", "python3.11"):
        monkeypatch.setattr(sys, "executable", str(directory / name))
        names.add(our_interpreter())
    assert names == {str(directory / "python3")}
    (directory / "python3").unlink()
    (directory / "python3").symlink_to("other")
    assert our_interpreter() == str(directory / "python")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_stays_theirs(user: User) -> None:
    user.write(BEFORE)
    os.chown(user.settings, 12345, 54321)
    user.run("install")
    info = user.settings.stat()
    assert (info.st_uid, info.st_gid) == (12345, 54321)


def test_an_event_of_a_later_client_in_an_unknown_shape_does_not_matter(user: User) -> None:
    user.write('{"hooks": {"Later": {"a": 1}}}')
    assert user.run("install").code == 0
    assert json.loads(user.settings.read_text())["hooks"]["Later"] == {"a": 1}
    user.run("uninstall")
    assert user.settings.read_text() == '{"hooks": {"Later": {"a": 1}}}'


def test_reports_can_be_printed_where_the_terminal_knows_no_unicode(user: User) -> None:
    user.run("install")
    environ = {"HOME": str(user.root), "PATH": os.environ["PATH"], "PYTHONIOENCODING": "ascii"}
    for words in (["status"], ["doctor"], ["config", "list"], ["worker", "logs"], ["install", "--dry-run"]):
        command = [sys.executable, "-m", "endless_mode", *words]
        done = subprocess.run(command, cwd=user.project, env=environ, capture_output=True, timeout=60, check=False)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


def test_native_windows_is_refused_with_a_way_out() -> None:
    with pytest.raises(EndlessError) as raised:
        refuse_windows("nt")
    assert "WSL" in raised.value.hint
    refuse_windows("posix")
