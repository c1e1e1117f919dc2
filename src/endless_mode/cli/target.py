"""What a command works on: a transcript file, or a session by its id."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from endless_mode.cli.output import progress, say
from endless_mode.clients.claude_code import ClaudeCode
from endless_mode.errors import EndlessError
from endless_mode.home import Home, find_home
from endless_mode.ingest import IngestResult, ingest_file
from endless_mode.names import is_session_id
from endless_mode.store import Store, open_reader


class NoSuchSession(EndlessError):
    """Nothing is known by this name."""


class Target(Struct, frozen=True):
    """A session's transcript, and whether the user named it by its file."""

    path: Path
    session_id: str
    by_path: bool


class Loaded(Struct):
    """A session in a store, up to date with its transcript."""

    store: Store
    session: int
    home: Home
    target: Target
    result: IngestResult


def config_dir() -> Path:
    """The client's configuration directory."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def find(name: str, home: Home) -> Target:
    """Resolve what the user typed.

    Raises:
        NoSuchSession: no such file, and no session of that id in the store or under the client's directory.
    """
    path = Path(name).expanduser()
    if path.name.endswith((".jsonl", ".jsonl.gz")) or os.sep in name or path.is_file():
        return Target(path, "", True)
    if not is_session_id(name):
        raise NoSuchSession("no_such_session", f"{name!r} is no file and no session id.", "See `endless sessions`.")
    known = _stored_path(home, name)
    found = known if known is not None and known.exists() else ClaudeCode().find_transcript(name, config_dir())
    if found is None:
        raise NoSuchSession(
            "no_such_session",
            f"No transcript of session {name} was found.",
            "Give the path of its .jsonl file, or set CLAUDE_CONFIG_DIR to the client's configuration directory.",
        )
    return Target(found, name, False)


def _stored_path(home: Home, session_id: str) -> Path | None:
    if not home.database.exists():
        return None
    db = open_reader(home.database)
    try:
        row = db.execute(
            "SELECT path FROM transcripts t JOIN sessions s ON s.id = t.session_id"
            " WHERE content_session_id = ? AND agent = '' LIMIT 1",
            (session_id,),
        ).fetchone()
        return Path(row[0]) if row else None
    finally:
        db.close()


@contextmanager
def loaded(name: str) -> Iterator[Loaded]:
    """The named session, read into a private store that vanishes again.

    The user's database is left to the worker, which alone writes it.
    """
    home = find_home()
    target = find(name, home)
    with Store.temporary() as store:
        result = ingest_file(store, target.path, session_id=target.session_id, progress=progress("reading"))
        if result.torn:
            say(f"note: the last {result.torn} bytes of the transcript are no whole line yet and were left out")
        if result.skipped:
            say(f"note: {result.skipped} lines of the transcript could not be read and were left out")
        yield Loaded(store, result.session, home, target, result)
