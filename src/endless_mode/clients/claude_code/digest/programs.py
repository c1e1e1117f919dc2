"""Which programs a shell command runs, and what that says about its output."""

from __future__ import annotations

import re

from endless_mode.clients.claude_code.digest.texts import wordset

_SEPARATOR = re.compile(r"&&|\|\||;|\n|\|&?|&(?!\d)")
_ASSIGNMENT = re.compile(r"\w+=(?:\"[^\"]{0,200}\"|'[^']{0,200}'|\S*)")
_WRAPPERS = wordset("sudo time nice env command exec npx bunx pnpx rtk nohup stdbuf xargs then do else ! { ( mise-x")
_RUN = wordset("uv poetry pipenv pdm hatch rye bundle mise")
#: Programs that check, whatever their arguments.
_CHECKS = wordset(
    "pytest py.test unittest jest vitest mocha ava playwright cypress ctest rspec phpunit pest tox nox "
    "nextest tsc vue-tsc mypy "
    "pyright basedpyright ruff flake8 pylint eslint biome prettier black golangci-lint staticcheck clippy "
    "rubocop credo dialyzer "
    "shellcheck make ninja bazel gradle gradlew mvn mvnw webpack xcodebuild tap knip tsup esbuild --test"
)
#: Programs that check when one of the tasks is among their first arguments.
_RUNNERS = wordset(
    "go cargo mix bun deno dotnet swift zig npm pnpm yarn mise just rake composer nx turbo flutter dart "
    "vite next node gofmt "
    "python python3 docker rails lerna moon task"
)
_TASKS = wordset(
    "test tests check lint build vet typecheck type-check tsc compile analyze validate t ci e2e format:check unit"
)
_NEITHER = wordset("install add remove uninstall i update upgrade")
#: Programs that print what somebody else wrote: the words "error" and "FAIL" in it mean nothing.
_SHOWS = wordset(
    "cat head tail sed nl bat less grep rg egrep fgrep ag ack jq awk curl wget echo printf ls find tree "
    "fd wc sort uniq "
    "strings xxd diff cut column gh psql sqlite3 env printenv history man base64 less yq"
)
_GIT_SHOWS = wordset("log diff show blame status grep cat-file ls-files branch reflog shortlog config remote")
_PATHS = re.compile(r"(?:^|\s)([\w@.+~/-]*[\w@+~/-]\.[A-Za-z]\w{0,7})(?=\s|$)")


def segments(command: str) -> list[list[str]]:
    """The words of each simple command, without wrappers, assignments and what follows a heredoc mark."""
    head = command[:4_000]
    start = head.find("<<")
    if start >= 0:
        end = head.find("\n", start)
        head = head[:end] if end >= 0 else head
    found = []
    for part in _SEPARATOR.split(head)[:40]:
        words = part.split()[:30]
        while words and (
            words[0] in _WRAPPERS or ("=" in words[0] and _ASSIGNMENT.fullmatch(words[0])) or words[0].startswith("#")
        ):
            if words[0].startswith("#"):
                words = []
                break
            words = words[1:]
        if words and words[0] == "timeout":
            words = words[2:]
        if len(words) > 2 and words[0] in _RUN and words[1] in ("run", "exec") and words[0] != "mise":
            words = words[2:]
        if words:
            found.append(words)
    return found


def program(words: list[str]) -> str:
    """``git log`` for git, else the bare name of the program."""
    name = words[0].rpartition("/")[2]
    if name == "git":
        verbs = [w for w in words[1:8] if not w.startswith("-") and "/" not in w and "=" not in w]
        return f"git {verbs[0]}" if verbs else name
    return name


def is_check(parts: list[list[str]]) -> bool:
    """True when the command runs tests, a linter, a type check or a build."""
    for words in parts:
        name = words[0].rpartition("/")[2]
        if name in _SHOWS or name in ("git", "cd", "mkdir", "rm", "cp", "mv") or not _NEITHER.isdisjoint(words[1:3]):
            continue
        if name in _CHECKS or name.endswith(("test.sh", "check.sh", "lint.sh", "build.sh")):
            return True
        if name in _RUNNERS and any(not _TASKS.isdisjoint(word.split(":")) for word in words[1:6]):
            return True
        if not _CHECKS.isdisjoint(words):
            return True
    return False


def only_shows(parts: list[list[str]]) -> bool:
    """True when every program of the command merely prints things."""
    for words in parts:
        name = program(words)
        if name == "gh" and words[1:2] == ["run"]:
            return False
        if name in ("tail", "cat") and words[-1].endswith((".log", ".output", ".out")):
            return False
        if name in ("cd", "pwd", "sleep", "true", "export", "set"):
            continue
        if name not in _SHOWS and not (name.startswith("git ") and name[4:] in _GIT_SHOWS):
            return False
    return True


def shown_file(parts: list[list[str]]) -> str:
    """The file that ``cat``, ``sed -n``, ``head``... print, when there is one."""
    for words in parts:
        if words[0] in ("cat", "sed", "head", "tail", "nl", "bat", "less"):
            for word in reversed(words[1:]):
                if "." in word and not word.startswith("-") and ">" not in word and _PATHS.fullmatch(word):
                    return word
    return ""
