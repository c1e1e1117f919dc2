"""Notes of handoffs that the store could not be told of: one small file a session, for the next process.

A row is what the table of deliveries has of one, without its ids. Writing a note may fail as the store did; then nothing
is left to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from endless_mode.bottle.file import write_atomic
from endless_mode.home import Home
from endless_mode.names import is_session_id

Row = tuple[Any, ...]

_rows = msgspec.json.Decoder(list[tuple[str | int | None, ...]])


def note(home: Home, session_id: str, rows: list[Row]) -> None:
    """Write down what is known of a session's deliveries."""
    if rows and is_session_id(session_id):
        with suppress(OSError):
            write_atomic(_place(home) / f"{session_id}.json", msgspec.json.encode(rows))


def notes(home: Home) -> Iterator[tuple[str, list[Row]]]:
    """What was written down, session by session; what cannot be read is passed by."""
    with suppress(OSError):
        for path in sorted(_place(home).glob("*.json")):
            with suppress(OSError, msgspec.MsgspecError):
                if is_session_id(path.stem):
                    yield path.stem, list(_rows.decode(path.read_bytes()))


def forget(home: Home, session_id: str) -> None:
    """The store knows of it now."""
    if is_session_id(session_id):
        with suppress(OSError):
            (_place(home) / f"{session_id}.json").unlink()


def _place(home: Home) -> Path:
    return home.run / "owed"
