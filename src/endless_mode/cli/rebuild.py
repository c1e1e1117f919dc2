"""``endless rebuild``: derive the store from the transcripts once more. Ids, deliveries and bottles stay."""

from __future__ import annotations

import argparse
import sqlite3
from functools import partial
from pathlib import Path

from endless_mode.cli.naming import whole_id
from endless_mode.cli.output import emit, progress, say
from endless_mode.errors import EndlessError
from endless_mode.home import find_home
from endless_mode.ingest import ingest_file
from endless_mode.store import Store, StoreBusy


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("session", metavar="SESSION", nargs="?", default="", help="only this session")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """Read every transcript that is still there from its beginning."""
    home = find_home()
    if not home.database.exists():
        raise EndlessError(
            "no_store", "There is no database yet.", "It comes with the first session that runs with the hooks."
        )
    done: list[str] = []
    gone: list[str] = []
    only = whole_id(home, given.session)
    with _writing(home.database) as store:
        for session_id, path in store.read(lambda db: _transcripts(db, only)):
            if not Path(path).exists():
                gone.append(session_id)
                continue
            store.write(partial(forget_cursor, session_id=session_id))
            ingest_file(store, Path(path), session_id=session_id, progress=progress(session_id[:8]))
            done.append(session_id)
    if given.session and not done and not gone:
        raise EndlessError(
            "no_such_session", f"Session {given.session} is not in the store.", "See `endless sessions`."
        )
    if given.json:
        emit({"rebuilt": done, "transcript_gone": gone})
    else:
        say(f"{len(done)} sessions read again, {len(gone)} left as they are because their transcript is gone")
    return 0


def _writing(database: Path) -> Store:
    try:
        return Store.open(database)
    except StoreBusy as error:
        hint = "The worker writes it while it runs: `endless worker stop`, then run the command again."
        raise StoreBusy(error.code, error.message, hint) from error


def forget_cursor(db: sqlite3.Connection, session_id: str) -> None:
    """Make the next ingest of a session begin at 0, in a new generation, on the same rows."""
    db.execute(
        "UPDATE transcripts SET anchor = x'' WHERE session_id IN (SELECT id FROM sessions WHERE content_session_id = ?)",
        (session_id,),
    )


def _transcripts(db: sqlite3.Connection, only: str) -> list[tuple[str, str]]:
    return db.execute(
        "SELECT content_session_id, path FROM transcripts t JOIN sessions s ON s.id = t.session_id"
        " WHERE agent = '' AND (?1 = '' OR content_session_id = ?1) ORDER BY s.id",
        (only,),
    ).fetchall()
