"""Which program a shell command is about, to tell whether a later success settles an earlier failure."""

from __future__ import annotations

import re
from functools import lru_cache

_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*$")
#: Words that only lead to the program.
_LEADING = frozenset({"sudo", "time", "timeout", "nice", "env", "command", "exec", "then", "do", "else", "!", "("})
#: What stands beside a program and says nothing of how the command ended.
_BESIDE = frozenset({"cd", "export", "echo", "set", "source", ".", "pushd", "popd", "true", "tail", "head", "tee"})
#: Programs whose next word says what is done.
_MANY = frozenset(
    "git npm pnpm yarn npx bun bunx cargo go docker kubectl make uv pip poetry python python3 node deno gradle mvn dotnet"
    " bundle rails mix gh aws terraform just task".split()
)
#: Those that run a program which has a name of its own.
_RUNNERS = frozenset({"uv", "poetry", "bundle"})


@lru_cache(maxsize=2_048)
def programs(command: str) -> tuple[str, ...]:
    """The programs of a command in order, as ``pytest``, ``git push`` or ``python -m pytest``."""
    found = []
    for part in _SEPARATOR.split(command[:2000]):
        words = part.split()
        while words and (words[0] in _LEADING or _ASSIGNMENT.match(words[0]) or words[0].isdigit()):
            del words[0]
        if words and words[0] not in _BESIDE:
            found.append(_named(words))
    return tuple(found)


def _named(words: list[str]) -> str:
    name = words[0].rpartition("/")[2]
    if name not in _MANY or len(words) < 2:
        return name
    if words[1] in ("-m", "run", "exec") and len(words) > 2:
        return words[2].rpartition("/")[2] if words[1] != "run" or name in _RUNNERS else f"{name} run {words[2]}"
    return f"{name} {words[1]}"
