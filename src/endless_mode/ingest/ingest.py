"""Ingest: read on from the cursor, turn lines into rows, move the cursor, all in one transaction a stretch.

Running it again does nothing; running it after a crash is the same as running it for the first time.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator
from errno import EISDIR, ENOENT
from itertools import chain
from os import strerror
from pathlib import Path

import msgspec
from msgspec import Struct

from endless_mode.clients.base import Counts, Line
from endless_mode.clients.claude_code import ClaudeCode, stem_of
from endless_mode.clients.claude_code.digest import digest
from endless_mode.clients.claude_code.reader import ClaudeCodeReader
from endless_mode.collector import held_off
from endless_mode.errors import EndlessError
from endless_mode.ingest.batch import Batch
from endless_mode.names import BadName, check_session_id
from endless_mode.observe.base import InlineObserver
from endless_mode.observe.rules import RULES
from endless_mode.store import Store
from endless_mode.tail import Cursor, FileSource, continues, cursor_at, lines

#: Bytes of transcript to one transaction.
STRETCH = 8 << 20

Progress = Callable[[int, int], None]


class IngestResult(Struct):
    """What an ingest did. ``session`` is the row id; ``torn`` the bytes at the end that are no whole line yet."""

    session: int
    content_session_id: str
    new_bytes: int = 0
    lines: int = 0
    objects: int = 0
    skipped: int = 0
    torn: int = 0
    reset: bool = False


class Unreadable(EndlessError):
    """The transcript cannot be read."""


class Forgotten(EndlessError):
    """The user had this session forgotten: nothing of it is stored again."""

    status = 410


def ingest_file(
    store: Store,
    path: Path,
    *,
    session_id: str = "",
    adapter: ClaudeCode | None = None,
    observer: InlineObserver | None = RULES,
    progress: Progress | None = None,
    stretch: int = STRETCH,
) -> IngestResult:
    """Bring the store up to date with a main transcript and the files of its subagents.

    Args:
        session_id: content session id when the caller knows it (a hook does); else taken from the file.
        observer: the inline observer, ``None`` leaves the events pending for a slow one.
        progress: called with (bytes read, bytes in all) after each stretch of news, outside the transaction; what it
            raises ends the ingest with everything up to there in the store.
        stretch: bytes of transcript to one transaction; small ones let others write in between.

    Raises:
        Unreadable: no such file, a directory, no permission.
        NotATranscript: the file holds nothing of this client's.
        Forgotten: the user had this session forgotten.
    """
    client = adapter or ClaudeCode()
    source = FileSource(path)
    try:
        if "\0" in str(path):
            raise FileNotFoundError(ENOENT, strerror(ENOENT))
        if path.is_dir():
            raise IsADirectoryError(EISDIR, strerror(EISDIR))
        size = source.size()
        if size == 0:
            raise Unreadable(
                "empty_transcript", f"{path.name} is empty.", "The client writes the first line with the first prompt."
            )
        content_id = check_session_id(session_id) if session_id else client.session_id(path, source)
        session = store.write(lambda db: ensure_session(db, client.name, content_id))
        result = _ingest(store, source, session, content_id, "", client, observer, progress, stretch)
        for agent, beside in client.subagent_files(path):
            _ingest(store, FileSource(beside), session, content_id, agent, client, observer, progress, stretch)
        return result
    except BadName as error:
        raise Unreadable(error.code, error.message, error.hint) from error
    except (OSError, EOFError, zlib.error) as error:
        raise Unreadable(
            "transcript_unreadable",
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.",
            "Check the path and its permissions.",
        ) from error


ingest_session = ingest_file


def ensure_session(db: sqlite3.Connection, platform: str, content_id: str) -> int:
    """The row of a session, made when there is none.

    Raises:
        Forgotten: the user had this session forgotten.
    """
    if is_forgotten(db, platform, content_id):
        raise Forgotten("forgotten", f"Session {content_id} was forgotten.", "What is forgotten does not come back.")
    db.execute(
        "INSERT INTO sessions (platform_source, content_session_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (platform, content_id),
    )
    row = db.execute(
        "SELECT id FROM sessions WHERE platform_source = ? AND content_session_id = ?", (platform, content_id)
    ).fetchone()
    return int(row[0])


def is_forgotten(db: sqlite3.Connection, platform: str, content_id: str) -> bool:
    """Whether a tombstone stands for the session."""
    row = db.execute(
        "SELECT 1 FROM tombstones WHERE platform_source = ? AND content_session_id = ?", (platform, content_id)
    )
    return row.fetchone() is not None


def _ingest(
    store: Store,
    source: FileSource,
    session: int,
    content_id: str,
    agent: str,
    client: ClaudeCode,
    observer: InlineObserver | None,
    progress: Progress | None,
    stretch: int,
) -> IngestResult:
    result = IngestResult(session, content_id)
    flat = not agent and stem_of(source.path).startswith("agent-")
    size = source.size()
    with source.open() as stream:
        cursor, gen, state = store.read(lambda db: _load(db, session, agent))
        hidden: frozenset[str] = frozenset()
        fresh = cursor is not None and (source.packed or not continues(stream, cursor))
        if agent:
            # A subagent's file belongs to the generation of its session's transcript.
            _, main, at = store.read(lambda db: _load(db, session, ""))
            hidden = client.hidden(at) if at else hidden
            fresh, gen = fresh or (cursor is not None and gen != main), main
        elif fresh:
            gen += 1
        if fresh:
            result.reset = True
            cursor, state = None, None
        offset = start = cursor.offset if cursor else 0
        stream.seek(offset)
        known = _Late()
        reader = client.reader(source, state, known, agent=agent, flat=flat, hidden=hidden)
        fed = lines(stream, offset)
        more = True
        while more:

            def work(db: sqlite3.Connection, offset: int = offset) -> tuple[int, bool]:
                _still(db, session, content_id)
                return _stretch(db, known, reader, fed, offset, session, agent, gen, source, observer, stretch)

            moved, more = store.write(work)
            if moved > offset:
                offset = moved
                if progress is not None:
                    progress(offset, size)
    counts = reader.counts
    result.new_bytes, result.lines, result.objects, result.skipped = (
        offset - start,
        counts.lines,
        counts.objects,
        counts.skipped,
    )
    result.torn = 0 if source.packed else max(0, size - offset)
    return result


def _still(db: sqlite3.Connection, session: int, content_id: str) -> None:
    """Raise when the row is no longer this session's: it was forgotten meanwhile, and another may have its number."""
    row = db.execute("SELECT 1 FROM sessions WHERE id = ? AND content_session_id = ?", (session, content_id)).fetchone()
    if row is None:
        raise Forgotten("forgotten", f"Session {content_id} was forgotten.", "What is forgotten does not come back.")


class _Late:
    """Answers the reader's question from the batch that is being filled."""

    batch: Batch | None = None

    def has_message(self, key: str, before: int) -> bool:
        return self.batch is not None and self.batch.has_message(key, before)


def _stretch(
    db: sqlite3.Connection,
    known: _Late,
    reader: ClaudeCodeReader,
    fed: Iterator[Line],
    offset: int,
    session: int,
    agent: str,
    gen: int,
    source: FileSource,
    observer: InlineObserver | None,
    stretch: int,
) -> tuple[int, bool]:
    """Read up to ``stretch`` bytes into rows; return the new offset and whether there is more."""
    saved = msgspec.structs.replace(reader.counts)
    first = next(fed, None)
    if first is None:
        return offset, False
    if offset == 0:
        db.execute(_COUNT_ANEW, (session, agent))
    if offset == 0 and not agent:
        db.execute(_ANEW, (session,))
    batch = Batch(db, session, gen, digest, observer, reader.cwd)
    known.batch = batch
    limit = first.offset + stretch
    end = [first.end]

    def until() -> Iterator[Line]:
        for line in chain((first,), fed):
            end[0] = line.end
            yield line
            if line.end >= limit:
                return

    with held_off():
        for item in reader.feed(until()):
            batch.add(item)
        batch.flush()
    _save(db, session, agent, gen, source, reader, end[0], saved)
    if not agent:
        _session_row(db, session, batch, reader.context_tokens)
        if gen > 1:
            _part(db, session, gen, end[0])
    return end[0], end[0] >= limit


def _load(db: sqlite3.Connection, session: int, agent: str) -> tuple[Cursor | None, int, bytes | None]:
    row = db.execute(
        "SELECT device, inode, offset, anchor, gen, state FROM transcripts WHERE session_id = ? AND agent = ?",
        (session, agent),
    ).fetchone()
    return (Cursor(*row[:4]), row[4], row[5]) if row else (None, 1, None)


def _part(db: sqlite3.Connection, session: int, gen: int, offset: int) -> None:
    """Take rows of another file out of the main line.

    An earlier generation whose rows before ``offset`` all stand in the present file is the same file, cut: what it
    has beyond is kept. One with rows that are not there was another file.
    """
    others = (
        "SELECT gen FROM messages WHERE session_id = ?1 AND gen < ?2 AND offset < ?3 UNION"
        " SELECT gen FROM tool_events WHERE session_id = ?1 AND gen < ?2 AND offset < ?3 AND agent_id = ''"
    )
    for table in ("messages", "tool_events", "boundaries"):
        db.execute(
            f"UPDATE {table} SET rewound = 'replaced' WHERE session_id = ?1 AND gen < ?2 AND rewound <> 'replaced'"
            f" AND gen IN ({others})",
            (session, gen, offset),
        )


_COUNT_ANEW = "UPDATE transcripts SET lines = 0, objects = 0, skipped = 0 WHERE session_id = ? AND agent = ?"
#: What a session's row says by its transcript, forgotten when that is read from its beginning.
_ANEW = """
UPDATE sessions SET prompts = 0, cwd = '', title = '', version = '', branch = '', context_tokens = 0,
  started_at = NULL, last_at = NULL WHERE id = ?
"""


def _save(
    db: sqlite3.Connection,
    session: int,
    agent: str,
    gen: int,
    source: FileSource,
    reader: ClaudeCodeReader,
    offset: int,
    saved: Counts,
) -> None:
    with source.open() as stream:
        cursor = cursor_at(stream, offset)
    counts = reader.counts
    db.execute(
        "INSERT INTO transcripts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session_id, agent) DO UPDATE SET"
        " path = excluded.path, device = excluded.device, inode = excluded.inode, offset = excluded.offset,"
        " anchor = excluded.anchor, gen = excluded.gen, state = excluded.state, lines = lines + excluded.lines,"
        " objects = objects + excluded.objects, skipped = skipped + excluded.skipped",
        (
            session,
            agent,
            str(source.path),
            cursor.device,
            cursor.inode,
            offset,
            cursor.anchor,
            gen,
            reader.state(),
            counts.lines - saved.lines,
            counts.objects - saved.objects,
            counts.skipped - saved.skipped,
        ),
    )


def _session_row(db: sqlite3.Connection, session: int, batch: Batch, context_tokens: int) -> None:
    facts = batch.facts
    db.execute(
        "UPDATE sessions SET prompts = ?1, context_tokens = ?2,"
        " cwd = CASE WHEN cwd = '' THEN ?3 ELSE cwd END, version = CASE WHEN ?4 <> '' THEN ?4 ELSE version END,"
        " branch = CASE WHEN ?5 <> '' THEN ?5 ELSE branch END, title = CASE WHEN ?6 <> '' THEN ?6 ELSE title END,"
        " started_at = min(coalesce(started_at, ?7), coalesce(?7, started_at)),"
        " last_at = max(coalesce(last_at, ?8), coalesce(?8, last_at)) WHERE id = ?9",
        (
            batch.prompts,
            context_tokens,
            facts.get("cwd", ""),
            facts.get("version", ""),
            facts.get("branch", ""),
            facts.get("title", ""),
            batch.first_at,
            batch.last_at,
            session,
        ),
    )
