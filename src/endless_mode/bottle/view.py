"""A session as the bottle sees it: its main line from the store, in file order.

Main line = rows of the current generation, and rows of an earlier one beyond the cursor (a truncated transcript lost
them, we did not), without what was taken back or rewound.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from endless_mode.model import ASKING, Digest, DigestKind, MessageKind, Role, Status, Todo
from endless_mode.store.migrations import LASTING

_digest = msgspec.json.Decoder(Digest)


class SessionRow(Struct, frozen=True):
    """What the store knows of a session as a whole. Times in milliseconds since the epoch."""

    id: int
    content_session_id: str
    cwd: str
    title: str
    context_tokens: int
    started_at: int | None
    last_at: int | None
    predecessor: str
    gen: int
    offset: int
    path: str


class Said(Struct, frozen=True, gc=False):
    """A message of the main line."""

    offset: int
    index: int
    role: Role
    kind: MessageKind
    text: str
    at: int | None


class Done(Struct, gc=False):
    """A tool event of the main line with the line its observation gives; ``id`` 0 while there is none."""

    offset: int
    index: int
    event: int
    name: str
    status: Status
    state: str
    at: int | None
    id: int
    title: str
    subtitle: str
    outcome: str
    run: str
    kind: str


class Cut(Struct, frozen=True, gc=False):
    """A compaction of the main line, with the client's generated summary when it is known."""

    offset: int
    index: int
    key: str
    trigger: str
    pre_tokens: int | None
    at: int | None


class Rewind(Struct, frozen=True, gc=False):
    """The user went back to an earlier point here."""

    offset: int
    index: int = -1
    at: int | None = None


Place = Said | Done | Cut | Rewind

#: Rows of the main line, and its messages.
_MAIN = "session_id = ?1 AND (gen = ?2 OR offset >= ?3) AND rewound = ''"
_SAID = f"SELECT offset, idx, role, kind, text, at FROM messages WHERE {_MAIN} AND withdrawn = ''"
_NEWEST_FIRST = "ORDER BY offset DESC, idx DESC"


def load_session(db: sqlite3.Connection, session: int) -> SessionRow:
    """The session's row with its main cursor; a session without a transcript has generation 0."""
    row = db.execute(
        "SELECT s.id, content_session_id, cwd, title, context_tokens, started_at, last_at, predecessor,"
        " coalesce(t.gen, 0), coalesce(t.offset, 0), coalesce(t.path, '')"
        " FROM sessions s LEFT JOIN transcripts t ON t.session_id = s.id AND t.agent = '' WHERE s.id = ?",
        (session,),
    ).fetchone()
    return SessionRow(*row)


def messages(db: sqlite3.Connection, at: SessionRow, since: int = -1) -> Iterator[Said]:
    """Messages of the main line in order, from offset ``since`` on."""
    for row in db.execute(
        f"{_SAID} AND offset >= ?4 ORDER BY offset, idx",
        (at.id, at.gen, at.offset, since),
    ):
        yield Said(*row)


def happened(db: sqlite3.Connection, at: SessionRow, since: int = -1) -> Iterator[Done]:
    """Tool events of the main line in order, from offset ``since`` on, without subagents' own."""
    for row in db.execute(
        "SELECT e.offset, e.idx, e.id, e.name, e.status, e.state, e.at, coalesce(o.id, 0), coalesce(o.title, ''),"
        " coalesce(o.subtitle, ''), coalesce(o.narrative, ''), coalesce(o.run, ''), substr(e.digest, 10, 12),"
        " CASE WHEN o.id IS NULL THEN e.digest END"
        " FROM tool_events e LEFT JOIN observations o ON o.event_id = e.id"
        " WHERE e.session_id = ?1 AND (e.gen = ?2 OR e.offset >= ?3) AND e.rewound = '' AND e.agent_id = ''"
        " AND e.offset >= ?4 ORDER BY e.offset, e.idx, o.ordinal",
        (at.id, at.gen, at.offset, since),
    ):
        *place, narrative, run, kind, unobserved = row
        done = Done(*[*place, narrative.partition("\n")[0], run, kind.partition('"')[0]])
        if unobserved is not None:
            done.title = brief(_digest.decode(unobserved))
        yield done


def brief(digest: Digest) -> str:
    """A tool event in a few words while it has no observation: its command, path or pattern."""
    shown = " ".join((digest.command or digest.target).split())[:200]
    return f"`{shown}`" if digest.kind == "shell" and shown else shown


_ASKS = f"role = 'user' AND kind IN ({', '.join(map(repr, ASKING))})"
#: A decision of the user's counts however old it is.
_DECIDED = "(offset, idx) < (?4, ?5) AND kind IN ('answer', 'refusal', 'approval', 'plan')"


def first_request(db: sqlite3.Connection, at: SessionRow) -> Said | None:
    """What the user asked for first."""
    return _request(db, at, "ASC")


def last_request(db: sqlite3.Connection, at: SessionRow) -> Said | None:
    """What the user asked for last."""
    return _request(db, at, "DESC")


def _request(db: sqlite3.Connection, at: SessionRow, order: str) -> Said | None:
    asked = f"{_SAID} AND {_ASKS} ORDER BY offset {order}, idx {order} LIMIT 1"
    row = db.execute(asked, (at.id, at.gen, at.offset)).fetchone()
    return None if row is None else Said(*row)


def latest(db: sqlite3.Connection, at: SessionRow, most: int) -> list[Said]:
    """The newest messages, newest first, and every decision and the first request however old."""
    place = (at.id, at.gen, at.offset)
    kept = [Said(*row) for row in db.execute(f"{_SAID} {_NEWEST_FIRST} LIMIT ?4", (*place, most))]
    if len(kept) < most:
        return kept
    before = (*place, kept[-1].offset, kept[-1].index)
    kept += [Said(*row) for row in db.execute(f"{_SAID} AND {_DECIDED} {_NEWEST_FIRST}", before)]
    first = first_request(db, at)
    if first is not None and first not in kept:
        kept.append(first)
    return kept


def is_spoken(db: sqlite3.Connection, at: SessionRow) -> bool:
    """Whether anything that was said is there."""
    row = db.execute(
        f"SELECT 1 FROM messages WHERE {_MAIN} AND withdrawn = '' AND kind NOT IN ('interrupt', 'private') LIMIT 1",
        (at.id, at.gen, at.offset),
    ).fetchone()
    return row is not None


def cuts(db: sqlite3.Connection, at: SessionRow) -> list[Cut]:
    """Compactions of the main line in order."""
    return [
        Cut(*row)
        for row in db.execute(
            f"SELECT offset, idx, key, trigger, pre_tokens, at FROM boundaries WHERE {_MAIN} ORDER BY offset",
            (at.id, at.gen, at.offset),
        )
    ]


def rewinds(db: sqlite3.Connection, at: SessionRow) -> list[Rewind]:
    """Where branches were left behind, by the keys the reader gave them."""
    keys = db.execute(
        "SELECT DISTINCT rewound FROM messages WHERE session_id = ? AND gen = ? AND rewound <> ''",
        (at.id, at.gen),
    )
    return [Rewind(int(key[1:])) for (key,) in keys]


class Told(Struct):
    """A digest as it is kept in memory from one look to the next; ``memo`` is room for what others make of it.

    The digest is shared: nobody may change it.
    """

    digest: Digest
    memo: dict[str, Any]


#: Digests kept in memory: those of a few sessions that go on.
_KEPT = 2_400


@lru_cache(maxsize=_KEPT)
def _told(digest: str) -> Told:
    return Told(_digest.decode(digest), {})


def digests(db: sqlite3.Connection, at: SessionRow, newest: int) -> Iterator[tuple[Done, Told]]:
    """The tool events that count for where things stand, newest first, subagents' changes among them.

    All of the ``newest``; of older ones those that leave something behind: changed files, tasks, what is not over.
    """
    last: tuple[int, int] | None = None
    for row in db.execute(f"{_DIGESTS} {_NEWEST_FIRST} LIMIT ?4", (at.id, at.gen, at.offset, newest)):
        last = row[:2]
        yield _event(row), _told(row[-1])
    if last is not None:
        for row in db.execute(f"{_DIGESTS} AND {_LASTING} {_NEWEST_FIRST}", (at.id, at.gen, at.offset, *last)):
            outline = msgspec.structs.asdict(_outline.decode(row[-1]))
            yield _event(row), Told(Digest(**outline), {})


def _event(row: tuple[Any, ...]) -> Done:
    *place, agent, _ = row
    return Done(*[*place, 0, "", "", "", "", agent])


class _Outline(Struct):
    """What of an old digest still counts."""

    kind: DigestKind
    tool: str
    status: Status = "ok"
    target: str = ""
    command: str = ""
    outcome: str = ""
    added: int = 0
    removed: int = 0
    todos: list[Todo] = []
    todos_whole: bool = False
    task_id: str = ""


_outline = msgspec.json.Decoder(_Outline)

_DIGESTS = f"SELECT offset, idx, id, name, status, state, at, agent_id, digest FROM tool_events WHERE {_MAIN}"
_LASTING = f"(offset, idx) < (?4, ?5) AND {LASTING}"
