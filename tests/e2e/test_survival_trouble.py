"""Everything of ours may fail: the client and its session are never worse off than without us."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from .answers import bash, call, say
from .client import Client, Result
from .home import Home
from .messages_api import MessagesApi
from .plan import handoffs_in
from .surviving import Plan, Surviving, as_plain_user, results_of, surviving

pytestmark = pytest.mark.e2e


@pytest.fixture
def us(client: Client, api: MessagesApi, endless_bin: Path) -> Iterator[Surviving]:
    with surviving(client, api, endless_bin) as found:
        yield found


def compact(us: Surviving, api: MessagesApi, *steps: object, **how: object) -> Result:
    """One run that compacts in mid-turn, answers by `steps` and ends with `Through.`"""
    work = [call(bash("echo one")), call(bash("echo two")).full()]
    api.script([*work, *steps, say("Through.")])  # type: ignore[list-item]
    result = us.client.run("Count the herons", **how)  # type: ignore[arg-type]
    assert (result.exit, result.text) == (0, "Through."), result.stderr
    assert len(api.summariser) == 1
    return result


# --- no worker, no files ----------------------------------------------------------------------------------------------


def home_is_a_file(us: Surviving) -> None:
    shutil.rmtree(us.root)
    us.root.write_text("")


def database_is_a_directory(us: Surviving) -> None:
    for file in us.root.glob("endless.db*"):
        file.unlink()
    (us.root / "endless.db").mkdir()
    (us.root / "endless.db/keep").touch()


def run_is_a_file(us: Surviving) -> None:
    shutil.rmtree(us.root / "run")
    (us.root / "run").write_text("")


@pytest.mark.parametrize("trouble", [home_is_a_file, database_is_a_directory, run_is_a_file])
def test_where_no_worker_can_start_the_state_is_handed_over(
    us: Surviving, api: MessagesApi, trouble: Callable[[Surviving], None]
) -> None:
    us.complaints = {"no_store", "store_failed", "bottle_not_written", "failed", "start_failed", "handoff_not_noted"}
    trouble(us)
    compact(us, api)
    us.once(api.after_compaction(), "Count the herons")
    assert us.worker() == 0
    api.script([say("Of the herons.")])
    with us.client.start("What was it about?", proceed=True) as running:
        running.wait()
    assert len(handoffs_in(api.main[-1])) == 1


def test_a_home_that_may_only_be_read_hands_the_state_over(client: Client, api: MessagesApi, endless_bin: Path) -> None:
    with surviving(client, api, endless_bin) as us:
        us.complaints = {"no_store", "store_failed", "bottle_not_written", "failed", "handoff_not_noted"}
        us.client = replace(us.client, before=as_plain_user())
        api.script([say("Hello.")])
        first = us.client.run("Hello")
        us.kill_worker()
        parts = [us.root, *us.root.rglob("*")]
        for part in parts:
            part.chmod(part.stat().st_mode & ~0o222)
        compact(us, api, resume=first.session_id)
        us.once(api.after_compaction(), "Count the herons")
        for part in parts:
            part.chmod(part.stat().st_mode | 0o200)


def test_an_interpreter_without_the_package_is_silent(us: Surviving, api: MessagesApi, tmp_path: Path) -> None:
    """The hook runs, but neither a worker nor the last resort can."""
    bare = tmp_path / "bare"
    (bare / "bin").mkdir(parents=True)
    (bare / "pyvenv.cfg").write_text(f"home = {Path(os.path.realpath(sys.executable)).parent}\n")
    (bare / "bin/python3").symlink_to(os.path.realpath(sys.executable))
    _other_interpreter(us, bare / "bin/python3")
    compact(us, api)
    assert handoffs_in(api.after_compaction()) == []


def test_an_interpreter_that_vanished_is_silent(us: Surviving, api: MessagesApi, tmp_path: Path) -> None:
    _other_interpreter(us, tmp_path / "gone/bin/python3")
    compact(us, api)
    assert handoffs_in(api.after_compaction()) == []
    assert us.worker() == 0 and us.log() == []


def _other_interpreter(us: Surviving, python: Path) -> None:
    text = json.dumps(us.home.settings)
    ours = us.home.settings["hooks"]["Stop"][0]["hooks"][0]["command"].split()[2]
    assert Path(ours).exists() and text.count(ours) >= 12
    us.home.write_settings(**json.loads(text.replace(ours, str(python))))


# --- permissions ------------------------------------------------------------------------------------------------------


def test_where_reading_is_denied_the_handoff_suffices(us: Surviving, api: MessagesApi) -> None:
    permissions = us.home.settings["permissions"]
    us.home.write_settings(permissions={**permissions, "deny": ["Read(~/.claude-mem/**)"]})
    plan = Plan()
    compact(us, api, plan)
    handoff = us.once(api.after_compaction(), "Count the herons")
    state = handoff.partition("## Where things stand")[2]
    assert "Last request" in state and "Count the herons" in state
    (refused,) = [found for key, found in results_of(api.main[-1]).items() if "/bottles/" in key]
    assert refused[0] and "denied" in refused[1]


def test_settings_that_may_only_be_read_are_left_alone_with_a_reason(
    client: Client, api: MessagesApi, endless_bin: Path
) -> None:
    with surviving(client, api, endless_bin, install=False) as us:
        store = _read_only_settings(us.home, '{"model": "opus"}\n')
        done = us.home.command([*as_plain_user(), endless_bin, "install"])
        assert done.returncode != 0
        assert "settings.json" in done.stderr + done.stdout and "Traceback" not in done.stderr
        assert store.read_text() == '{"model": "opus"}\n'
        store.parent.chmod(0o700)


def test_settings_that_became_read_only_work_on(client: Client, api: MessagesApi, endless_bin: Path) -> None:
    with surviving(client, api, endless_bin) as us:
        store = _read_only_settings(us.home, (us.home.config / "settings.json").read_text())
        us.client = replace(us.client, before=as_plain_user())
        plan = Plan()
        compact(us, api, plan)
        us.once(api.after_compaction(), "Count the herons")
        assert "echo one" in plan.got(api.main[-1])
        store.parent.chmod(0o700)


def _read_only_settings(home: Home, text: str) -> Path:
    """The settings as a link into a directory that may only be read, as package managers make them."""
    store = home.root / "store/settings.json"
    store.parent.mkdir()
    store.write_text(text)
    store.chmod(0o444)
    store.parent.chmod(0o555)
    (home.config / "settings.json").unlink(missing_ok=True)
    (home.config / "settings.json").symlink_to(store)
    return store


# --- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["my home ünï 家", "it's $HOME; (b) [c] & d"])
def test_a_home_with_a_difficult_name(client: Client, api: MessagesApi, endless_bin: Path, name: str) -> None:
    home = Home(api.url)
    home.home = home.home.rename(home.root / name)
    home.config = home.home / ".claude"
    home.project = home.project.rename(home.root / f"project {name}")
    state = json.loads((home.home / ".claude.json").read_text())
    state["projects"] = {str(home.project): {"hasTrustDialogAccepted": True}}
    (home.home / ".claude.json").write_text(json.dumps(state))
    _survives(client, api, endless_bin, home)


def test_the_clients_directory_elsewhere(client: Client, api: MessagesApi, endless_bin: Path) -> None:
    home = Home(api.url, config_elsewhere=True)
    _survives(client, api, endless_bin, home)
    assert not (home.home / ".claude").exists()


def _survives(client: Client, api: MessagesApi, endless_bin: Path, home: Home) -> None:
    try:
        with surviving(client, api, endless_bin, home=home) as us:
            plan = Plan()
            result = compact(us, api, plan)
            us.once(api.after_compaction(), "Count the herons", str(us.root / "bottles" / f"{result.session_id}.md"))
            assert "echo one" in plan.got(api.main[-1])
    finally:
        home.close()


def test_uninstalled_in_the_middle_of_a_session(us: Surviving, api: MessagesApi) -> None:
    """A client may keep the hooks until it ends (2.1.197 does so near a write of its own); they disturb nothing."""
    with us.client.stream() as stream:
        api.script([call(bash("echo one")), say("Seventeen herons.")])
        stream.ask("Count the herons")
        done = us.home.command([us.endless, "uninstall", "--purge"])
        assert done.returncode == 0, done.stderr
        assert not us.root.exists()
        api.script([call(bash("echo two")).full(), say("Two storks."), say("Good bye.")])
        assert stream.ask("Count the storks")["result"] == "Two storks."
        stream.ask("Thank you")
        stream.finish()
    assert len(api.summariser) == 1
    assert len(handoffs_in(api.main[-1])) <= 1


def test_the_checks_see_a_hook_that_fails(client: Client, api: MessagesApi, endless_bin: Path) -> None:
    """The laboratory proves itself: what every test here relies on cannot pass by accident."""
    with surviving(client, api, endless_bin) as us:
        us.home.add_hook("Stop", "echo endless >&2; exit 1")
        us.home.add_hook("UserPromptSubmit", "sleep 20", timeout=1)
        us.home.add_hook("PreCompact", "echo endless")
        child = subprocess.Popen(["sleep", "60"], env=us.home.env)
        try:
            compact(us, api)
            found = us.failures()
            assert any("Stop" in line for line in found) and any("UserPromptSubmit" in line for line in found)
            with pytest.raises(AssertionError):
                us.check()
            us.home.write_settings(hooks={})
            assert child.pid in us.home.processes()
        finally:
            child.kill()
            child.wait()
            for log in us.home.root.glob("debug-*.log"):
                log.unlink()
            us.home.transcripts()[0].unlink()
            us.api.requests.clear()
