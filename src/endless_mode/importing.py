"""Past sessions: every transcript under the client's configuration directory read into the store.

It is ingest over many files and nothing more: what was read has its cursor in the store, so an import that was cut
off goes on where it stopped, and one that has nothing to do costs a look at each file. Newest sessions come first:
they are the ones somebody may want back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from pathlib import Path

from msgspec import Struct, field

from endless_mode.bottle.file import LockTimeout
from endless_mode.clients.claude_code import ClaudeCode
from endless_mode.clients.claude_code.entry import is_whole
from endless_mode.errors import EndlessError
from endless_mode.ingest.ingest import is_forgotten
from endless_mode.tail import FileSource, cursor_at

#: Says how far an import has come.
Report = Callable[["Imported"], None]
#: Reads one transcript into the store: ``(session id, path, progress)``, progress with bytes done and in all; returns
#: how many lines could not be read.
Read = Callable[[str, Path, Callable[[int, int], None]], int]


class Skipped(Struct, frozen=True):
    """A transcript that was not read, and why: ``code`` for programs, ``why`` for people."""

    path: str
    code: str
    why: str


class Imported(Struct, rename="camel"):
    """An import's outcome so far. ``known`` counts transcripts without news, ``bad_lines`` lines nobody can read.

    ``remembered`` sessions have no transcript any more, but what was typed in them is in the client's record, where a
    bottle finds it; ``nameless`` inputs in that record name no session. Both are counted by who asked for the import.
    """

    files: int = 0
    read: int = 0
    known: int = 0
    bad_lines: int = 0
    total_bytes: int = 0
    done_bytes: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    current: str = ""
    remembered: int = 0
    nameless: int = 0


class Found(Struct, frozen=True):
    """A session's transcript on disk."""

    session_id: str
    path: Path
    size: int
    changed: float


class Moved(Exception):
    """Raised out of a progress report to leave this transcript to somebody else; the rest is still imported."""


def import_all(
    read: Read,
    ask: Callable[[Callable[[sqlite3.Connection], bool]], bool],
    config_dir: Path,
    excluded: Callable[[str], bool],
    report: Report = lambda _: None,
) -> Imported:
    """Read every transcript under ``config_dir`` that has something new.

    Args:
        read: reads one transcript, under whatever lock its sessions have.
        ask: runs a question on a reading connection of the store.
        excluded: whether the sessions of a directory are none of ours.
        report: called after each step with the state so far.
    """
    client = ClaudeCode()
    state = Imported()
    found, older = transcripts(config_dir)
    state.skipped += older
    state.files = len(found)
    state.total_bytes = sum(one.size for one in found)
    for one in found:
        state.current = one.session_id
        before = state.done_bytes
        why = _refused(ask, client, one, excluded)
        if why is not None:
            if why.code == "known":
                state.known += 1
            else:
                state.skipped.append(why)
        else:
            _one(read, one, state, report)
        state.done_bytes = before + one.size
        report(state)
    state.current = ""
    return state


def transcripts(config_dir: Path) -> tuple[list[Found], list[Skipped]]:
    """The main transcripts under a configuration directory, newest first, and the older copies that were passed over.

    Files of subagents belong to their session and are not named here.
    """
    found: dict[str, Found] = {}
    older: list[Skipped] = []
    for path in config_dir.glob("projects/*/*.jsonl"):
        if path.name.startswith("agent-"):
            continue
        try:
            stat = path.stat()
        except OSError as error:
            older.append(Skipped(str(path), "transcript_unreadable", error.strerror or "cannot be looked at"))
            continue
        one = Found(path.name.removesuffix(".jsonl"), path, stat.st_size, stat.st_mtime)
        twin = found.get(one.session_id)
        if twin is not None:
            one, twin = sorted((one, twin), key=lambda f: (f.changed, str(f.path)), reverse=True)
            older.append(Skipped(str(twin.path), "older_copy", f"an older copy of {one.path}"))
        found[one.session_id] = one
    ordered = sorted(found.values(), key=lambda f: (-f.changed, str(f.path)))
    return ordered, sorted(older, key=lambda s: s.path)


def exclusion(patterns: Iterable[str], data_dir: Path) -> Callable[[str], bool]:
    """Whether a directory's sessions are left alone: by the user's patterns, or because memory programs work there."""
    globs = list(patterns)

    def excluded(cwd: str) -> bool:
        own = Path(cwd) == data_dir or data_dir in Path(cwd).parents
        return own or any(fnmatch(cwd, glob) or fnmatch(Path(cwd).name, glob) for glob in globs)

    return excluded


def _refused(
    ask: Callable[[Callable[[sqlite3.Connection], bool]], bool],
    client: ClaudeCode,
    one: Found,
    excluded: Callable[[str], bool],
) -> Skipped | None:
    """Why a transcript is not read: empty, excluded, forgotten or (code ``known``) without news."""
    try:
        if one.size == 0:
            return Skipped(str(one.path), "empty_transcript", "empty")
        if ask(lambda db: is_forgotten(db, client.name, one.session_id)):
            return Skipped(str(one.path), "forgotten", "it was forgotten")
        if ask(lambda db: _holds_all(db, client, one)):
            return Skipped(str(one.path), "known", "nothing new")
        source = FileSource(one.path)
        client.session_id(one.path, source)
        if excluded(client.project(source)):
            return Skipped(str(one.path), "excluded", "its project is excluded")
    except EndlessError as error:
        return Skipped(str(one.path), error.code, error.message)
    except OSError as error:
        return Skipped(str(one.path), "transcript_unreadable", error.strerror or "cannot be read")
    return None


def _one(read: Read, one: Found, state: Imported, report: Report) -> None:
    before = state.done_bytes

    def progress(done: int, _whole: int) -> None:
        state.done_bytes = before + min(done, one.size)
        report(state)

    try:
        state.bad_lines += read(one.session_id, one.path, progress)
        state.read += 1
    except (EndlessError, LockTimeout) as error:
        state.skipped.append(Skipped(str(one.path), error.code, error.message))
    except Moved:
        state.known += 1


def _holds_all(db: sqlite3.Connection, client: ClaudeCode, one: Found) -> bool:
    """Whether the store has everything of a session, its subagents' files among them."""
    return holds(db, one.session_id, one.path) and all(
        holds(db, one.session_id, beside, agent) for agent, beside in client.subagent_files(one.path)
    )


def holds(db: sqlite3.Connection, session_id: str, path: Path, agent: str = "") -> bool:
    """Whether the store has everything of a file: read to its end, or to a last line that is not whole."""
    row = db.execute(
        "SELECT t.device, t.inode, t.offset, t.anchor FROM transcripts t JOIN sessions s ON s.id = t.session_id"
        " WHERE s.content_session_id = ? AND t.agent = ?",
        (session_id, agent),
    ).fetchone()
    if row is None:
        return False
    device, inode, offset, anchor = row
    with path.open("rb") as stream:
        cursor = cursor_at(stream, offset)
        if (cursor.device, cursor.inode, cursor.anchor) != (device, inode, anchor):
            return False
        stream.seek(offset)
        rest = stream.readline()
    return not rest or (not rest.endswith(b"\n") and not is_whole(rest))
