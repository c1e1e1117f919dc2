"""``endless uninstall``: take the hooks out of the client's settings again."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from endless_mode.cli.install import refuse_relative_home, refuse_windows
from endless_mode.cli.output import emit, say, write_text


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--project", action="store_true", help="from this directory's settings (./.claude/settings.local.json)"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the settings as they would be, write nothing")
    parser.add_argument("--purge", action="store_true", help="also delete the home: bottles, database, logs, settings")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """Uninstall; print what changed."""
    refuse_windows()
    from endless_mode.home import find_home
    from endless_mode.install import record
    from endless_mode.install.apply import home_named, ours_in, purge, settings_path, stop_worker, uninstall_from

    refuse_relative_home()
    place = settings_path(given.project)
    named = None if os.environ.get("CLAUDE_MEM_DATA_DIR") else home_named(place)
    home = named or find_home()
    outcome = uninstall_from(home, place, dry_run=given.dry_run)
    remaining = [path for path in record.load(home).settings if path != outcome.settings]
    if given.purge and not given.dry_run:
        for path in remaining:  # their hooks would bring the home back
            uninstall_from(home, Path(path))
        remaining = []
    stopped = purged = False
    if not given.dry_run:
        stopped = stop_worker(home)
        purged = given.purge and purge(home)
    if given.json:
        emit(
            {
                "settings": outcome.settings,
                "changed": outcome.changed,
                "dry_run": given.dry_run,
                "backup": outcome.backup,
                "worker_stopped": stopped,
                "purged": purged,
                "home": str(home.root),
                "remaining": remaining,
                "hooks": outcome.hooks,
                "rules": outcome.rules,
                "text": outcome.text,
            }
        )
        return 0
    if outcome.text is not None:
        write_text(outcome.text)
    word = "would be" if given.dry_run else "were"
    say(
        f"{_what(outcome.hooks, outcome.rules)} {word} taken out of {outcome.settings}."
        if outcome.changed
        else f"Nothing of ours is in {outcome.settings}."
    )
    if outcome.backup:
        say(f"The settings from before are in {outcome.backup}.")
    for path in remaining:
        hooks, rules = ours_in(Path(path))
        if hooks or rules:
            say(f"{_what(hooks, rules)} are still in {path}.")
    if stopped:
        say("The worker was asked to stop. Sessions that run now may call the old hooks until they end.")
    if given.purge and given.dry_run and home.root.exists():
        say(f"{home.root} would be deleted.")
    elif purged:
        say(f"{home.root} was deleted.")
    elif not given.dry_run and home.root.exists():
        say(f"Bottles and database stay in {home.root}; `endless uninstall --purge` deletes them.")
    return 0


def _what(hooks: bool, rules: bool) -> str:
    """What of ours was, or is, in a settings file."""
    if hooks:
        return "Our hooks and permission rules" if rules else "Our hooks"
    return "Our permission rules"
