"""What we put into a client's settings, and how we know it again."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from endless_mode.errors import EndlessError
from endless_mode.home import Home

CLIENT = "claude-code"

#: Event → seconds the client waits for its hook. Ours keep shorter times of their own (``hook/hook.py``).
TIMEOUTS = {
    "SessionStart": 15,
    "UserPromptSubmit": 5,
    "PreCompact": 30,
    "PostCompact": 5,
    "Stop": 5,
    "SessionEnd": 5,
}

COMMAND_RULES = ("Bash(endless show:*)", "Bash(endless search:*)")

_OURS = re.compile(r"endless_mode/hook/(?:run|hook)\.py['\"]* claude-code ([A-Za-z]+)")
_DATA = re.compile(r" claude-code [A-Za-z]+ (.+); exit 0$", re.DOTALL)
_OUR_READ = re.compile(r"Read\(//.*/endless/bottles/\*\*\)")


class InstallError(EndlessError):
    """The settings cannot be changed as asked; nothing was written."""

    status = 400


def hook_file() -> Path:
    """The script that hooks run."""
    return Path(__file__).absolute().parents[1] / "hook" / "run.py"


def our_interpreter() -> str:
    """The interpreter for hooks, under one name however this process was started (``python``, ``python3.12`` …)."""
    here = Path(sys.executable)
    for other in (here.with_name("python3"), here.with_name("python")):
        try:
            if other.samefile(here):
                return str(other)
        except OSError:
            continue
    return str(here)


def command(event: str, data_dir: str = "", interpreter: str = "", hook: str = "") -> str:
    """The shell line for one event; it says and does nothing when our files are gone.

    The hook file is looked for too: an interpreter that finds no script exits with 2, and the client takes a 2 as
    "do not compact" and "do not send this prompt".
    """
    python, script = shlex.quote(interpreter or our_interpreter()), shlex.quote(hook or str(hook_file()))
    more = f" {shlex.quote(data_dir)}" if data_dir else ""
    line = f"[ -x {python} ] && [ -r {script} ] && exec {python} -I -S {script} {CLIENT} {event}{more}; exit 0"
    try:
        line.encode()
    except UnicodeEncodeError as error:
        raise InstallError(
            "path_not_utf8",
            "The path of this installation is not valid UTF-8, so it cannot stand in the client's settings.",
            "Install Endless Mode in a directory with a plain name.",
        ) from error
    return line


def hook_entries(data_dir: str = "") -> dict[str, dict[str, Any]]:
    """Event → the entry for the client's ``hooks`` setting."""
    return {
        event: {"hooks": [{"type": "command", "command": command(event, data_dir), "timeout": seconds}]}
        for event, seconds in TIMEOUTS.items()
    }


def rules(home: Home) -> list[str]:
    """The permission rules: the model may read bottles, and expand and search observations."""
    return [*read_rules(home), *COMMAND_RULES]


def read_rules(home: Home) -> list[str]:
    """The rules that allow reading bottles, by their path and by where it really leads.

    Two slashes make a path absolute (client 2.1.197).
    """
    places = dict.fromkeys([str(home.bottles), os.path.realpath(home.bottles)])
    return [f"Read(/{escape(place)}/**)" for place in places]


def escape(path: str) -> str:
    """Take the special meaning from characters of a path in a rule, whose syntax is that of gitignore.

    Clients 2.1.197 and 2.1.332 match neither ``\\\\`` nor ``\\?``, so both characters become a mark for any one.
    """
    return re.sub(r"([*\[\]!#()])", r"\\\1", path.replace("\\", "?"))


def event_of(hook: object) -> str:
    """The event that a hook of ours is for, wherever it was installed; empty for a hook that is not ours."""
    line = hook.get("command") if isinstance(hook, dict) else None
    found = _OURS.search(line) if isinstance(line, str) else None
    return found[1] if found else ""


def data_dir_of(hook: object) -> str:
    """The data directory that is written into a hook of ours; empty where it is left to the default."""
    line = hook.get("command") if isinstance(hook, dict) else None
    found = _DATA.search(line) if isinstance(line, str) and event_of(hook) else None
    try:
        return "".join(shlex.split(found[1])[:1]) if found else ""
    except ValueError:
        return ""


def is_our_rule(rule: object) -> bool:
    """Whether a permission rule has the shape of ours."""
    return isinstance(rule, str) and (rule in COMMAND_RULES or _OUR_READ.fullmatch(rule) is not None)
