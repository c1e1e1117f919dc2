"""The command line: one small module per command, imported when it is called."""

from __future__ import annotations

import argparse
import importlib
import keyword
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from endless_mode import __version__
from endless_mode.cli.output import OutputError, held_talk, report, say, stdout_bytes, to_nowhere
from endless_mode.errors import EndlessError

#: What the commands are about → command → what it is for. The module of a command's name in this package (a keyword
#: gets ``_`` behind it) has ``arguments`` and ``run``.
GROUPS = {
    "looking after it": {
        "install": "put the hooks into the client's settings",
        "uninstall": "take the hooks out of the client's settings again",
        "status": "say whether it is on and what happened at the last compactions",
        "doctor": "look for what keeps it from working",
        "worker": "start, stop or look at the background worker",
        "config": "read and write settings",
        "rebuild": "read the transcripts again; ids stay as they are",
    },
    "one session": {
        "bottle": "render a session's bottle: what was said, and a line for each thing done",
        "handoff": "print the handoff a session would get after a compaction",
        "show": "print what stands behind an id [#ID] of a bottle",
    },
    "all sessions": {
        "sessions": "list the sessions that are known",
        "search": "find what was said and done",
        "import": "read past sessions into the store",
        "resume": "go on with a session in a fresh context",
        "forget": "remove sessions or texts for good",
    },
}
#: Errors of commands that were called with the wrong words, or without saying what for.
WRONG_USAGE = {
    *("no_session_named", "nothing_selected", "nothing_asked"),
    *("bad_id", "bad_date", "bad_setting", "unknown_setting"),
}
COMMANDS = {name: about for group in GROUPS.values() for name, about in group.items()}


class Parser(argparse.ArgumentParser):
    """Says what is wrong with the words of a command line in the shape of all our errors; the exit code is 2."""

    as_json = False

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.set_defaults(parser=self)  # the innermost one that was called knows best what it takes

    def error(self, message: str) -> NoReturn:
        """Report wrong usage and exit."""
        if not Parser.as_json:
            self.print_usage(sys.stderr)
        report(EndlessError("usage", f"{message}.", f"See `{self.prog} --help`."), as_json=Parser.as_json)
        raise SystemExit(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0 done, 1 failed, 2 wrong usage."""
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            stdout_bytes(b"")  # what argparse has printed is written out here, where it can still be reported
    except BrokenPipeError:
        to_nowhere(1)
        return 1
    except OutputError as error:
        to_nowhere(1)
        report(error, as_json=Parser.as_json)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(words: list[str]) -> int:
    parser = _parser()
    takes_more = _add_command(parser, words)
    words, more = _parted(words) if takes_more else (words, [])
    Parser.as_json = "--json" in words
    given, unknown = parser.parse_known_args(words, argparse.Namespace(more=more))
    if unknown:
        given.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if given.command is None:
        parser.print_help()
        return 2
    as_json = bool(getattr(given, "json", False))
    try:
        with held_talk(hold=as_json):
            _note_data_dir()
            return int(given.run(given))
    except OutputError:
        raise
    except EndlessError as error:
        report(error, as_json=as_json)
        return 2 if error.code in WRONG_USAGE else 1


def _note_data_dir() -> None:
    """A data directory that is named in a way nobody takes is passed over, by hooks too; say so."""
    from endless_mode.home import passed_over

    if wrong := passed_over():
        say(f"note: CLAUDE_MEM_DATA_DIR is {wrong!r}, which is no absolute path, and is passed over")


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(
        f"\n{group}:\n" + "\n".join(f"  {name:<10} {about}" for name, about in commands.items())
        for group, commands in GROUPS.items()
    )
    parser = Parser(
        prog="endless",
        usage="endless [-h] [--version] COMMAND ...",
        description="Coding sessions that survive compaction.\n" + listed,
        epilog="`endless COMMAND --help` says more. Exit codes: 0 done, 1 failed or nothing found, 2 wrong usage.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"endless {__version__}")
    return parser


def _parted(words: list[str]) -> tuple[list[str], list[str]]:
    """Our words, and those behind ``--``, which are for somebody else."""
    cut = words.index("--") if "--" in words else len(words)
    return words[:cut], words[cut + 1 :]


def _add_command(parser: argparse.ArgumentParser, words: list[str]) -> bool:
    """Name every command, but import only the one that is called; return whether words behind ``--`` are not ours."""
    takes_more = False
    commands = parser.add_subparsers(prog=parser.prog, dest="command", metavar="COMMAND", help=argparse.SUPPRESS)
    called = next((w for w in words if not w.startswith("-")), None)
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, description=about[0].upper() + about[1:] + ".")
        if name == called:
            module = importlib.import_module(f"endless_mode.cli.{name}{'_' * keyword.iskeyword(name)}")
            module.arguments(command)
            command.set_defaults(run=module.run)
            takes_more = bool(getattr(module, "TAKES_MORE", False))
    return takes_more
