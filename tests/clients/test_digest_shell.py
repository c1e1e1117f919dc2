"""Shell commands: how they ended, and what of their output is kept."""

from __future__ import annotations

from typing import Any

import pytest

from endless_mode.clients.claude_code.detail import Detail
from endless_mode.clients.claude_code.digest import digest
from endless_mode.model import Digest, Status, ToolEvent


def run(command: str, result: str = "", status: Status = "ok", **detail: Any) -> Digest:
    return digest(
        ToolEvent("t1", "Bash", 0, 0, {"command": command}, result=result, detail=Detail(**detail), status=status)
    )


PYTEST = """Exit code 1
F..                                                                      [100%]
=================================== FAILURES ===================================
_________________________________ test_total __________________________________

    def test_total():
>       assert total([1, 2]) == 4
E       AssertionError: assert 3 == 4

tests/test_sum.py:7: AssertionError
=========================== short test summary info ============================
FAILED tests/test_sum.py::test_total - AssertionError: assert 3 == 4
========================= 1 failed, 2 passed in 0.03s ==========================
"""

SUMMARIES = [
    ("pytest -q", "41 passed, 1 skipped in 2.31s", "41 passed, 1 skipped"),
    (
        "python -m unittest",
        "Ran 3 tests in 0.001s\n\nFAILED (failures=1)",
        "Ran 3 tests; FAILED (failures=1)",
    ),
    (
        "npx jest",
        "Tests:       1 failed, 12 passed, 13 total\nTime: 3 s",
        "Tests:       1 failed, 12 passed, 13 total",
    ),
    (
        "npx vitest run",
        " Test Files  1 failed (1)\n      Tests  2 failed | 3 passed (5)",
        "Tests  2 failed | 3 passed (5)",
    ),
    ("npx mocha", "  12 passing (30ms)\n  1 failing\n", "12 passing; 1 failing"),
    ("node --test", "# tests 3\n# pass 2\n# fail 1\n", "pass 2; fail 1"),
    (
        "cargo test",
        "test result: FAILED. 3 passed; 1 failed; 0 ignored; finished in 0.00s",
        "FAILED. 3 passed; 1 failed",
    ),
    ("bundle exec rspec", "12 examples, 1 failure", "12 examples, 1 failure"),
    (
        "vendor/bin/phpunit",
        "Tests: 12, Assertions: 30, Failures: 1.",
        "Tests: 12, Assertions: 30, Failures: 1.",
    ),
    ("dotnet test", "Failed!  - Failed:     1, Passed:    12, Total: 13", "Failed:     1, Passed:    12"),
    (
        "mvn test",
        "[ERROR] Tests run: 12, Failures: 1, Errors: 0\n[INFO] BUILD FAILURE",
        "Tests run: 12, Failures: 1",
    ),
    (
        "./gradlew test",
        "12 tests completed, 1 failed\nBUILD FAILED in 3s",
        "12 tests completed, 1 failed; BUILD FAILED",
    ),
    ("npx playwright test", "  1 failed\n  12 passed (30.1s)", "1 failed; 12 passed"),
    ("ctest", "91% tests passed, 1 tests failed out of 12", "91% tests passed, 1 tests failed out of 12"),
    ("mix test", "12 tests, 1 failure", "12 tests, 1 failure"),
    ("bun test", " 12 pass\n 1 fail\n", "12 pass; 1 fail"),
    ("mypy src", "Found 3 errors in 2 files (checked 10 source files)", "Found 3 errors in 2 files"),
    ("ruff check", "All checks passed!", "All checks passed!"),
    ("npx eslint .", "✖ 3 problems (2 errors, 1 warning)", "3 problems (2 errors, 1 warning)"),
    ("npx tsc --noEmit", "src/a.ts(1,2): error TS2304: Cannot find name 'x'.\n", "1 type error"),
    ("mise run lint", "[lint] $ golangci-lint run\n0 issues.", "0 issues."),
    ("go test ./...", "ok  \tx.io/a\t0.1s\nok  \tx.io/b\t(cached)", "2 packages ok"),
    (
        "go test ./...",
        "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tx.io/a\t0.1s",
        "1 failed, 0 passed; 1 failed (x.io/a)",
    ),
    ("npm run build", "✓ built in 3.21s", "built"),
    ("cargo build", "    Finished `dev` profile [unoptimized] target(s) in 2.0s", "Finished `dev` profile"),
]


@pytest.mark.parametrize(("command", "printed", "said"), SUMMARIES, ids=[c[0] for c in SUMMARIES])
def test_a_runner_s_own_summary_is_the_outcome(command: str, printed: str, said: str) -> None:
    digested = run(command, printed)
    assert said in digested.outcome
    assert digested.check


def test_a_failed_test_run_names_the_tests_the_error_and_the_place() -> None:
    digested = run("pytest -q", PYTEST, "failed")
    assert digested.exit_code == 1
    assert digested.outcome == "1 failed, 2 passed"
    assert digested.symbols == ["tests/test_sum.py::test_total"]
    assert digested.error == "AssertionError: assert 3 == 4"
    assert "tests/test_sum.py:7" in digested.paths


FAILING = [
    (
        "--- FAIL: TestResume (0.00s)\n    resume_test.go:41: got 1, want 2\nFAIL",
        "TestResume",
        "resume_test.go:41: got 1, want 2",
    ),
    (
        "test store::tests::opens ... FAILED\n\nerror: test failed",
        "store::tests::opens",
        "error: test failed",
    ),
    ("FAIL: test_x (mod.Case)\nAssertionError: 1 != 2", "test_x (mod.Case)", "AssertionError: 1 != 2"),
    (
        "  ● Cart › adds an item\n\n    TypeError: x is not a function",
        "Cart › adds an item",
        "TypeError: x is not a function",
    ),
    (
        " FAIL  src/a.test.ts > sum > adds\nError: expected 1",
        "src/a.test.ts > sum > adds",
        "Error: expected 1",
    ),
    ("not ok 3 - parses dates\n", "parses dates", ""),
    ("  1) test renders (App.PageTest)\n", "test renders (App.PageTest)", ""),
    ("rspec ./spec/a_spec.rb:12 # A works\n", "rspec ./spec/a_spec.rb:12", ""),
]


@pytest.mark.parametrize(("printed", "name", "error"), FAILING, ids=[c[1] for c in FAILING])
def test_failing_tests_are_named(printed: str, name: str, error: str) -> None:
    digested = run("make test", "Exit code 1\n" + printed, "failed")
    assert digested.symbols == [name]
    assert digested.error == error


ERRORS = [
    (
        "ls x",
        "ls: cannot access 'x': No such file or directory",
        "ls: cannot access 'x': No such file or directory",
    ),
    (
        "python a.py",
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nKeyError: 'x'",
        "KeyError: 'x'",
    ),
    (
        "npm ci",
        "npm warn old\nnpm error code E404\nnpm error 404 Not Found - GET x",
        "npm error 404 Not Found - GET x",
    ),
    (
        "git push",
        "To x\n ! [rejected]  a -> a (fetch first)\nerror: failed to push some refs to 'x'",
        "error: failed to push some refs to 'x'",
    ),
    ("foo", "bash: foo: command not found", "bash: foo: command not found"),
    (
        "cargo build",
        "error[E0425]: cannot find value `x`\n --> src/main.rs:3:5",
        "error[E0425]: cannot find value `x`",
    ),
]


@pytest.mark.parametrize(("command", "printed", "error"), ERRORS, ids=[c[0] for c in ERRORS])
def test_the_first_meaningful_error_line_is_kept(command: str, printed: str, error: str) -> None:
    assert run(command, "Exit code 2\n" + printed, "failed").error == error


def test_a_python_error_brings_the_line_it_came_from() -> None:
    printed = 'Exit code 1\nTraceback (most recent call last):\n  File "/p/a.py", line 3, in f\nKeyError: 1'
    assert "/p/a.py:3" in run("python a.py", printed, "failed").paths


GIT = [
    (
        "[main 1a2b3c4] Add a thing\n 2 files changed, 3 insertions(+)",
        "committed 1a2b3c4 on main: Add a thing; 2 files changed, 3 insertions(+)",
    ),
    ("To github.com:a/b.git\n   36ff9a9..c2b0273  topic -> topic", "36ff9a9..c2b0273 topic → topic"),
    (" * [new branch]      topic -> topic", "new branch topic → topic"),
    ("Switched to a new branch 'topic'", "on branch topic"),
    ("CONFLICT (content): Merge conflict in a.py", "conflict (content): Merge conflict in a.py"),
    ("Everything up-to-date", "Everything up-to-date"),
]


@pytest.mark.parametrize(("printed", "said"), GIT)
def test_git_says_what_it_did(printed: str, said: str) -> None:
    assert run("git commit && git push", printed).outcome == said


def test_a_short_output_is_shown_itself() -> None:
    assert run("git rev-parse HEAD", "0a1b2c3d\n").outcome == "0a1b2c3d"


def test_silence_is_said() -> None:
    assert run("touch a").outcome == "no output"
    assert run("npx prettier -c .").outcome == "ok"
    assert run("touch a", "(Bash completed with no output)").outcome == "no output"


def test_a_pipeline_s_exit_code_does_not_hide_a_failing_test() -> None:
    digested = run("go test ./... 2>&1 | tail", "--- FAIL: TestA (0.00s)\nFAIL\tx.io/a\t0.1s")
    assert digested.symbols == ["TestA"]


def test_words_like_error_in_a_shown_file_are_no_failure() -> None:
    digested = run("cat a.py | head", "class A:\n    pass\nraise ValueError: x\n")
    assert digested.error == ""
    assert digested.symbols == ["A"]


def test_a_background_command_keeps_its_id_and_output_file() -> None:
    said = "Command running in background with ID: b12. Output is being written to: /tmp/x/b12.output"
    digested = run("npm run dev", said, background_task_id="b12")
    assert (digested.status, digested.task_id, digested.paths) == ("background", "b12", ["/tmp/x/b12.output"])
    assert digested.exit_code is None


def test_tokens_of_the_output_are_kept_and_those_of_the_command_are_not() -> None:
    printed = (
        "listening on localhost:5173\nsee https://x.dev/a?b=1\nwrote dist/app.js and dist/app.js\nbuil"
        "d 4f2a9c1e v1.2.3 loadConfig done or/and"
    )
    assert run("serve", printed).names == []  # short: shown itself
    digested = run("serve dist/app.js", "line\n" * 40 + printed + "\nmore\nlines\nto be long" * 30)
    assert digested.paths == []
    assert digested.names == ["https://x.dev/a?b=1", "4f2a9c1e", "localhost:5173", "v1.2.3", "loadConfig"]


def test_a_grep_in_the_shell_gathers_lines_by_file() -> None:
    digested = run("grep -rn foo src", "src/a.py:3:foo\nsrc/a.py:9:foo()\nsrc/b.py:1:foo")
    assert digested.paths == ["src/a.py:3,9", "src/b.py:1"]


def test_colours_and_overwritten_progress_are_gone() -> None:
    digested = run("git rebase", "Rebasing (1/2)\rRebasing (2/2)\r\x1b[31merror: could not apply\x1b[0m", "failed")
    assert digested.error == "error: could not apply"


def test_the_client_s_note_about_the_directory_is_no_output() -> None:
    assert run("cd /x && true", "\nShell cwd was reset to /y").outcome == "no output"


def test_a_refused_command_keeps_the_words_and_no_output() -> None:
    event = ToolEvent(
        "t",
        "Bash",
        0,
        0,
        {"command": "rm -r x"},
        result="The user doesn't want",
        status="denied",
        words="not that\n",
    )
    digested = digest(event)
    assert (digested.status, digested.words, digested.error, digested.excerpt) == (
        "denied",
        "not that",
        "",
        "",
    )


def test_a_long_command_keeps_its_beginning_and_its_end() -> None:
    command = "a" * 3_000 + "b" * 9_000 + "the end"
    digested = run(command)
    assert len(digested.command) <= 4_000
    assert digested.command.endswith("the end")


def test_background_output_says_state_and_code() -> None:
    result = (
        "<retrieval_status>success</retrieval_status>\n\n<task_id>b1</task_id>\n\n<task_type>local_bash"
        "</task_type>\n\n<status>completed</status>\n\n<exit_code>2</exit_code>\n\n<output>\nerror: no\n</o"
        "utput>"
    )
    event = ToolEvent("t", "TaskOutput", 0, 0, {"task_id": "b1"}, result=result, status="ok")
    digested = digest(event)
    assert digested.task_id == "b1"
    assert digested.exit_code == 2
    assert digested.outcome.startswith("completed")
    assert digested.error == "error: no"


def test_a_killed_task_names_its_command() -> None:
    event = ToolEvent("t", "KillBash", 0, 0, {"shell_id": "bash_1"}, status="ok")
    event.detail = Detail(message="Successfully killed shell: bash_1 (pnpm dev --port 3001)")
    digested = digest(event)
    assert (digested.target, digested.command, digested.outcome) == (
        "bash_1",
        "pnpm dev --port 3001",
        "stopped",
    )


def test_what_the_user_ran_is_digested_like_any_command() -> None:
    event = ToolEvent("t", "!", 0, 0, {"command": "pytest"}, result="1 failed, 2 passed in 0.1s", status="ok")
    assert digest(event).outcome == "1 failed, 2 passed"


def test_a_directory_with_a_space_in_it_tears_no_path() -> None:
    place = "/home/ada/my work/proj"
    traced = (
        f'Exit code 1\nTraceback (most recent call last):\n  File "{place}/sums.py", line 3, in total\nValueError: no'
    )
    event = ToolEvent(
        "t1", "Bash", 0, 0, {"command": "python3 run.py"}, result=traced, detail=Detail(), status="failed", cwd=place
    )
    told = digest(event)
    assert told.error == "ValueError: no"
    shown = " ".join([told.outcome, *told.paths, *told.names])
    assert "sums.py" in shown and "/home/ada/my" not in shown and "work/proj" not in shown
