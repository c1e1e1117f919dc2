"""What is kept, for how long, and what goes first.

* The bottle of a session that is over moves to the archive. Over means: it ended and stayed quiet for a day, or it was
  silent for a week. A laptop that slept over the weekend is not an end.
* With ``KEEP_CONVERSATION`` off, what was said goes when the client deletes the transcript.
* A database past its size gives up excerpts, then change hunks, then the conversation of deleted transcripts, oldest
  sessions first.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from endless_mode.bottle.file import archive, session_lock
from endless_mode.clients.claude_code import ClaudeCode
from endless_mode.home import Home
from endless_mode.importing import holds, transcripts
from endless_mode.model import Digest
from endless_mode.names import is_session_id
from endless_mode.store import Store

DAY = 86_400.0
#: Seconds of quiet after which a session is over: when it said so, and when it did not.
ENDED_QUIET, SILENT = 1 * DAY, 7 * DAY
#: A session that was named for ``endless resume`` but never began is dropped after this.
UNBORN = 7 * DAY
#: How much of the limit is left when a database had to be cut, so that it is not cut every day.
CUT_TO = 0.9

_digest = msgspec.json.Decoder(Digest)


class Vanishing(Struct, frozen=True):
    """A transcript the client deletes soon (``at``: seconds since the epoch); ``held``: the store has all of it."""

    path: Path
    session_id: str
    at: float
    held: bool


def about_to_vanish(
    config_dir: Path, store: Store | sqlite3.Connection | None, days: float = 30, *, soon: float = 7
) -> list[Vanishing]:
    """Transcripts that the client will delete within ``soon`` days, the next ones first.

    The client deletes files that were not changed for ``days`` (its setting ``cleanupPeriodDays``, 30 by default), ten
    minutes after an interactive start. ``store`` is the store or any connection to its database, ``None`` when there is
    none, which holds nothing.
    """

    def is_held(session_id: str, path: Path, agent: str) -> bool:
        ask = partial(holds, session_id=session_id, path=path, agent=agent)
        if store is None:
            return False
        try:
            return store.read(ask) if isinstance(store, Store) else ask(store)
        except (OSError, sqlite3.Error):
            return False

    horizon = time.time() - (days - soon) * DAY
    found: list[Vanishing] = []
    for one in transcripts(config_dir)[0]:
        if one.changed < horizon and one.size > 0:
            beside = ClaudeCode().subagent_files(one.path)
            parts = [("", one.path), *beside]
            held = all(is_held(one.session_id, path, agent) for agent, path in parts)
            found.append(Vanishing(one.path, one.session_id, one.changed + days * DAY, held))
    return sorted(found, key=lambda v: v.at)


# The archive


def sweep(store: Store, home: Home, now: float | None = None) -> list[Path]:
    """Move the bottles of sessions that are over into the archive, drop sessions that never began; return the moves."""
    at = time.time() if now is None else now
    store.write(lambda db: _drop_unborn(db, at))
    moved: list[Path] = []
    for path in sorted(home.bottles.glob("*.md")):
        if not is_session_id(path.stem) or not is_over(store, path, at):
            continue
        with session_lock(home.run / "locks", path.stem):
            target = archive(path, home.archive, int(at * 1000))
        store.write(partial(_note_place, content_id=path.stem, path=str(target)))
        moved.append(target)
    return moved


def is_over(store: Store, bottle: Path, now: float) -> bool:
    """Whether the session of a bottle is over. What happened last counts: in the store, the transcript, the bottle."""
    row = store.read(
        lambda db: db.execute(
            "SELECT last_at, ended_at, t.path FROM sessions s LEFT JOIN transcripts t ON t.session_id = s.id"
            " AND t.agent = '' WHERE content_session_id = ?",
            (bottle.stem,),
        ).fetchone()
    )
    last_at, ended_at, transcript = row or (None, None, None)
    seen = [(last_at or 0) / 1000, (ended_at or 0) / 1000]
    for path in (bottle, Path(transcript) if transcript else None):
        if path is not None and path.exists():
            seen.append(path.stat().st_mtime)
    ended = ended_at is not None and (last_at or 0) <= ended_at
    return now - max(seen) > (ENDED_QUIET if ended else SILENT)


def _note_place(db: sqlite3.Connection, content_id: str, path: str) -> None:
    db.execute(
        "UPDATE bottles SET path = ? WHERE session_id IN (SELECT id FROM sessions WHERE content_session_id = ?)",
        (path, content_id),
    )


def _drop_unborn(db: sqlite3.Connection, now: float) -> None:
    db.execute(
        "DELETE FROM sessions WHERE predecessor <> '' AND id NOT IN (SELECT session_id FROM transcripts)"
        " AND id NOT IN (SELECT session_id FROM messages)"
        " AND id IN (SELECT session_id FROM deliveries WHERE armed_at < ?)",
        ((now - UNBORN) * 1000,),
    )


# The conversation of deleted transcripts


def drop_conversations(store: Store, home: Home) -> list[str]:
    """Remove what was said in sessions whose transcript the client has deleted; return their ids.

    Observations stay. A transcript counts as deleted only while its client's directory can be seen.
    """
    rows = store.read(
        lambda db: db.execute(
            "SELECT s.id, content_session_id, path FROM transcripts t JOIN sessions s ON s.id = t.session_id"
            " WHERE agent = '' AND EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id)"
        ).fetchall()
    )
    gone: list[str] = []
    for session, content_id, name in rows:
        path = Path(name)
        if path.exists() or not path.parent.parent.is_dir():
            continue
        store.write(partial(_drop_conversation, session=session))
        name = f"{content_id}.md"
        archived = [path for path in home.archive.glob(f"*-{name}") if path.name.partition("-")[2] == name]
        for bottle in (home.bottles / name, *archived):
            bottle.unlink(missing_ok=True)
        gone.append(content_id)
    return gone


def _drop_conversation(db: sqlite3.Connection, session: int) -> None:
    db.execute("DELETE FROM messages WHERE session_id = ?", (session,))
    db.execute("DELETE FROM summaries WHERE session_id = ?", (session,))
    db.execute("DELETE FROM bottles WHERE session_id = ?", (session,))


# The size of the database


def used_bytes(db: sqlite3.Connection) -> int:
    """Bytes of the database that hold something."""
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def trim(store: Store, most: int, pause: Callable[[], None] = lambda: None) -> int:
    """Bring the database under ``most`` bytes; return about how many were given up. The newest sessions give last.

    What is given up is free within its pages; the file itself shrinks when it is copied (``VACUUM``).
    """
    wanted = store.read(used_bytes) - most
    if wanted <= 0:
        return 0
    wanted += int(most * (1 - CUT_TO))
    given = 0
    oldest = store.read(
        lambda db: [
            row for (row,) in db.execute("SELECT id FROM sessions ORDER BY coalesce(last_at, started_at, 0), id")
        ]
    )
    stages: tuple[Callable[..., int], ...] = (_excerpts, _hunks, _conversation)
    for give_up in stages:
        for session in oldest:
            given += store.write(partial(give_up, session=session))
            pause()
            if given >= wanted:
                return given
    return given


def _excerpts(db: sqlite3.Connection, session: int) -> int:
    """The bounded excerpts: of an observation the first line stays, which is its outcome."""
    where = "session_id = ? AND instr(narrative, char(10)) > 0"
    given = _bytes(db, "substr(narrative, instr(narrative, char(10)))", "observations", where, session)
    db.execute(
        f"UPDATE observations SET narrative = substr(narrative, 1, instr(narrative, char(10)) - 1) WHERE {where}",
        (session,),
    )
    return given + _lighten(db, session, "excerpt")


def _hunks(db: sqlite3.Connection, session: int) -> int:
    return _lighten(db, session, "hunks")


def _lighten(db: sqlite3.Connection, session: int, name: str) -> int:
    changed: list[tuple[str, int]] = []
    given = 0
    rows = db.execute(
        "SELECT id, digest FROM tool_events WHERE session_id = ? AND instr(digest, ?)", (session, f'"{name}":')
    )
    for row, text in rows:
        digest = _digest.decode(text)
        empty = type(getattr(digest, name))()
        lighter = msgspec.json.encode(msgspec.structs.replace(digest, **{name: empty})).decode()
        given += len(text) - len(lighter)
        changed.append((lighter, row))
    db.executemany("UPDATE tool_events SET digest = ? WHERE id = ?", changed)
    return given


def _conversation(db: sqlite3.Connection, session: int) -> int:
    """What was said, once the client's own record of it is gone; the bottle on disk still has it."""
    row = db.execute("SELECT path FROM transcripts WHERE session_id = ? AND agent = ''", (session,)).fetchone()
    if row is not None and Path(row[0]).exists():
        return 0
    given = _bytes(db, "text", "messages", "session_id = ?", session)
    db.execute("DELETE FROM messages WHERE session_id = ?", (session,))
    return given


def _bytes(db: sqlite3.Connection, column: str, table: str, where: str, session: int) -> int:
    query = f"SELECT coalesce(sum(length({column})), 0) FROM {table} WHERE {where}"
    return int(db.execute(query, (session,)).fetchone()[0])
