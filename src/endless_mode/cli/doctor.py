"""``endless doctor``: look for what keeps Endless Mode from working. Only reads, unless told to fix."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from endless_mode.cli.install import refuse_windows
from endless_mode.cli.output import emit, say, write_text
from endless_mode.errors import EndlessError

if TYPE_CHECKING:
    from endless_mode.home import Home
    from endless_mode.install.checks import Check, Looker

#: How the outcome of a repair begins that could not be made.
NOT_FIXED = "no: "
_SIGNS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--fix", action="store_true", help="repair hooks, rules, file modes and an outdated worker")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """Run all checks; 1 when one of them fails."""
    refuse_windows()
    from endless_mode.home import find_home

    home = find_home()
    checks = look(home)
    if given.fix:
        done = fix(home, checks)
        checks = look(home)
        for check in checks:
            check.fixed = done.get(check.name, "")
    failed = any(check.status == "fail" for check in checks)
    if given.json:
        emit({"ok": not failed, "home": str(home.root), "checks": checks})
        return int(failed)
    write_text("".join(map(_shown, checks)))
    warned = any(check.status == "warn" for check in checks)
    if failed:
        say("Something keeps it from working; see the lines marked FAIL.")
    else:
        say(f"Nothing keeps it from working{'; see the lines marked warn' if warned else ''}.")
    return int(failed)


def _shown(check: Check) -> str:
    lines = [f"{_SIGNS[check.status]}  {check.name:<10}  {check.message}"]
    if check.hint and check.status != "ok":
        lines.append(f"{'':18}{check.hint}")
    lines += [f"{'':18}{detail}" for detail in check.details]
    if check.fixed.startswith(NOT_FIXED):
        why = check.fixed.removeprefix(NOT_FIXED)
        lines.append(f"{'':18}not fixed{'' if why == check.message else f': {why}'}")
    elif check.fixed:
        lines.append(f"{'':18}fixed: {check.fixed}")
    return "\n".join(lines) + "\n"


def look(home: Home) -> list[Check]:
    """All checks in their order; one that breaks is itself a finding."""
    from endless_mode.install.checks import Check, context

    at = context(home)
    found = []
    for name, looker in lookers().items():
        try:
            found.append(looker(at))
        except Exception as error:  # a check must not hide the others
            found.append(Check(name, "warn", f"This could not be looked at ({type(error).__name__}: {error})."))
    return found


def lookers() -> dict[str, Looker]:
    """Check name → check."""
    from endless_mode.install import check_client as client
    from endless_mode.install import check_home as ours
    from endless_mode.install import check_past as past

    order = (
        *(client.hooks, client.programs, client.rules, client.silenced, ours.settings, ours.command, client.arriving),
        *(ours.socket, ours.worker, ours.filesystem, ours.modes, ours.database, ours.sqlite, ours.leftovers),
        *(past.retention, past.beside),
    )
    return {looker.__name__: looker for looker in order}


def fix(home: Home, checks: list[Check]) -> dict[str, str]:
    """Repair what can be repaired without asking; return check name → what was done."""
    from endless_mode.install.apply import stop_worker
    from endless_mode.install.check_home import exposed

    wrong = {check.name for check in checks if check.status != "ok"}
    done: dict[str, str] = {}
    if wrong & {"hooks", "programs", "rules"}:
        done["hooks"] = _install(home)
    if "modes" in wrong:
        for path in exposed(home.root):
            with contextlib.suppress(OSError):
                path.chmod(path.stat().st_mode & 0o700)
        done["modes"] = "closed to others"
    if any(check.name == "worker" and "version" in check.message for check in checks if check.status != "ok"):
        stop_worker(home)
        done["worker"] = "asked to stop"
    return done


def _install(home: Home) -> str:
    """Install again wherever something of ours is, else into the user's settings."""
    from endless_mode.install.apply import install_into, settings_path
    from endless_mode.install.look import places, plugin, settings_of

    known = places(home)
    rules_only = bool(plugin(settings_of(Path(place.path)) for place in known))
    there = [Path(place.path) for place in known if place.events] or [settings_path(False)]
    try:
        changed = [path for path in there if install_into(home, path, rules_only=rules_only).changed]
    except EndlessError as error:
        return f"{NOT_FIXED}{error.message}"
    return "installed anew" if changed else ""
