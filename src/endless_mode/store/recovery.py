"""A damaged database is put aside and what can still be read of it is carried over; the transcripts give the rest."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from endless_mode.names import is_session_id
from endless_mode.store.store import Store, StoreBusy, StoreError

#: Tables worth carrying over, parents first. Cursors are not: the next ingest reads the transcripts from the start
#: and lands on the same keys, so ids stay.
CARRIED = (
    "sessions",
    "messages",
    "tool_events",
    "observations",
    "observation_events",
    "boundaries",
    "summaries",
    "proofs",
    "bottles",
    "deliveries",
    "tombstones",
    "forgotten",
    "meta",
)
_SMALL = 64 << 20
#: A damaged schema can make even the error's own message undecodable.
_UNREADABLE = (sqlite3.DatabaseError, UnicodeError)


def open_or_recover(path: Path, suspect: Path, patience: float = 0.0) -> tuple[Store, bool]:
    """Open the database; a damaged one is quarantined first. ``suspect`` is a file that says: look closely.
    ``patience`` is how many seconds to wait for a command that holds the writer's lock for a moment.

    Returns the store and whether it was made anew.

    Raises:
        StoreBusy: another process holds the writer's lock.
        StoreError: no database can be made here at all.
    """
    damaged = path.exists() and not _sound(path, thorough=suspect.exists())
    if not damaged:
        try:
            return Store.open(path, patience), False
        except StoreBusy:
            raise
        except StoreError:
            if not path.exists() or not _is_damage(path):
                raise
    aside = quarantine(path)
    store = Store.open(path, patience)
    if aside is not None:
        store.write(lambda db: carry_over(aside, db))
    suspect.unlink(missing_ok=True)
    return store, True


def quarantine(path: Path) -> Path | None:
    """Move a database with its side files out of the way; return where its main file is now."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    for suffix in ("-wal", "-shm", ""):
        part = Path(f"{path}{suffix}")
        with suppress(FileNotFoundError):
            part.replace(f"{aside}{suffix}")
    return aside if aside.exists() else None


def carry_over(aside: Path, db: sqlite3.Connection) -> int:
    """Copy the rows that can be read; return how many. Rows lose their generation: a new ingest takes them over."""
    copied = 0
    try:
        old = sqlite3.connect(f"file:{aside}?mode=ro", uri=True)
    except sqlite3.Error:
        return 0
    old.text_factory = lambda data: data.decode("utf-8", "replace")
    db.execute("PRAGMA defer_foreign_keys=ON")
    with closing(old):
        for table in CARRIED:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            copied += _copy(old, db, table, columns)
            if table == "sessions":
                copied += _sessions_by_path(old, db)
    for table in ("messages", "tool_events", "boundaries", "summaries", "proofs"):
        db.execute(f"UPDATE {table} SET gen = 0")
    _drop_orphans(db)
    return copied


def _copy(old: sqlite3.Connection, db: sqlite3.Connection, table: str, columns: list[str]) -> int:
    """Both ways from the ends towards the damage."""
    names = ", ".join(columns)
    insert = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
    copied = 0
    for order in ("ASC", "DESC"):
        try:
            for row in old.execute(f"SELECT {names} FROM {table} ORDER BY 1 {order}"):
                with suppress(sqlite3.Error, UnicodeError):
                    copied += db.execute(insert, row).rowcount
        except _UNREADABLE:
            continue
        break
    return copied


def _sessions_by_path(old: sqlite3.Connection, db: sqlite3.Connection) -> int:
    """Sessions whose own row cannot be read, by the names of their transcripts and bottles."""
    made = 0
    for table in ("transcripts", "bottles"):
        with suppress(*_UNREADABLE):
            for session, path in old.execute(f"SELECT session_id, path FROM {table}"):
                name = Path(str(path)).name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".md")
                if isinstance(session, int) and is_session_id(name) and not name.startswith("agent-"):
                    made += db.execute(
                        "INSERT OR IGNORE INTO sessions (id, platform_source, content_session_id)"
                        " VALUES (?, 'claude', ?)",
                        (session, name),
                    ).rowcount
    return made


def _drop_orphans(db: sqlite3.Connection) -> None:
    for table in CARRIED[1:]:
        columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
        if "session_id" in columns:
            db.execute(f"DELETE FROM {table} WHERE session_id NOT IN (SELECT id FROM sessions)")
        if "event_id" in columns:
            db.execute(f"DELETE FROM {table} WHERE event_id NOT IN (SELECT id FROM tool_events)")
        if "observation_id" in columns:
            db.execute(f"DELETE FROM {table} WHERE observation_id NOT IN (SELECT id FROM observations)")


def _sound(path: Path, thorough: bool) -> bool:
    """Whether the file is a database; looked through page by page when it is small or under suspicion."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)) as db:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if thorough or path.stat().st_size < _SMALL:
                return bool(db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
            return True
    except sqlite3.OperationalError:
        return not _is_damage(path)
    except (*_UNREADABLE, OSError):
        return False


def _is_damage(path: Path) -> bool:
    """Whether the file itself is wrong, not merely locked or out of reach."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
        return bool(head) and head != b"SQLite format 3\x00"
    except OSError:
        return False
