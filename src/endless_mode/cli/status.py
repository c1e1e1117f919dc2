"""``endless status``: is it on, does it work, what happened at the last compactions."""

from __future__ import annotations

import argparse
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from endless_mode import __version__
from endless_mode.cli.install import refuse_windows, switched_off
from endless_mode.cli.output import emit, say, table, when, write_text
from endless_mode.cli.words import count
from endless_mode.cli.worker import span, state
from endless_mode.errors import WorkerError

if TYPE_CHECKING:
    from endless_mode.home import Home
    from endless_mode.install.history import BoundaryReport, Rereads, SessionReport
    from endless_mode.install.look import Place

#: What the table of compactions says, column by column.
COLUMNS = """columns of the table, a line for each compaction:
  boundary   which one of its session, and what set it off: auto or manual
  sealed     the bottle was brought up to date just before it
  delivered  when the handoff was handed over (UTC), and by which hook; no: never
  read       the model read the bottle after it; ? the transcript is gone or too long to tell
  gap        tool uses whose lines were still missing in the bottle at that moment (0 is good)
  re-reads   of the first 30 tool uses after it, how many read a file that was known before it"""
#: Sessions that the comparison of re-reads takes in.
COMPARED = 200


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--limit", metavar="N", type=count, default=5, help="sessions to list, newest first (default 5)"
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = COLUMNS
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """Print the state; the exit code is 0 whatever it is (``endless doctor`` judges)."""
    refuse_windows()
    from endless_mode.home import find_home
    from endless_mode.install import look
    from endless_mode.install.history import compare
    from endless_mode.settings import load

    home = find_home()
    enabled, places, since = load(home).enabled, look.places(home), look.installed_since(home)
    plugin = look.plugin(look.settings_of(Path(place.path)) for place in places)
    installed = bool(plugin) or any(place.complete for place in places)
    off = switched_off(home)
    reports, problem = _reports(home, given.limit)
    before, after = compare(reports, since)
    shown = reports[: given.limit]
    document: dict[str, Any] = {
        "version": __version__,
        "home": str(home.root),
        "on": installed and not off,
        "enabled": enabled,
        "switched_off": off or None,
        "installed": installed,
        "installed_at": since,
        "plugin": plugin or None,
        "settings": places,
        "worker": _worker(home),
        "problem": problem or None,
        "sessions": shown,
        "rereads": {"before": before, "after": after},
    }
    if given.json:
        emit(document)
    else:
        _print(document, places, shown, before, after)
    return 0


def _worker(home: Home) -> dict[str, Any]:
    from endless_mode.worker.client import WorkerClient

    try:
        return state(WorkerClient(home, timeout=2.0).health())
    except WorkerError:
        return state(None)


def _reports(home: Home, limit: int) -> tuple[list[SessionReport], str]:
    from endless_mode.install.history import sessions
    from endless_mode.store import open_reader

    if not home.database.exists():
        return [], ""
    try:
        db = open_reader(home.database)
        try:
            return sessions(db, max(limit, COMPARED), read_bottles=limit), ""
        finally:
            db.close()
    except sqlite3.Error as error:
        return [], f"The database cannot be read ({type(error).__name__}); see `endless doctor`."


def _print(
    document: dict[str, Any], places: list[Place], shown: list[SessionReport], before: Rereads, after: Rereads
) -> None:
    worker = document["worker"]
    lines = [f"Endless Mode {document['version']} is {'on' if document['on'] else 'off'}."]
    if document["switched_off"]:
        lines.append(f"  {document['switched_off']}")
    if document["plugin"]:
        lines.append(f"  hooks   from the plugin {document['plugin']}")
    for place in places:
        if place.events or place.problem or (place.scope == "user" and not document["plugin"]):
            lines.append(f"  hooks   {_hooks(place)}{'' if place.problem else f' ({place.path})'}")
    if worker["running"]:
        lines.append(f"  worker  version {worker['version']}, pid {worker['pid']}, up for {span(worker['uptime_ms'])}")
    else:
        lines.append("  worker  does not run; the next hook starts it")
    lines.append(f"  home    {document['home']}")
    rows = [_row(one, n, boundary) for one in shown for n, boundary in enumerate(one.boundaries, 1)]
    if rows:
        heads = ("session", "boundary", "at (UTC)", "sealed", "delivered", "by", "read", "gap", "re-reads")
        lines += ["", "Compactions of late:", table(heads, rows)]
    elif shown:
        lines += ["", f"{len(shown)} session{'s' if len(shown) > 1 else ''} of late, none compacted yet."]
    for name, side in (("before", before), ("since", after)):
        if side.share is not None:
            lines.append(
                f"Files read again in the first 30 tool uses, {name} the install: {side.share:.0%} of {side.tools}"
            )
    write_text("\n".join(lines) + "\n")
    if document["problem"]:
        say(document["problem"])


def _hooks(place: Place) -> str:
    if place.problem:
        return place.problem
    if place.complete:
        return "all there"
    if not place.events:
        return "not installed"
    return "of another install" if place.strange else "some missing: `endless install` again"


def _row(one: SessionReport, number: int, boundary: BoundaryReport) -> tuple[str, ...]:
    read = {True: "yes", False: "no", None: "?"}[boundary.bottle_read]
    return (
        one.session[:8],
        f"{number} {boundary.trigger}".strip(),
        when(boundary.at),
        "yes" if boundary.sealed_at is not None else "no",
        when(boundary.delivered_at)[11:] if boundary.delivered_at else "no",
        boundary.delivered_by.split(" ")[0] or "—",
        read,
        str(boundary.gap),
        f"{boundary.reread} of {boundary.tools}",
    )
