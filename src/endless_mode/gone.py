"""Sessions that are gone: no transcript, nothing in the store, but the client still knows what was typed in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from endless_mode.clients.claude_code.history import Remembered, overview


class Gone(Struct, frozen=True):
    """Such sessions, the last one first, and how many inputs name no session and so belong to none of them."""

    sessions: tuple[Remembered, ...] = ()
    nameless: int = 0


def gone(config_dir: Path, db: sqlite3.Connection | None, excluded: Callable[[str], bool]) -> Gone:
    """The sessions that only the client's record of typed prompts knows.

    Left out: what the store knows or was told to forget, what has a transcript, and excluded projects. ``db`` is a
    connection to the store, if there is one.
    """
    seen = overview(config_dir)
    there = {path.stem for path in config_dir.glob("projects/*/*.jsonl")}
    if db is not None:
        for query in (
            "SELECT content_session_id FROM sessions",
            "SELECT content_session_id FROM tombstones",
        ):
            there |= {name for (name,) in db.execute(query)}
    left = [one for one in seen.sessions if one.session_id not in there and not excluded(one.project)]
    return Gone(tuple(left), seen.nameless)
