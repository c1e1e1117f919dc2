"""Reads sessions from any ``claude-mem.db``: fresh, upgraded, never migrated, of another code line.

Tables and columns are tested for, never version rows: three code lines reuse the same numbers. Everything of a session
is reached by the one join (platform, content session id) → ``sdk_sessions`` → ``memory_session_id``; some files have a
``content_session_id`` in the other tables too, only partly filled, which is not used.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from endless_mode.claude_mem import values
from endless_mode.claude_mem.session import MemHead, MemObservation, MemPrompt, MemSession, MemSummary
from endless_mode.claude_mem.snapshot import ClaudeMemError, read
from endless_mode.claude_mem.tables import Row, Tables
from endless_mode.errors import SettingsError
from endless_mode.privacy import is_wholly_private
from endless_mode.settings import read_file

T = TypeVar("T")

FILE = "claude-mem.db"
PLATFORM = "claude"


def default_path(environ: Mapping[str, str] | None = None) -> Path:
    """Where claude-mem keeps its database: ``CLAUDE_MEM_DATA_DIR``, what its settings name, or ``~/.claude-mem``."""
    known = os.environ if environ is None else environ
    if named := known.get("CLAUDE_MEM_DATA_DIR"):
        return Path(named).expanduser() / FILE
    home = Path(known.get("HOME") or Path.home()) / ".claude-mem"
    try:
        moved = read_file(home / "settings.json").get("CLAUDE_MEM_DATA_DIR")
    except SettingsError:
        moved = None
    return (Path(moved).expanduser() if isinstance(moved, str) and moved else home) / FILE


class ClaudeMem:
    """A claude-mem database. Nothing is held open: each call makes one short read of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(cls, path: Path | None = None) -> ClaudeMem:
        """The database at ``path`` (default: where claude-mem keeps it), looked at once.

        Raises:
            ClaudeMemError: no file, no database, damaged, busy, or not claude-mem's (``not_claude_mem``).
        """
        mem = cls(default_path() if path is None else path)
        mem._read(bool)
        return mem

    def session(self, content_session_id: str, platform: str = PLATFORM) -> MemSession | None:
        """Everything stored of one session of one platform; ``None`` when it is not there.

        Raises:
            ClaudeMemError: see :meth:`open`.
        """
        return self._read(lambda tables: _session(tables, content_session_id, platform))

    def sessions(self, project: str | None = None, platform: str = PLATFORM, limit: int = 50) -> list[MemHead]:
        """Sessions of a project (default: of all), newest first.

        Raises:
            ClaudeMemError: see :meth:`open`.
        """
        return self._read(lambda tables: _heads(tables, project, platform, limit))

    def observation(self, number: int) -> MemObservation | None:
        """One observation by the id that stands in a bottle as ``[#cm:<id>]``."""
        return self._read(lambda tables: next(map(_observation, tables.rows("observations", {"id": number})), None))

    def _read(self, work: Callable[[Tables], T]) -> T:
        return read(self.path, lambda db: work(_checked(db, self.path)))


def _checked(db: sqlite3.Connection, path: Path) -> Tables:
    tables = Tables(db)
    if "content_session_id" not in tables.columns("sdk_sessions"):
        raise ClaudeMemError(
            "not_claude_mem",
            f"{path} is no database of claude-mem: it has no sessions in a form that is known.",
            "Files of versions before 8 become readable once a newer claude-mem has opened them.",
        )
    return tables


def _session(tables: Tables, content_id: str, platform: str) -> MemSession | None:
    namesakes = tables.rows("sdk_sessions", {"content_session_id": content_id})
    mine = sorted((r for r in namesakes if values.platform(r["platform_source"]) == platform), key=lambda r: r.key)
    if not mine:
        return None
    row = mine[0]
    prompts = _prompts(tables, row, content_id, alone=len(namesakes) == 1)
    first = values.raw(row["user_prompt"])
    hidden = is_wholly_private(first)
    if not prompts and first.strip():
        prompts = [_prompt(1, first, row)]
    memory = row["memory_session_id"]
    linked = {"memory_session_id": memory}
    observed = tables.rows("observations", linked) if memory else []
    summed = tables.rows("session_summaries", linked) if memory else []
    return MemSession(
        content_session_id=content_id,
        platform=platform,
        project=values.text(row["project"]),
        title=values.text(row["custom_title"]),
        started=values.time(row["started_at_epoch"], row["started_at"]),
        prompts=tuple(prompts),
        observations=tuple(map(_observation, observed)),
        summaries=tuple(map(_summary, summed)),
        problems=tuple(tables.problems),
        opens_private=hidden,
    )


def _prompts(tables: Tables, session: Row, content_id: str, *, alone: bool) -> list[MemPrompt]:
    """The session's prompts by number. Rows that name no session row count only where no other can be meant."""
    if "session_db_id" in tables.columns("user_prompts"):
        rows = tables.rows("user_prompts", {"session_db_id": session.key})
        if alone:
            rows += tables.rows("user_prompts", {"session_db_id": None, "content_session_id": content_id})
    elif alone:
        rows = tables.rows("user_prompts", {"content_session_id": content_id})
    else:
        tables.problems.append("the prompts of this session cannot be told from those of another platform")
        rows = []
    rows.sort(key=lambda r: r.key)
    found: list[tuple[int, MemPrompt]] = []
    last = 0
    for row in rows:
        numbered = values.number(row["prompt_number"])
        last = numbered if numbered is not None else last
        found.append((last, _prompt(numbered, values.raw(row["prompt_text"]), row)))
    return [prompt for _, prompt in sorted(found, key=lambda pair: pair[0])]


def _prompt(number: int | None, stored: str, row: Row) -> MemPrompt:
    at = _created(row) or values.time(row["started_at_epoch"], row["started_at"])
    private = is_wholly_private(stored)
    return MemPrompt(number, "" if private else values.text(stored), at, values.is_cut(stored), private)


def _observation(row: Row) -> MemObservation:
    legacy = values.text(row["text"])
    return MemObservation(
        id=row.key,
        type=values.text(row["type"]),
        title=values.text(row["title"]),
        subtitle=values.text(row["subtitle"]),
        narrative=values.text(row["narrative"]) or legacy,
        facts=values.texts(row["facts"]),
        concepts=values.texts(row["concepts"]),
        files_read=values.texts(row["files_read"]),
        files_modified=values.texts(row["files_modified"]),
        number=_positive(row["prompt_number"]),
        at=_created(row),
        agent=values.text(row["agent_type"]) or ("subagent" if values.raw(row["agent_id"]) else ""),
    )


def _summary(row: Row) -> MemSummary:
    return MemSummary(
        id=row.key,
        request=values.text(row["request"]),
        investigated=values.text(row["investigated"]),
        learned=values.text(row["learned"]),
        completed=values.text(row["completed"]),
        next_steps=values.text(row["next_steps"]),
        notes=values.text(row["notes"]),
        number=_positive(row["prompt_number"]),
        at=_created(row),
    )


def _created(row: Row) -> int | None:
    return values.time(row["created_at_epoch"], row["created_at"])


def _positive(value: Any) -> int | None:
    number = values.number(value)
    return number if number is not None and number > 0 else None


def _heads(tables: Tables, project: str | None, platform: str, limit: int) -> list[MemHead]:
    rows = tables.rows("sdk_sessions", {} if project is None else {"project": project})
    heads = [
        MemHead(
            values.raw(row["content_session_id"]),
            platform,
            values.text(row["project"]),
            values.text(row["custom_title"]),
            values.time(row["started_at_epoch"], row["started_at"]),
            values.text(row["user_prompt"])[:300],
        )
        for row in rows
        if values.platform(row["platform_source"]) == platform
    ]
    return sorted(heads, key=lambda head: head.started or 0, reverse=True)[:limit]
