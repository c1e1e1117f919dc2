"""``endless rebuild``: derive the store from the transcripts once more. Ids and deliveries stay."""

from __future__ import annotations

import argparse
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from endless_mode.cli.naming import whole_id
from endless_mode.cli.output import emit, progress, say
from endless_mode.errors import EndlessError
from endless_mode.home import Home, find_home
from endless_mode.ingest import ingest_file
from endless_mode.install.apply import stop_worker
from endless_mode.store import Store, StoreBusy
from endless_mode.worker.client import ensure_worker

#: Seconds that a worker may take to start before it is asked to end.
STARTING = 15.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("session", metavar="SESSION", nargs="?", default="", help="only this session")
    parser.epilog = "A worker that runs is stopped for it and started again; best while no session is at work."
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
    failed: list[str] = []
    only = whole_id(home, given.session)
    with _worker_away(home), Store.open(home.database, patience=5.0) as store:
        for session_id, path in store.read(lambda db: _transcripts(db, only)):
            if not Path(path).exists():
                gone.append(session_id)
                continue
            store.write(partial(forget_cursor, session_id=session_id))
            try:
                ingest_file(store, Path(path), session_id=session_id, progress=progress(session_id[:8]))
            except EndlessError as error:
                say(f"note: session {session_id}: {error.message}")
                failed.append(session_id)
                continue
            done.append(session_id)
    if given.session and not done and not gone and not failed:
        raise EndlessError(
            "no_such_session", f"Session {given.session} is not in the store.", "See `endless sessions`."
        )
    if given.json:
        emit({"rebuilt": done, "transcript_gone": gone, "unreadable": failed})
    else:
        unread = f", {len(failed)} whose transcript cannot be read" if failed else ""
        say(f"{len(done)} sessions read again, {len(gone)} left as they are because their transcript is gone{unread}")
    return 1 if failed else 0


@contextmanager
def _worker_away(home: Home) -> Iterator[None]:
    """No worker runs inside and none is started; one that ran comes back afterwards.

    The right to start one is a lock (``hook/slow.py``). Hooks that come meanwhile keep their events for the next worker.
    """
    home.create()
    lock = os.open(home.start_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    ran = False
    try:
        _take(lock)
        ran = stop_worker(home)
        yield
    finally:
        os.close(lock)
        if ran:
            with suppress(EndlessError):
                ensure_worker(home)


def _take(lock: int) -> None:
    until = time.monotonic() + STARTING
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise StoreBusy("store_busy", "A worker is starting all the time.", "Run the command again.") from error
            time.sleep(0.02)


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
