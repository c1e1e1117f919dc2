"""The database: one writer, readers that only read.

SQLite 3.7.0 to 3.51.2 can lose a WAL reset when two connections write or checkpoint; so exactly one connection in
the whole system writes and checkpoints. A lock file beside the database, held for the store's life, makes that so
across processes. All writes go through one thread: callers hand it a function and wait for its outcome; what is
waiting at the same time shares a commit.
"""

from __future__ import annotations

import fcntl
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from endless_mode.errors import EndlessError
from endless_mode.store.migrations import migrate

T = TypeVar("T")
Work = tuple[Callable[[sqlite3.Connection], Any], "Future[Any]", bool]

_BUSY_MS = 5_000


class StoreError(EndlessError):
    """The database cannot be opened, or is damaged."""


class StoreBusy(StoreError):
    """Another process is the writer."""

    status = 409


class Store:
    """One database file (or a private temporary one) with its writer.

    ``write(fn)`` runs ``fn(connection)`` inside a transaction on the writer thread and returns its value; an
    exception undoes what that function did and is raised to its caller alone. ``read(fn)`` runs on a read-only
    connection of the calling thread.
    """

    def __init__(self, path: Path | None, db: sqlite3.Connection, lock: int | None) -> None:
        self.path = path
        self._db = db
        self._lock = lock
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, path: Path, patience: float = 0.0) -> Store:
        """Open or create the database at ``path`` as its one writer, after up to ``patience`` seconds of waiting for another.

        Raises:
            StoreBusy: another process holds the writer's lock.
            StoreError: the file cannot be opened or is no usable database.
        """
        lock = _take_lock(path, patience)
        try:
            db = _connect(path)
            migrate(db)
        except (sqlite3.Error, OSError) as error:
            os.close(lock)
            raise StoreError(
                "database_unusable",
                f"The database {path} cannot be used: {type(error).__name__}.",
                "Run `endless doctor`; the transcripts are untouched and the database can be rebuilt from them.",
            ) from error
        return cls(path, db, lock)

    @classmethod
    def temporary(cls) -> Store:
        """A private database that vanishes when closed; large ones spill to a temporary file."""
        db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        for pragma in ("cache_size=-32000", "synchronous=OFF", "journal_mode=MEMORY", "foreign_keys=ON"):
            db.execute(f"PRAGMA {pragma}")
        migrate(db)
        return cls(None, db, None)

    def write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``fn`` in a transaction on the writer thread and return what it returns."""
        if threading.current_thread() is self._thread or getattr(self._local, "holds", False):
            return fn(self._db)
        if self._closed:
            raise StoreError("store_closed", "The store is closed.")
        future: Future[T] = Future()
        self._work.put((fn, future, False))
        return future.result()

    def alone(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``fn`` on the writer thread outside of any transaction (for ``VACUUM``, checkpoints); others wait."""
        if self._closed:
            raise StoreError("store_closed", "The store is closed.")
        future: Future[T] = Future()
        self._work.put((fn, future, True))
        return future.result()

    def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``fn`` on a connection as :meth:`reading` gives it."""
        with self.reading() as db:
            return fn(db)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read from; what it shows is of one moment, also in calls inside that read too.

        Read-only, the calling thread's own. A private database has one connection alone: its writer waits meanwhile.
        """
        if self._closed:
            raise StoreError("store_closed", "The store is closed.")
        if self.path is None:
            with self._writer_held() as db:
                yield db
            return
        db = self._reader()
        if db.in_transaction:
            yield db
            return
        db.execute("BEGIN")
        try:
            yield db
        finally:
            _roll_back(db)

    @contextmanager
    def _writer_held(self) -> Iterator[sqlite3.Connection]:
        if getattr(self._local, "holds", False) or threading.current_thread() is self._thread:
            yield self._db
            return
        held, free = threading.Event(), threading.Event()

        def wait(_: sqlite3.Connection) -> None:
            held.set()
            free.wait()

        future: Future[Any] = Future()
        self._work.put((wait, future, True))
        held.wait()
        self._local.holds = True
        try:
            yield self._db
        finally:
            self._local.holds = False
            free.set()
            future.result()

    def close(self) -> None:
        """Finish the work that waits, checkpoint, close; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self._work.put(None)
        self._thread.join()
        self._refuse_the_rest()
        for reader in self._readers:
            reader.close()
        try:
            if self.path is not None:
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            pass
        finally:
            self._db.close()
            if self._lock is not None:
                os.close(self._lock)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _refuse_the_rest(self) -> None:
        """Answer what was put in line behind the end."""
        with suppress(queue.Empty):
            while True:
                work = self._work.get_nowait()
                if work is not None:
                    work[1].set_exception(StoreError("store_closed", "The store is closed."))

    def _reader(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            assert self.path is not None
            db = open_reader(self.path)
            self._local.db = db
            self._readers.append(db)
        return db

    def _run(self) -> None:
        while (first := self._work.get()) is not None:
            batch = [first]
            stop = False
            while len(batch) < 64 and not batch[-1][2]:
                try:
                    more = self._work.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    stop = True
                    break
                batch.append(more)
            last = batch.pop() if batch[-1][2] else None
            if batch:
                self._commit(batch)
            if last is not None:
                _run_alone(self._db, last)
            if stop:
                return

    def _commit(self, batch: list[Work]) -> None:
        """Run a batch in one transaction, each function in a savepoint; answer only after the commit."""
        db, done = self._db, []
        try:
            db.execute("BEGIN IMMEDIATE")
            for fn, future, _ in batch:
                db.execute("SAVEPOINT work")
                try:
                    value = fn(db)
                except BaseException as error:
                    future.set_exception(error)
                    db.execute("ROLLBACK TO work")
                    db.execute("RELEASE work")
                else:
                    db.execute("RELEASE work")
                    done.append((future, value))
            db.execute("COMMIT")
        except BaseException as error:
            _roll_back(db)
            for _, future, _ in batch:
                if not future.done():
                    future.set_exception(error)
        else:
            for future, value in done:
                future.set_result(value)


def _run_alone(db: sqlite3.Connection, work: Work) -> None:
    fn, future, _ = work
    try:
        future.set_result(fn(db))
    except BaseException as error:
        _roll_back(db)
        future.set_exception(error)


def _roll_back(db: sqlite3.Connection) -> None:
    """Undo what is open. A disk that fails at this too must not end the writer: its callers would wait for ever."""
    with suppress(sqlite3.Error):
        if db.in_transaction:
            db.execute("ROLLBACK")


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write and never checkpoints."""
    db = sqlite3.connect(
        f"file:{_quoted(path)}?mode=ro",
        uri=True,
        check_same_thread=False,
        isolation_level=None,
        timeout=_BUSY_MS / 1000,
    )
    db.execute("PRAGMA query_only=1")
    db.execute("PRAGMA wal_autocheckpoint=0")
    return db


def _connect(path: Path) -> sqlite3.Connection:
    created = not path.exists()
    if created:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
    db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=_BUSY_MS / 1000)
    db.execute("PRAGMA journal_mode=WAL")
    # Pages that change again and again are copied into the database once for many commits.
    checkpoint = "wal_autocheckpoint=4000"
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON", "cache_size=-16000", "secure_delete=ON", checkpoint):
        db.execute(f"PRAGMA {pragma}")
    for suffix in ("", "-wal", "-shm"):
        side = Path(f"{path}{suffix}")
        if side.exists():
            side.chmod(0o600)
    return db


def _take_lock(path: Path, patience: float) -> int:
    try:
        lock = os.open(f"{path}.writer", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError(
            "database_unusable",
            f"The database {path} cannot be opened: {error.strerror}.",
            "Its directory must exist and belong to you.",
        ) from error
    until = time.monotonic() + patience
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise
                time.sleep(0.02)
    except OSError as error:
        os.close(lock)
        raise StoreBusy(
            "store_busy",
            f"Another process is writing to {path}.",
            "The worker holds it while it runs; the command asks the worker instead when it can reach it.",
        ) from error
    return lock


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
