"""``endless worker``: start, stop, look at the worker of this home."""

from __future__ import annotations

import argparse
import json
from collections import deque
from pathlib import Path
from typing import Any

import msgspec

from endless_mode.cli.install import refuse_windows
from endless_mode.cli.output import emit, say, write_text
from endless_mode.cli.words import count
from endless_mode.errors import WorkerError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, about in (
        ("start", "start a worker unless one runs"),
        ("stop", "ask the worker to finish what it does and end"),
        ("status", "say whether one runs; exit code 1 when none does"),
        ("logs", "print the end of the worker's log"),
    ):
        action = actions.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        action.add_argument("--json", action="store_true", help="print one JSON document")
        if name == "logs":
            action.add_argument("-n", "--lines", metavar="N", type=count, default=50, help="entries (default 50)")


def run(given: argparse.Namespace) -> int:
    """Do the action."""
    refuse_windows()
    return {"start": _start, "stop": _stop, "status": _status, "logs": _logs}[given.action](given)


def state(health: Any | None) -> dict[str, Any]:
    """The worker as one stable document; ``running`` is False when none answers."""
    known = {"running": False, "version": None, "pid": None, "uptime_ms": None, "live_sessions": None, "requests": None}
    if health is None:
        return known
    values = msgspec.structs.asdict(health)
    return {**{key: values.get(key) for key in known}, "running": True}


def _start(given: argparse.Namespace) -> int:
    from endless_mode.home import find_home
    from endless_mode.worker.client import ensure_worker

    return _print(state(ensure_worker(find_home())), given.json)


def _stop(given: argparse.Namespace) -> int:
    from endless_mode.home import find_home
    from endless_mode.install.apply import stop_worker

    stopped = stop_worker(find_home())
    if given.json:
        emit({"stopped": stopped})
    else:
        write_text("The worker has ended.\n" if stopped else "No worker runs.\n")
    return 0


def _status(given: argparse.Namespace) -> int:
    from endless_mode.home import find_home
    from endless_mode.worker.client import WorkerClient

    try:
        found = state(WorkerClient(find_home()).health())
    except WorkerError:
        found = state(None)
    return _print(found, given.json)


def _logs(given: argparse.Namespace) -> int:
    from endless_mode.home import find_home

    log = find_home().log
    lines = _tail([log.with_name(f"{log.name}.1"), log], given.lines)
    if given.json:
        emit([entry for entry in map(_entry, lines) if entry is not None])
    else:
        write_text("".join(f"{line}\n" for line in lines))
        if not lines:
            say(f"{log} holds nothing yet.")
    return 0


def _tail(files: list[Path], count: int) -> list[str]:
    kept: deque[str] = deque(maxlen=count)
    for file in files:
        try:
            with file.open(encoding="utf-8", errors="replace") as lines:
                kept.extend(line.rstrip("\n") for line in lines)
        except OSError:
            continue
    return list(kept)


def _entry(line: str) -> Any | None:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _print(found: dict[str, Any], as_json: bool) -> int:
    if as_json:
        emit(found)
    elif found["running"]:
        write_text(
            f"The worker runs: version {found['version']}, pid {found['pid']}, for {span(found['uptime_ms'])}.\n"
        )
    else:
        write_text("No worker runs. The next hook starts one; so does `endless worker start`.\n")
    return 0 if found["running"] else 1


def span(milliseconds: int) -> str:
    """A stretch of time in its largest unit."""
    seconds = milliseconds // 1000
    for name, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            count = seconds // size
            return f"{count} {name}{'s' if count > 1 else ''}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"
