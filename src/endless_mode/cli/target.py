"""What a command works on: a transcript file, or a session by its id."""

from __future__ import annotations

import gzip
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from endless_mode.bottle.entries import Document
from endless_mode.bottle.session import SessionDocument, gap
from endless_mode.bottle.view import load_session
from endless_mode.cli.naming import too_short, whole_id
from endless_mode.cli.output import progress, say
from endless_mode.clients.claude_code import ClaudeCode
from endless_mode.deliver.ladder import Rung, best_document, forgot_since
from endless_mode.errors import EndlessError
from endless_mode.forgetting import lay_tombstones, tombstones
from endless_mode.home import Home, find_home
from endless_mode.ingest import IngestResult, ingest_file
from endless_mode.names import is_session_id
from endless_mode.settings import load
from endless_mode.store import Store, open_reader

T = TypeVar("T")
#: How the names of transcripts end.
_FILES = (".jsonl", ".jsonl.gz")


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
    path = Path(os.path.expanduser(name))  # noqa: PTH111 (Path.expanduser fails for a user nobody knows)
    if path.name.endswith(_FILES) or os.sep in name or os.path.isfile(path):  # noqa: PTH113 (names too long)
        return Target(path, "", True)
    if not is_session_id(name):
        raise NoSuchSession("no_such_session", f"{name!r} is no file and no session id.", "See `endless sessions`.")
    name = whole_id(home, name)
    known = _stored_path(home, name)
    found = known if known is not None and known.exists() else ClaudeCode().find_transcript(name, config_dir())
    if found is None:
        raise NoSuchSession(
            "no_such_session",
            f"No transcript of session {name} was found.",
            too_short(name)
            or "Give the path of its .jsonl file, or set CLAUDE_CONFIG_DIR to the client's configuration directory.",
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


class Found(Struct):
    """The best there is of the session that the user named, and what is known of it.

    ``target`` and ``result`` are there when its transcript is.
    """

    document: Document | SessionDocument
    rung: Rung
    why: str
    home: Home
    session_id: str
    target: Target | None = None
    result: IngestResult | None = None
    context_tokens: int = 0
    offset: int = 0
    gap: int = 0


@contextmanager
def best(name: str) -> Iterator[Found]:
    """Walk down the ladder for what the user typed: a file, or the id of a session with or without a transcript.

    The document is good inside.

    Raises:
        NoSuchSession: nothing has survived of it.
        EndlessError: a file that was named cannot be read.
    """
    home = find_home()
    enriched = load(home).enrich
    if is_session_id(name) and not Path(name).is_file():
        name = whole_id(home, name, config_dir())
    with ExitStack() as stack:
        try:
            made = stack.enter_context(loaded(name))
            found = _with_transcript(made, enriched, stack)
        except EndlessError as error:
            if not is_session_id(name) or Path(name).is_file() or name.endswith(_FILES):
                raise
            found = _without_transcript(name, stack.enter_context(_reader(home)), home, error, enriched)
        yield found


def _with_transcript(made: Loaded, enriched: bool, stack: ExitStack) -> Found:
    db = stack.enter_context(made.store.reading())
    row = load_session(db, made.session)
    enriched = enriched and not _spared(made.home, row.started_at)
    found = best_document(made.home, made.store, row.content_session_id, config_dir=config_dir(), enriched=enriched)
    assert found.document is not None, "a transcript that was read makes a document"
    return Found(
        found.document,
        found.rung,
        found.why,
        made.home,
        row.content_session_id,
        made.target,
        made.result,
        row.context_tokens,
        row.offset,
        gap(db, made.session),
    )


def _without_transcript(name: str, store: _Reader | None, home: Home, problem: EndlessError, enriched: bool) -> Found:
    found = best_document(home, store, name, config_dir=config_dir(), enriched=enriched)
    if found.document is None:
        raise NoSuchSession(problem.code, f"{problem.message} Nothing else is left of it: {found.why}.", problem.hint)
    made = Found(found.document, found.rung, found.why, home, name)
    if store is not None and found.session is not None:
        number = found.session
        row = store.read(lambda db: load_session(db, number))
        made.context_tokens, made.offset = row.context_tokens, row.offset
        made.gap = store.read(lambda db: gap(db, number))
    return made


class _Reader:
    """The user's database, which is only read."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        return fn(self._db)


@contextmanager
def _reader(home: Home) -> Iterator[_Reader | None]:
    if not home.database.exists():
        yield None
        return
    with closing(open_reader(home.database)) as db:
        db.execute("BEGIN")
        yield _Reader(db)


def _spared(home: Home, began: int | None) -> bool:
    with _reader(home) as store:
        return store is not None and store.read(lambda db: forgot_since(db, began))


def _keep_forgotten(home: Home, store: Store) -> None:
    with _reader(home) as known:
        if known is not None:
            sessions, texts = known.read(tombstones)
            store.write(lambda db: lay_tombstones(db, sessions, texts))


def _check_kind(path: Path) -> None:
    """Raise :class:`EndlessError` for what is no file, or not packed as its name says; the rest shows when it is read."""
    if os.path.isdir(path):  # noqa: PTH112 (names too long)
        raise EndlessError("transcript_unreadable", f"{path} is a directory.", "Name the .jsonl file of a session.")
    try:
        if path.name.endswith(".gz"):
            with gzip.open(path) as packed:
                packed.read(1)
    except gzip.BadGzipFile as error:
        raise EndlessError(
            "transcript_unreadable", f"{path} is not packed with gzip.", "If it is plain text, name it .jsonl."
        ) from error
    except (OSError, EOFError, zlib.error, ValueError):
        return


@contextmanager
def loaded(name: str) -> Iterator[Loaded]:
    """The named session, read into a private store that vanishes again.

    The user's database is left to the worker, which alone writes it. What the user had forgotten does not come back when
    a session is named by its id; a file that is named is read as it is.
    """
    home = find_home()
    target = find(name, home)
    with Store.temporary() as store:
        if not target.by_path:
            _keep_forgotten(home, store)
        _check_kind(target.path)
        result = ingest_file(store, target.path, session_id=target.session_id, progress=progress("reading"))
        if result.torn:
            say(f"note: the last {result.torn} bytes of the transcript are no whole line yet and were left out")
        if result.skipped:
            say(f"note: {result.skipped} lines of the transcript could not be read and were left out")
        yield Loaded(store, result.session, home, target, result)
