"""What a command says when it was called wrongly or for something that is not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from endless_mode.cli import COMMANDS, main
from tests.install.user import User

DEMO = Path(__file__).parents[2] / "demo" / "session.jsonl.gz"


def refused(capsysbinary: pytest.CaptureFixture[bytes], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(str(left.value.code)), capsysbinary.readouterr().err.decode()


def test_the_help_lists_every_command(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main([]) == 2
    told = capsysbinary.readouterr().out.decode()
    assert all(f"\n  {name} " in told and about in told for name, about in COMMANDS.items())


def test_wrong_usage_has_a_code_and_a_hint(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    code, told = refused(capsysbinary, "bottle")
    assert code == 2
    assert told.splitlines()[-2:] == [
        "endless: the following arguments are required: TARGET. [usage]",
        "hint: See `endless bottle --help`.",
    ]
    code, told = refused(capsysbinary, "handoff", "x", "--context-tokens", "0", "--json")
    assert code == 2
    assert told.startswith('{"code": "usage", "message": "argument --context-tokens')


def test_commands_that_were_not_told_what_for_are_wrong_usage(user: User) -> None:
    ran = user.run("resume", "--json")
    assert (ran.code, "no_session_named" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("ids", "code"),
    [
        (["9" * 30], "no_such_observation"),
        (["9" * 5_000], "no_such_observation"),
        (["cm:" + "9" * 30], "no_such_observation"),
        (["12-3"], "bad_id"),
        (["twelve"], "bad_id"),
    ],
)
def test_ids_that_cannot_be_are_refused(user: User, ids: list[str], code: str) -> None:
    ran = user.run("show", "--in", str(DEMO), *ids)
    assert (ran.code, f"[{code}]" in ran.err) == (1, True)


@pytest.mark.parametrize("name", ["x" * 300, "~nobody-of-this-name/x", "", "a\nb", "."])
def test_a_name_that_no_file_can_have_is_no_session(user: User, name: str) -> None:
    ran = user.run("bottle", name, "--stdout")
    assert (ran.code, ran.out) == (1, "")
    assert "hint: " in ran.err


def test_a_directory_is_called_one(user: User, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").mkdir()
    assert "Is a directory" in user.run("bottle", str(tmp_path / "d.jsonl"), "--stdout").err


def test_a_device_is_written_to_and_not_replaced(user: User, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    small = tmp_path / "small.jsonl"
    small.write_text(
        '{"type":"user","uuid":"u1","sessionId":"s-1","timestamp":"2026-01-22T10:32:00.000Z",'
        '"message":{"role":"user","content":"Make the tests pass."}}\n'
    )
    try:
        ran = user.run("bottle", str(small), "-o", str(pipe))
        assert ran.code == 0, ran.err
        assert os.read(reader, 60_000).decode().startswith("# Session bottle — s-1\n")
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_programs_are_told_as_json_too(user: User) -> None:
    assert set(user.run("install", "--programs", "--json").json) == {"interpreter", "hook_file"}


def test_a_dry_purge_names_what_would_go(user: User) -> None:
    user.run("install")
    assert f"{user.home.root} would be deleted." in user.run("uninstall", "--purge", "--dry-run").err
    assert user.home.root.exists()
