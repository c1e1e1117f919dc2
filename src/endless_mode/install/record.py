"""``run/install.json`` in the home: what was installed, where, and how to undo it."""

from __future__ import annotations

import contextlib
import os

import msgspec
from msgspec import Struct, field

from endless_mode.home import Home
from endless_mode.install.merge import Trace


class Record(Struct):
    """The installs that are in force. ``settings`` is keyed by the settings file's real path."""

    version: str = ""
    interpreter: str = ""
    hook: str = ""
    at: int = 0
    settings: dict[str, Trace] = field(default_factory=dict)


def load(home: Home) -> Record:
    """The record; an empty one when there is none or it cannot be read."""
    try:
        return msgspec.json.decode((home.run / "install.json").read_bytes(), type=Record)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Record()


def save(home: Home, record: Record) -> None:
    """Write the record, or remove it when nothing is installed any more."""
    place = home.run / "install.json"
    if not record.settings:
        with contextlib.suppress(OSError):
            place.unlink(missing_ok=True)
        return
    draft = place.with_name(f".install.{os.getpid()}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    draft.replace(place)
