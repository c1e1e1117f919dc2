"""``endless install``: put the hooks into the client's settings."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from endless_mode.cli.output import emit, say, write_text
from endless_mode.errors import EndlessError

if TYPE_CHECKING:
    from endless_mode.home import Home
    from endless_mode.install.apply import Outcome


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
    from endless_mode.install.apply import install_into, ours_in, settings_path

    refuse_relative_home()
    home = find_home()
    place = settings_path(given.project)
    plugin = look.plugin([look.settings_of(path) for path in {place, settings_path(False)}])
    if plugin and not given.rules_only:
        say(f"note: the plugin {plugin} brings the same hooks; with it, use `endless install --rules-only`.")
    had_hooks, _ = ours_in(place)
    stay = given.rules_only and had_hooks and not plugin
    outcome = install_into(home, place, dry_run=given.dry_run, rules_only=given.rules_only and not stay)
    if given.json:
        emit(
            {
                "settings": outcome.settings,
                "changed": outcome.changed,
                "dry_run": given.dry_run,
                "backup": outcome.backup,
                "home": str(home.root),
                "hooks": outcome.hooks,
                "rules": outcome.rules,
                "text": outcome.text,
            }
        )
    elif outcome.text is not None:
        write_text(outcome.text)
        would = "be changed as above" if outcome.changed else "stay as it is"
        say(f"{outcome.settings} would {would}; nothing was written.")
    else:
        _tell(outcome, plugin=plugin, home=home, took_hooks=had_hooks and not outcome.hooks, stay=stay)
    return 0


def _tell(outcome: Outcome, *, plugin: str, home: Home, took_hooks: bool, stay: bool) -> None:
    """Say what was done, and whether that is all it takes."""
    from endless_mode.install import look

    if outcome.changed:
        say(f"{'Installed' if outcome.hooks else 'The permission rules were put'} into {outcome.settings}.")
        if outcome.backup:
            say(f"The settings from before are in {outcome.backup}.")
    else:
        say(f"{outcome.settings} has everything already; nothing was changed.")
    if took_hooks:
        say(f"The hooks that were there were taken out: the plugin {plugin} brings the same.")
    if stay:
        say("The hooks that were there stay, as no plugin of ours is enabled; `endless uninstall` takes them out.")
    off = switched_off(home)
    if not (outcome.hooks or plugin or any(place.events for place in look.places(home))):
        say("note: there are no hooks yet, and no plugin is enabled that brings them: so far no session is recorded.")
    elif off:
        say(f"note: it does not work yet: {off}")
    elif outcome.changed and outcome.hooks:
        say("Sessions that start from now on survive compaction. See `endless status`.")


def switched_off(home: Home) -> str:
    """What switches hooks off although they are installed; empty where nothing does."""
    from endless_mode.install.check_client import silenced
    from endless_mode.install.checks import context
    from endless_mode.settings import GATE

    at = context(home)
    if not at.settings.enabled:
        return f"{GATE} switches it off."
    found = silenced(at)
    return found.message if found.status == "fail" else ""


def refuse_relative_home() -> None:
    """Raise when the data directory is named in a way that hooks pass over: what is done must not land elsewhere."""
    from endless_mode.home import passed_over

    if wrong := passed_over():
        raise EndlessError(
            "data_dir_relative",
            f"CLAUDE_MEM_DATA_DIR is {wrong!r}, which is no absolute path; hooks pass it over.",
            "Give it a path that begins with /, or unset it.",
        )


def refuse_windows(system: str = os.name) -> None:
    """Raise where there are no Unix sockets and no POSIX shell for hooks."""
    if system == "nt":
        raise EndlessError(
            "windows",
            "Endless Mode does not run on native Windows.",
            "Install it inside WSL, with the client inside WSL too.",
        )
