"""What a command says when it was called wrongly or for something that is not there."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from endless_mode.cli import COMMANDS, main
from endless_mode.ingest import ingest_file
from endless_mode.store import Store
from tests.install.user import User
from tests.live.transcript import Transcript

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
    assert (ran.code, f"[{code}]" in ran.err) == (2 if code == "bad_id" else 1, True)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("forget", "--since", "yesterday", "--json"), "bad_date", "'yesterday'"),
        (("config", "set", "plan_tokens", "abc", "--json"), "bad_setting", "'abc'"),
        (("config", "get", "nosuch", "--json"), "unknown_setting", "'nosuch'"),
        (("show", "abc", "--json"), "bad_id", "'abc'"),
        (("search", " ", "--json"), "nothing_asked", "what?"),
    ],
)
def test_words_that_do_not_fit_are_wrong_usage_and_named(
    user: User, words: tuple[str, ...], code: str, told: str
) -> None:
    Store.open(_made(user)).close()
    ran = user.run(*words)
    error = json.loads(ran.err)
    assert (ran.code, error["code"], told in error["message"]) == (2, code, True)


@pytest.mark.parametrize("words", [("search", "x"), ("sessions",), ("status",), ("worker", "logs")])
@pytest.mark.parametrize("count", ["0", "-1", "many", "9" * 30])
def test_a_count_that_cannot_be_is_wrong_usage(
    capsysbinary: pytest.CaptureFixture[bytes], words: tuple[str, ...], count: str
) -> None:
    option = "-n" if words[0] == "worker" else "--limit"
    code, told = refused(capsysbinary, *words, f"{option}={count}")
    assert (code, f"{count[:40]!r}" in told) == (2, True)


@pytest.mark.parametrize("words", [("status",), ("worker", "status")])
def test_an_unknown_option_is_answered_by_the_command_it_was_given_to(
    capsysbinary: pytest.CaptureFixture[bytes], words: tuple[str, ...]
) -> None:
    code, told = refused(capsysbinary, *words, "--jsn")
    assert (code, told.splitlines()[0].startswith(f"usage: endless {' '.join(words)} ")) == (2, True)
    assert told.splitlines()[-1] == f"hint: See `endless {' '.join(words)} --help`."


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
@pytest.mark.parametrize(
    "words", [["bottle", str(DEMO), "--stdout"], ["status"], ["status", "--json"], ["--help"], ["sessions", "--help"]]
)
def test_output_that_cannot_be_written_is_an_error_without_a_traceback(user: User, words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = process(user, words, stdout=full)
    assert (done.returncode, b"Traceback" in done.stderr, b"Exception ignored" in done.stderr) == (1, False, False)
    told = done.stderr.decode()
    assert (json.loads(told)["code"] == "cannot_write") if "--json" in words else ("[cannot_write]" in told)


@pytest.mark.parametrize("words", [["status"], ["bottle", str(DEMO), "--stdout"], ["worker", "status"]])
def test_output_that_is_closed_is_an_error_without_a_traceback(user: User, words: list[str]) -> None:
    line = shlex.join([sys.executable, "-m", "endless_mode", *words]) + " >&-"
    done = process(user, ["-c", line], program="/bin/sh")
    assert (done.returncode, b"[cannot_write]" in done.stderr, b"Traceback" in done.stderr) == (1, True, False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
def test_talk_that_nobody_can_hear_stops_nothing(user: User) -> None:
    with Path("/dev/full").open("wb") as full:
        done = process(user, ["sessions"], stderr=full, stdout=subprocess.PIPE)
        assert (done.returncode, done.stdout) == (0, b"")


def test_a_reader_that_goes_away_ends_it_silently(user: User) -> None:
    line = shlex.join([sys.executable, "-m", "endless_mode", "bottle", str(DEMO), "--stdout"]) + " | head -c 1"
    done = process(user, ["-c", line], program="/bin/sh", stdout=subprocess.PIPE)
    assert (done.stdout, done.stderr) == (b"#", b"")


def process(
    user: User, words: list[str], *, program: str = "", stdout: Any = None, stderr: Any = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    command = [program, *words] if program else [sys.executable, "-m", "endless_mode", *words]
    environ = {"HOME": str(user.root), "PATH": os.environ["PATH"]}
    return subprocess.run(command, cwd=user.project, env=environ, stdout=stdout, stderr=stderr, timeout=60, check=False)


def _made(user: User) -> Path:
    user.home.create()
    return user.home.database


def test_an_error_stands_alone_on_standard_error_when_json_is_asked_for(user: User) -> None:
    ran = user.run("resume", "nope-nope", "--json")
    assert (ran.code, json.loads(ran.err)["code"]) == (1, "no_such_session")
    assert "note: No hook of ours" in user.run("resume", "nope-nope", "--print").err


def test_a_session_that_nobody_knows_is_not_forgotten_and_starts_no_worker(user: User) -> None:
    Store.open(_made(user)).close()
    for words in (("forget", "nope"), ("forget", "nope", "--yes"), ("forget", "nope", "--yes", "--json")):
        ran = user.run(*words)
        assert (ran.code, ran.out, "no_such_session" in ran.err) == (1, "", True)
    assert "6 characters or more" in user.run("forget", "nope").err
    ran = user.run("forget", "--project", "nowhere", "--yes", "--json")
    assert (ran.code, ran.json) == (1, {"done": False, "sessions": [], "files": []})
    assert not user.home.socket.exists()


def test_a_session_with_a_transcript_that_is_not_read_in_yet_can_be_forgotten(user: User) -> None:
    Store.open(_made(user)).close()
    Transcript(user.client / "projects/p/s-123456.jsonl", "s-123456").turn("count the herons")
    ran = user.run("forget", "s-123456")
    assert (ran.code, "not stored here" in ran.out, "what goes" in ran.out) == (0, True, True)


def test_no_session_of_a_directory_is_not_no_session_at_all(user: User) -> None:
    assert "No sessions are known yet." in user.run("sessions").err
    Transcript(user.client / "projects/p/s-1.jsonl", "s-1", str(user.project)).turn("count the herons")
    with Store.open(_made(user)) as store:
        ingest_file(store, user.client / "projects/p/s-1.jsonl", session_id="s-1")
    ran = user.run("sessions", "--project", "/nope")
    assert (ran.code, ran.out) == (0, "")
    assert "No session of /nope is known." in ran.err and "yet" not in ran.err
    for place in (".", "/", str(user.project.parent)):
        assert "s-1" in user.run("sessions", "--project", place).out
    assert user.run("sessions").out.splitlines()[0].split() == ["session", "last", "prompts", "legs", "project"]


def test_a_search_that_finds_nothing_says_what_to_do(user: User) -> None:
    assert "no database yet" in user.run("search", "herons").err
    Store.open(_made(user)).close()
    assert "fewer words" in user.run("search", "herons").err
    assert "Leave out" in user.run("search", "herons", "--project", ".").err


def test_the_beginning_of_an_id_that_is_too_short_is_told(user: User) -> None:
    ran = user.run("bottle", "6aec5", "--stdout")
    assert (ran.code, "6 characters or more" in ran.err) == (1, True)


def test_a_data_directory_that_is_passed_over_is_told(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_MEM_DATA_DIR", "data")
    assert "note: CLAUDE_MEM_DATA_DIR is 'data'" in user.run("sessions").err
    for words in (("install",), ("uninstall", "--purge"), ("config", "set", "plan_tokens", "1")):
        ran = user.run(*words)
        assert (ran.code, "[data_dir_relative]" in ran.err) == (1, True)
    assert not user.client.exists() and not user.home.root.exists()
    found = {check["name"]: check for check in user.run("doctor", "--json").json["checks"]}
    assert (found["settings"]["status"], "'data'" in found["settings"]["message"]) == ("fail", True)


@pytest.mark.parametrize("name", ["x" * 300, "~nobody-of-this-name/x", "", "a\nb", "."])
def test_a_name_that_no_file_can_have_is_no_session(user: User, name: str) -> None:
    ran = user.run("bottle", name, "--stdout")
    assert (ran.code, ran.out) == (1, "")
    assert "hint: " in ran.err


def test_a_directory_is_called_one(user: User, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").mkdir()
    for name in (str(tmp_path / "d.jsonl"), "d.jsonl"):
        (user.project / "d.jsonl").mkdir(exist_ok=True)
        ran = user.run("bottle", name, "--stdout")
        assert (ran.code, f"{name} is a directory." in ran.err, "Nothing else" in ran.err) == (1, True, False)


def test_a_file_that_is_not_packed_as_its_name_says_is_called_that(user: User) -> None:
    (user.project / "bad.jsonl.gz").write_text("x\n")
    ran = user.run("bottle", "bad.jsonl.gz", "--stdout")
    assert (ran.code, "is not packed with gzip" in ran.err, "permissions" in ran.err) == (1, True, False)
    (user.project / "cut.jsonl.gz").write_bytes(DEMO.read_bytes()[:5])
    assert "transcript_unreadable" in user.run("bottle", "cut.jsonl.gz", "--stdout").err


def test_no_directory_is_made_for_a_bottle(user: User) -> None:
    ran = user.run("bottle", str(DEMO), "-o", "nope/x.md")
    assert (ran.code, "There is no directory nope." in ran.err) == (1, True)
    assert not (user.project / "nope").exists()


def test_a_handoff_that_is_only_shown_has_no_mark_of_a_delivery(user: User) -> None:
    ran = user.run("handoff", str(DEMO))
    assert (ran.code, "00000000" in ran.out, "Endless Mode handoff" in ran.out) == (0, False, False)


def test_a_task_that_has_its_answer_is_called_answered(user: User) -> None:
    t = Transcript(user.project / "s-1.jsonl", "s-1")
    t.turn("count the herons")
    assert "\nCurrent task (answered already, as far as the record shows): count the herons\n" in (
        user.run("handoff", "s-1.jsonl").out
    )
    t.prompt("count the (odd) cranes, answered): too")
    assert "\nCurrent task: count the (odd) cranes" in user.run("handoff", "s-1.jsonl").out


def test_what_stands_behind_a_line_is_printed_once(user: User) -> None:
    t = Transcript(user.project / "s-1.jsonl", "s-1")
    t.turn("count the herons")
    t.result(t.call("Bash", command="pytest -q"), "1 passed")
    ran = user.run("show", "--in", "s-1.jsonl", "2", "--full")
    shown = ran.out.partition("--- input")
    assert (ran.code, shown[0].count("1 passed"), shown[2].count("1 passed")) == (0, 0, 1)


def test_a_transcript_that_is_gone_is_told_in_one_note(user: User) -> None:
    path = user.client / "projects/p/s-123456.jsonl"
    Transcript(path, "s-123456").turn("count the herons")
    with Store.open(_made(user)) as store:
        ingest_file(store, path, session_id="s-123456")
    assert user.run("bottle", "s-123456").code == 0
    path.unlink()
    ran = user.run("bottle", "s-123456")
    assert ran.code == 0
    notes = [line for line in ran.err.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1 and "stays as it is" in notes[0]


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
