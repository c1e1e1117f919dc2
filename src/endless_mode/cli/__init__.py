"""The command line: one small module per command, imported when it is called."""

from __future__ import annotations

import argparse
import importlib
import keyword
import os
import sys
from collections.abc import Sequence

from endless_mode import __version__
from endless_mode.cli.output import report
from endless_mode.errors import EndlessError

#: Command → what it is for. The module of the same name in this package (a keyword gets ``_`` behind it) has
#: ``arguments`` and ``run``.
COMMANDS = {
    "install": "put the hooks into the client's settings",
    "uninstall": "take the hooks out of the client's settings again",
    "status": "say whether it is on and what happened at the last compactions",
    "doctor": "look for what keeps it from working",
    "worker": "start, stop or look at the background worker",
    "config": "read and write settings",
    "bottle": "render a session's bottle",
    "handoff": "print the handoff a session would get after a compaction",
    "sessions": "list the sessions that are known",
    "show": "print what stands behind an observation id",
    "rebuild": "read the transcripts again; ids stay as they are",
    "import": "read past sessions into the store",
    "search": "find what was said and done",
    "resume": "go on with a session in a fresh context",
    "forget": "remove sessions or texts for good",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0 done, 1 failed, 2 wrong usage."""
    parser, words = _parser(), list(sys.argv[1:] if argv is None else argv)
    takes_more = _add_command(parser, words)
    words, more = _parted(words) if takes_more else (words, [])
    given = parser.parse_args(words, argparse.Namespace(more=more))
    if given.command is None:
        parser.print_help()
        return 2
    try:
        return int(given.run(given))
    except EndlessError as error:
        report(error, as_json=bool(getattr(given, "json", False)))
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="endless", description="Coding sessions that survive compaction.")
    parser.add_argument("--version", action="version", version=f"endless {__version__}")
    return parser


def _parted(words: list[str]) -> tuple[list[str], list[str]]:
    """Our words, and those behind ``--``, which are for somebody else."""
    cut = words.index("--") if "--" in words else len(words)
    return words[:cut], words[cut + 1 :]


def _add_command(parser: argparse.ArgumentParser, words: list[str]) -> bool:
    """Name every command, but import only the one that is called; return whether words behind ``--`` are not ours."""
    takes_more = False
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    called = next((w for w in words if not w.startswith("-")), None)
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        if name == called:
            module = importlib.import_module(f"endless_mode.cli.{name}{'_' * keyword.iskeyword(name)}")
            module.arguments(command)
            command.set_defaults(run=module.run)
            takes_more = bool(getattr(module, "TAKES_MORE", False))
    return takes_more
