"""What was done in a session whose conversation was given up: our lines among prompts that others have kept."""

from __future__ import annotations

import sqlite3

import msgspec
from msgspec import Struct

from endless_mode.bottle.closing import STATE_UNITS, closing
from endless_mode.bottle.entries import Document, Entry, Happened, Line, Mark, Speech
from endless_mode.bottle.short import within
from endless_mode.bottle.view import happened, load_session
from endless_mode.privacy import clean, clean_lines

#: Lines that stand once more in the closing part.
_SHOWN = 25


class Kept(Struct, frozen=True):
    """Lines of what was done with their times, where things stand by them, and the session's directory."""

    lines: list[tuple[int | None, Line]]
    state: str
    project: str


def kept_work(db: sqlite3.Connection, session: int) -> Kept:
    """A line for each tool use of a session."""
    at = load_session(db, session)
    lines: list[tuple[int | None, Line]] = []
    for done in happened(db, at):
        text = f"{done.title} — {done.outcome}" if done.outcome else done.title
        lines.append((done.at, Line([str(done.id)] if done.id else [], clean(text or done.name))))
    state = clean_lines(closing(db, at).state).rstrip("\n")
    last = [f"- {f'[#{line.ids[0]}] ' if line.ids else ''}{line.text}" for _, line in reversed(lines[-_SHOWN:])]
    return Kept(
        lines, "\n".join([*([state] if state else []), "What was done last, newest first:", *last]), clean(at.cwd)
    )


def woven(made: Document, kept: Kept) -> Document:
    """The document with lines of ours at their times, and what they say of the state behind what it says itself."""
    entries: list[Entry] = []
    rest: list[tuple[int, Line]] = []
    for at, line in kept.lines:  # a line without a time stands where the one before it does
        rest.append((max(at or 0, rest[-1][0] if rest else 0), line))
    for entry in made.entries:
        if isinstance(entry, Speech | Mark) and entry.at is not None:
            rest = _put(entries, rest, entry.at)
        entries.append(entry)
    _put(entries, rest, None)
    header = msgspec.structs.replace(made.header, project=kept.project or made.header.project)
    state = within([*made.closing.split("\n"), *kept.state.split("\n")], STATE_UNITS)
    return msgspec.structs.replace(made, header=header, entries=entries, closing=state)


def _put(entries: list[Entry], lines: list[tuple[int, Line]], until: int | None) -> list[tuple[int, Line]]:
    """Append the lines from before a time; return the others."""
    count = next((n for n, (at, _) in enumerate(lines) if until is not None and at >= until), len(lines))
    if count:
        mine = [line for _, line in lines[:count]]
        last = entries[-1] if entries else None
        if isinstance(last, Happened):
            entries[-1] = Happened([*last.lines, *mine])
        else:
            entries.append(Happened(mine))
    return lines[count:]
