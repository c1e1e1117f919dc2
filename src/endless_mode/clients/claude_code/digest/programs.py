"""Which programs a shell command runs, and what that says about its output."""

from __future__ import annotations

import re

_SEPARATOR = re.compile(r"&&|\|\||;|\n|\|&?|&(?!\d)")
_ASSIGNMENT = re.compile(r"\w+=(?:\"[^\"]{0,200}\"|'[^']{0,200}'|\S*)")
_WRAPPERS = frozenset(
    "sudo time nice env command exec npx bunx pnpx rtk nohup stdbuf xargs then do else ! { ( mise-x".split()
)
_RUN = frozenset("uv poetry pipenv pdm hatch rye bundle mise".split())
_CHECK = re.compile(
    r"\b(?:pytest|py\.test|unittest|jest|vitest|mocha|ava|playwright|cypress|ctest|rspec|phpunit|pest|tox|nox|nextest|tsc|"
    r"mypy|pyright|ruff|flake8|pylint|eslint|biome|prettier|black|golangci-lint|staticcheck|clippy|rubocop|credo|dialyzer|shellcheck|"
    r"make|ninja|bazel|gradlew?|mvnw?|webpack|xcodebuild|tap|knip)\b"
    r"|\b(?:go|cargo|mix|bun|deno|dotnet|swift|zig|npm|pnpm|yarn|mise|just|rake|composer|nx|turbo|flutter|dart)\b[^|;&\n]{0,60}?"
    r"[ :](?:test|tests|check|lint|build|vet|typecheck|type-check|compile|analyze|validate|t)\b"
    r"|\bnode\b[^|;&\n]{0,40}--test\b|\b(?:test|check|lint|build|typecheck)\.sh\b|\bvite build\b|\bnext build\b"
)
#: Programs that print what somebody else wrote: the words "error" and "FAIL" in it mean nothing.
_SHOWS = frozenset(
    "cat head tail sed nl bat less grep rg egrep fgrep ag ack jq awk curl wget echo printf ls find tree fd wc sort uniq "
    "strings xxd diff cut column gh psql sqlite3 env printenv history man base64 less yq".split()
)
_GIT_SHOWS = frozenset(
    "log diff show blame status grep cat-file ls-files branch reflog shortlog config remote".split()
)
_PATHS = re.compile(r"(?:^|\s)([\w@.+~/-]*[\w@+~/-]\.[A-Za-z]\w{0,7})(?=\s|$)")


def segments(command: str) -> list[list[str]]:
    """The words of each simple command, wrappers and assignments taken off; bounded, heredoc bodies not looked at."""
    head = command[:4_000]
    start = head.find("<<")
    if start >= 0:
        end = head.find("\n", start)
        head = head[:end] if end >= 0 else head
    found = []
    for part in _SEPARATOR.split(head)[:40]:
        words = part.split()[:30]
        while words and (
            words[0] in _WRAPPERS or _ASSIGNMENT.fullmatch(words[0]) or words[0].startswith("#")
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


def is_check(command: str) -> bool:
    """True when the command runs tests, a linter, a type check or a build."""
    return bool(_CHECK.search(command[:4_000]))


def only_shows(parts: list[list[str]]) -> bool:
    """True when every program of the command merely prints things."""
    for words in parts:
        name = program(words)
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
