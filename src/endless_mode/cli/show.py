"""``endless show``: what stands behind ``[#id]``, with the tool's own input and output from the transcript."""

from __future__ import annotations

import argparse
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from endless_mode.claude_mem import ClaudeMem
from endless_mode.cli.output import emit, when, write_text
from endless_mode.cli.target import loaded
from endless_mode.clients.claude_code.fetch import fetch
from endless_mode.deliver.ladder import database
from endless_mode.errors import EndlessError
from endless_mode.home import find_home
from endless_mode.privacy import clean, clean_value
from endless_mode.store import open_reader
from endless_mode.tail import FileSource

#: Characters of a tool's output that are printed without ``--full``.
SHOWN = 8_000
#: Digits of an id; a longer one fits no row.
LONGEST = 18

_QUERY = """
SELECT o.id, o.type, o.title, o.narrative, o.prompt_number, o.first_at, o.last_at, o.source, s.content_session_id, e.name,
  e.status, e.tool_use_id, e.offset, e.result_offset, t.path
FROM observations o JOIN sessions s ON s.id = o.session_id JOIN tool_events e ON e.id = o.event_id
LEFT JOIN transcripts t ON t.session_id = o.session_id AND t.agent = e.agent_id WHERE o.id = ?
"""
_NAMES = "id type title narrative prompt_number first_at last_at source session tool status tool_use_id offset result_offset path".split()


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("ids", metavar="ID", nargs="+", help="an observation id: 12, #12, 12–17 or cm:12")
    parser.add_argument("--in", dest="target", metavar="TARGET", help="look in this transcript instead of the store")
    parser.add_argument("--full", action="store_true", help="print the whole output of the tool")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """Print each observation; fails when one is not there."""
    words = [part.strip("[]# ") for word in given.ids for part in word.split(",")]
    theirs = [n for word in words if word.startswith("cm:") for n in parse_ids(word.replace("cm:", ""))]
    numbers = [n for word in words if not word.startswith("cm:") for n in parse_ids(word)]
    found: list[dict[str, Any]] = []
    if not numbers:
        pass
    elif given.target:
        with loaded(given.target) as made:
            found = made.store.read(lambda db: [_one(db, n) for n in numbers])
    else:
        home = find_home()
        if not home.database.exists():
            raise EndlessError("no_store", "There is no database yet.", "Name a transcript with --in TARGET.")
        db = open_reader(home.database)
        found = [_one(db, n) for n in numbers]
        db.close()
    found += [_of_claude_mem(n) for n in theirs]
    if given.json:
        emit(clean_value(found))
    else:
        write_text("\n\n".join(_text(one, full=given.full) for one in found) + "\n")
    return 0


def parse_ids(word: str) -> list[int]:
    """``12``, ``#12``, ``[#12]``, ``12–17`` or ``12,14`` as numbers.

    Raises:
        EndlessError: something else.
    """
    numbers: list[int] = []
    for part in word.strip("[]# ").split(","):
        first, _, last = part.replace("–", "-").partition("-")
        if not first.strip("# ").isdecimal() or (last and not last.strip("# ").isdecimal()):
            raise EndlessError("bad_id", f"{word!r} is no observation id.", "Ids look like 12, #12 or 12-17.")
        low, high = _number(first), _number(last or first)
        if high < low:
            raise EndlessError("bad_id", f"{word!r} ends before it begins.", "Ids look like 12, #12 or 12-17.")
        numbers += range(low, min(high, low + 99) + 1)
    return numbers


def _number(digits: str) -> int:
    plain = digits.strip("# ")
    if len(plain) > LONGEST:
        raise EndlessError(
            "no_such_observation", f"There is no observation {plain[:40]}.", "Ids stand in the bottle as [#12]."
        )
    return int(plain)


def _one(db: sqlite3.Connection, number: int) -> dict[str, Any]:
    row = db.execute(_QUERY, (number,)).fetchone()
    if row is None:
        raise EndlessError(
            "no_such_observation", f"There is no observation {number}.", "Ids stand in the bottle as [#12]."
        )
    found = dict(zip(_NAMES, row, strict=True))
    path, offset, result_offset = found.pop("path"), found.pop("offset"), found.pop("result_offset")
    event = None
    if path and Path(path).exists():
        event = fetch(FileSource(Path(path)), offset, result_offset, found["tool_use_id"])
    found["input"] = event.input if event else None
    found["output"] = event.result if event else None
    return found


def _of_claude_mem(number: int) -> dict[str, Any]:
    """An observation whose id stands in a bottle as ``[#cm:12]``."""
    observation = ClaudeMem(database(find_home())).observation(number)
    if observation is None:
        raise EndlessError(
            "no_such_observation", f"claude-mem has no observation {number}.", "Ids stand in the bottle as [#cm:12]."
        )
    return {**msgspec.structs.asdict(observation), "id": f"cm:{number}", "source": "claude-mem"}


def _text(found: dict[str, Any], *, full: bool) -> str:
    if found["source"] == "claude-mem":
        return clean(_claude_mem_text(found))
    head = f"[#{found['id']}] {found['title']}"
    about = f"{found['tool']} · {found['status']} · {when(found['first_at'])} UTC · session {found['session']}"
    parts = [head, about]
    outcome, _, _ = found["narrative"].partition("\n")
    if found["input"] is None:
        parts += [found["narrative"]] if found["narrative"] else []
        parts.append("(the transcript is gone; this is what was kept)")
    else:  # of what was kept, the rest stands in the output itself
        output = found["output"] or "(none)"
        parts += [outcome] if outcome and outcome not in output else []
        parts.append("--- input\n" + _values(found["input"]))
        cut = "" if full or len(output) <= SHOWN else f"\n… {len(output) - SHOWN:,} more characters: --full"
        parts.append("--- output\n" + (output if full else output[:SHOWN]) + cut)
    return clean("\n".join(parts))


def _claude_mem_text(found: dict[str, Any]) -> str:
    parts = [
        f"[#{found['id']}] {found['title']}",
        f"{found['type']} · {when(found['at'])} UTC · observed by claude-mem, not verbatim",
    ]
    parts += [found[name] for name in ("subtitle", "narrative") if found[name]]
    for name in ("facts", "files_read", "files_modified"):
        parts += (
            [f"--- {name.replace('_', ' ')}\n" + "\n".join(f"- {one}" for one in found[name])] if found[name] else []
        )
    return "\n".join(parts)


def _values(given: dict[str, Any]) -> str:
    return "\n".join(
        f"{key}: {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for key, value in given.items()
    )
