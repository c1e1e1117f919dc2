"""``endless install``: put the hooks into the client's settings."""

from __future__ import annotations

import argparse
import os

from endless_mode.cli.output import emit, say, write_text
from endless_mode.errors import EndlessError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--project", action="store_true", help="this directory only: ./.claude/settings.local.json")
    parser.add_argument("--rules-only", action="store_true", help="only the permission rules (beside the plugin)")
    parser.add_argument("--dry-run", action="store_true", help="print the settings as they would be, write nothing")
    parser.add_argument(
        "--programs", action="store_true", help="print the interpreter and the hook file, write nothing"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """Install; print what changed."""
    refuse_windows()
    if given.programs:
        from endless_mode.install.entries import hook_file, our_interpreter

        if given.json:
            emit({"interpreter": str(our_interpreter()), "hook_file": str(hook_file())})
        else:
            write_text(f"{our_interpreter()}\n{hook_file()}\n")
        return 0
    from endless_mode.home import find_home
    from endless_mode.install import look
    from endless_mode.install.apply import install_into, settings_path

    home = find_home()
    place = settings_path(given.project)
    plugin = look.plugin([look.settings_of(path) for path in {place, settings_path(False)}])
    if plugin and not given.rules_only:
        say(f"note: the plugin {plugin} brings the same hooks; with it, use `endless install --rules-only`.")
    outcome = install_into(home, place, dry_run=given.dry_run, rules_only=given.rules_only)
    if given.json:
        emit(
            {
                "settings": outcome.settings,
                "changed": outcome.changed,
                "dry_run": given.dry_run,
                "backup": outcome.backup,
                "home": str(home.root),
                "text": outcome.text,
            }
        )
    elif outcome.text is not None:
        write_text(outcome.text)
        would = "be changed as above" if outcome.changed else "stay as it is"
        say(f"{outcome.settings} would {would}; nothing was written.")
    elif outcome.changed:
        say(f"Installed into {outcome.settings}.")
        if outcome.backup:
            say(f"The settings from before are in {outcome.backup}.")
        say("Sessions that start from now on survive compaction. See `endless status`.")
    else:
        say(f"{outcome.settings} has everything already; nothing was changed.")
    return 0


def refuse_windows(system: str = os.name) -> None:
    """Raise where there are no Unix sockets and no POSIX shell for hooks."""
    if system == "nt":
        raise EndlessError(
            "windows",
            "Endless Mode does not run on native Windows.",
            "Install it inside WSL, with the client inside WSL too.",
        )
