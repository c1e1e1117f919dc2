"""The four databases as files of a test's own, and what must be so after every read."""

from __future__ import annotations

import gzip
import hashlib
import os
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from endless_mode.bottle.entries import MODE_RECONSTRUCTED, Document, GeneratedSummary, Happened, Speech
from endless_mode.bottle.parse import parse
from endless_mode.bottle.render import render
from endless_mode.claude_mem import MemSession
from endless_mode.claude_mem.reconstruct import reconstructed

FIXTURES = Path(__file__).parents[1] / "fixtures" / "claude-mem"
FRESH = "fresh-v13.15.3"
UNMIGRATED = "unmigrated-v12.1.1"
UPGRADED = "upgraded-from-v9.0.5"
EDGE = "upgraded-from-community-edge"
#: Each database with the content id of its session.
SESSIONS = {
    FRESH: "0a1b2c3d-1111-4222-8333-444455556666",
    UNMIGRATED: "legacy-content-1",
    UPGRADED: "legacy-content-1",
    EDGE: "legacy-content-1",
}


def database(name: str, directory: Path) -> Path:
    """A database unpacked into a directory, as claude-mem would have it there."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "claude-mem.db"
    path.write_bytes(gzip.decompress((FIXTURES / f"{name}.db.gz").read_bytes()))
    return path


def change(path: Path, *statements: str) -> None:
    """Run statements on a database, with what would stop them switched off."""
    db = sqlite3.connect(path)
    try:
        for pragma in ("foreign_keys=0", "legacy_alter_table=1", "writable_schema=1"):
            db.execute(f"PRAGMA {pragma}")
        for statement in statements:
            db.execute(statement)
        db.commit()
    finally:
        db.close()


def fingerprint(directory: Path) -> dict[str, tuple[str, int, int]]:
    """Every file under a directory with its content, time of change and inode."""
    found = {}
    for path in sorted(directory.rglob("*")):
        stat = path.stat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(directory))] = (hashlib.sha256(data).hexdigest(), stat.st_mtime_ns, stat.st_ino)
    return found


@contextmanager
def untouched(directory: Path) -> Iterator[None]:
    """Nothing under the directory is written, made or removed meanwhile."""
    before = fingerprint(directory)
    yield
    assert fingerprint(directory) == before


def checked(session: MemSession) -> Document:
    """The reconstructed bottle of a session, rendered and read back, with every rule on provenance held."""
    made = checked_text(render(reconstructed(session, 0)).text)
    spoken = "\n".join(entry.text for entry in made.entries if isinstance(entry, Speech))
    prompts = "\n".join(prompt.text for prompt in session.prompts)
    assert all(line in prompts for line in spoken.split("\n")), "the user is quoted with nothing but stored prompts"
    ids = [id for e in made.entries if isinstance(e, Happened) for line in e.lines for id in line.ids]
    assert sorted(ids) == sorted(set(ids))
    assert set(ids) <= {f"cm:{o.id}" for o in session.observations}
    return made


def checked_text(text: str) -> Document:
    """A reconstructed bottle read back: nobody but the user speaks, and summaries stand under nobody's name."""
    made = parse(text)
    assert made.header.mode == MODE_RECONSTRUCTED
    assert not any(line.startswith("**Assistant**") for line in text.split("\n"))
    assert all(entry.role == "user" for entry in made.entries if isinstance(entry, Speech))
    assert all(entry.who == "claude-mem" for entry in made.entries if isinstance(entry, GeneratedSummary))
    return made


def in_child(work: Callable[[], None], *, unprivileged: bool = False) -> None:
    """Run in a child process: a process's own locks do not hold against itself.

    ``unprivileged``: as a user whom permissions bind, which they do not root.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if unprivileged and os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            work()
            code = 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0, "the child failed; its traceback is on standard error"
