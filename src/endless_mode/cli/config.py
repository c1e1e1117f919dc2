"""``endless config``: read and write the settings."""

from __future__ import annotations

import argparse

from endless_mode.cli.install import refuse_relative_home, refuse_windows
from endless_mode.cli.output import emit, say, table, write_text
from endless_mode.errors import SettingsError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, about in (
        ("list", "every setting with its value and where that comes from"),
        ("get", "the value in force"),
        ("set", "write a value to the settings file"),
        ("unset", "take a value out of the settings file"),
    ):
        action = actions.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        action.add_argument("--json", action="store_true", help="print one JSON document")
        if name != "list":
            action.add_argument("name", metavar="NAME", help="e.g. plan_tokens, or the full key")
        if name == "set":
            action.add_argument("value", metavar="VALUE")


def run(given: argparse.Namespace) -> int:
    """Do the action."""
    refuse_windows()
    from endless_mode.home import find_home
    from endless_mode.settings import load, set_value

    home = find_home()
    if given.action in ("set", "unset"):
        refuse_relative_home()
        set_value(home, given.name, given.value if given.action == "set" else None)
    settings = load(home, strict=True)
    if given.action == "list":
        values = settings.all()
        if given.json:
            emit(values)
        else:
            write_text(
                table(("setting", "value", "from", "meaning"), [(v.key, v.value, v.source, v.about) for v in values])
                + "\n"
            )
        _note_problems(settings.problems)
        return 0
    value = settings.get(given.name)
    if given.json:
        emit(value)
    elif given.action == "get":
        write_text(value.value + "\n")
    else:
        say(f"{value.key} is now {value.value!r}, from: {value.source}.")
        if given.action == "set" and value.source == "environment":
            say("note: the environment beats the file, so the new value is not in force here.")
        say("The worker takes it up when it starts next: `endless worker stop`.")
    _note_problems(settings.problems)
    return 0


def _note_problems(problems: list[SettingsError]) -> None:
    for problem in problems:
        say(f"note: {problem.message} {problem.hint}")
