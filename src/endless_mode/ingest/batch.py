"""Items on their way into the store: collected for a stretch of the transcript, written in one go.

First copy wins: a key that is already there in the same generation keeps its row. A tool event keeps the place of its
call; its result completes it. Observation ids follow the order in which results stand in the file, so the cutting of
a file into stretches does not show in them.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable

import msgspec

from endless_mode.model import (
    Boundary,
    Branch,
    Digest,
    Fact,
    Item,
    Message,
    Observation,
    Proof,
    Summary,
    TaskReport,
    ToolEvent,
    Withdrawn,
)
from endless_mode.observe.base import InlineObserver

#: Turns a client's tool event into its digest.
Digester = Callable[[ToolEvent], Digest]

_json = msgspec.json.Encoder()
_digest = msgspec.json.Decoder(Digest)
#: How a background task ends badly, in the client's words.
_BAD_ENDS = frozenset({"failed", "killed", "error", "stopped"})
#: Kinds of user messages that begin a turn.
TURNS = frozenset({"prompt", "command", "shell", "plan", "private"})


class Batch:
    """One session's items of one stretch. ``flush`` must run inside the transaction that moves the cursor."""

    def __init__(
        self,
        db: sqlite3.Connection,
        session: int,
        gen: int,
        digester: Digester,
        observer: InlineObserver | None,
        cwd: str = "",
    ) -> None:
        self._db = db
        self._session = session
        self._gen = gen
        self._digester = digester
        self._observer = observer
        self._messages: dict[str, Message] = {}
        self._events: dict[str, ToolEvent] = {}
        self._completed: dict[str, None] = {}
        self._prompt_of: dict[str, int] = {}
        (self.prompts,) = db.execute("SELECT prompts FROM sessions WHERE id = ?", (session,)).fetchone()
        self.facts: dict[str, str] = {}
        self._forgotten = {
            key for (key,) in db.execute("SELECT key FROM forgotten WHERE session IN ('', ?)", (self._content_id(),))
        }
        self.first_at: int | None = None
        self.last_at: int | None = None
        self.cwd = cwd

    def _content_id(self) -> str:
        row = self._db.execute("SELECT content_session_id FROM sessions WHERE id = ?", (self._session,)).fetchone()
        return str(row[0])

    def has_message(self, key: str, before: int) -> bool:
        """Whether an earlier line of this generation holds the message already."""
        held = self._messages.get(key)
        if held is not None:
            return held.offset < before
        row = self._db.execute(
            "SELECT 1 FROM messages WHERE session_id = ? AND key = ? AND gen = ? AND offset < ?",
            (self._session, key, self._gen, before),
        ).fetchone()
        return row is not None

    def add(self, item: Item) -> None:
        """Take one item; what the user had forgotten is passed over."""
        if self._forgotten and tombstone_key(item) in self._forgotten:
            return
        match item:
            case Message():
                if item.key not in self._messages:
                    self._messages[item.key] = item
                    if item.role == "user" and item.kind in TURNS:
                        self.prompts += 1
                self._saw(item.at)
            case ToolEvent():
                self._event(item)
            case Fact():
                self.facts[item.name] = item.value
                if item.name == "cwd":
                    self.cwd = item.value
            case Boundary():
                self._db.execute(
                    _BOUNDARY,
                    (
                        self._session,
                        item.key,
                        self._gen,
                        item.offset,
                        item.index,
                        item.trigger,
                        item.pre_tokens,
                        item.at,
                    ),
                )
            case Summary():
                self._db.execute(
                    _SUMMARY, (self._session, item.key, self._gen, item.offset, item.index, item.text, item.at)
                )
            case Proof():
                self._db.execute(
                    "INSERT OR REPLACE INTO proofs VALUES (?, ?, ?, ?, ?, ?)",
                    (self._session, item.offset, self._gen, item.event, item.marker, item.at),
                )
            case Withdrawn():
                self.flush()
                self._db.execute(
                    "UPDATE messages SET withdrawn = ? WHERE session_id = ? AND key = ?",
                    (item.reason, self._session, item.key),
                )
            case Branch():
                self.flush()
                self._branch(item)
            case TaskReport():
                self.flush()
                self._report(item)

    def flush(self) -> None:
        """Write what was collected."""
        if self._messages:
            self._db.executemany(
                _MESSAGE,
                [
                    (self._session, m.key, self._gen, m.offset, m.index, m.role, m.kind, m.text, m.at, m.message_id)
                    for m in self._messages.values()
                ],
            )
            self._messages.clear()
        if self._events:
            self._flush_events()

    # -- tool events ---------------------------------------------------------------------------------------

    def _event(self, event: ToolEvent) -> None:
        held = self._events.get(event.tool_use_id)
        self._saw(event.at)
        if held is not None and held.status != "open":
            return
        if held is not None:
            event.offset, event.index, event.at = held.offset, held.index, held.at
        self._events[event.tool_use_id] = event
        if event.status != "open":
            self._prompt_of[event.tool_use_id] = self.prompts
            self._completed[event.tool_use_id] = None
            self._saw(event.ended_at)

    def _flush_events(self) -> None:
        known = self._known_events(list(self._events))
        digests = {key: self._digester(event) for key, event in self._events.items()}
        ids: dict[str, int] = {}
        fresh: list[tuple[object, ...]] = []
        for key, event in self._events.items():
            row = known.get(key)
            if row is None:
                ids[key] = self._insert_event(event, digests[key])
            elif row[1] < self._gen or (row[2] == "open" and event.status != "open"):
                self._update_event(row[0], event, digests[key], fresh=row[1] < self._gen)
                ids[key] = row[0]
        if self._observer is not None:
            for key in self._completed:
                if key in ids:
                    made = self._observation_row(ids[key], self._events[key], digests[key])
                    if key not in known or not observe_again(self._db, made):
                        fresh.append(made)
            self._db.executemany(OBSERVATION, fresh)
        self._events.clear()
        self._completed.clear()
        self._prompt_of.clear()

    def _known_events(self, keys: list[str]) -> dict[str, tuple[int, int, str]]:
        known: dict[str, tuple[int, int, str]] = {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            for key, row, gen, status in self._db.execute(
                f"SELECT tool_use_id, id, gen, status FROM tool_events WHERE session_id = ? AND tool_use_id IN ({marks})",
                (self._session, *part),
            ):
                known[key] = (row, gen, status)
        return known

    def _insert_event(self, event: ToolEvent, digest: Digest) -> int:
        cursor = self._db.execute(
            _EVENT,
            (
                self._session,
                event.tool_use_id,
                self._gen,
                event.offset,
                event.index,
                event.name,
                event.status,
                self._state_of(event),
                self._kept(digest),
                event.at,
                event.ended_at,
                event.result_offset,
                event.agent_id,
                digest.task_id,
            ),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _update_event(self, row: int, event: ToolEvent, digest: Digest, fresh: bool) -> None:
        self._db.execute(
            _EVENT_DONE,
            (
                event.status,
                self._state_of(event),
                self._kept(digest),
                event.ended_at,
                event.result_offset,
                digest.task_id,
                self._gen,
                row,
            ),
        )
        if fresh:
            self._db.execute(
                "UPDATE tool_events SET offset = ?, idx = ?, at = ?, rewound = '' WHERE id = ?",
                (event.offset, event.index, event.at, row),
            )

    def _kept(self, digest: Digest) -> str:
        """The digest as JSON; without its excerpt once an observation's narrative holds it."""
        if self._observer is not None and digest.excerpt:
            digest = msgspec.structs.replace(digest, excerpt="")
        return _json.encode(digest).decode()

    def _state_of(self, event: ToolEvent) -> str:
        if event.status == "open":
            return "open"
        return "observed" if self._observer is not None else "pending"

    def _observation_row(self, row: int, event: ToolEvent, digest: Digest) -> tuple[object, ...]:
        assert self._observer is not None
        observation = self._observer.observe(digest, event.cwd)
        number = self._prompt_of.get(event.tool_use_id, self.prompts)
        return observation_row(self._session, self._observer.name, row, observation, number, event.at, event.ended_at)

    # -- late news -----------------------------------------------------------------------------------------

    def _report(self, report: TaskReport) -> None:
        """A background use has ended: its digest says so, and its observation is made anew under the same id."""
        row = self._db.execute(
            "SELECT id, digest, at, status FROM tool_events WHERE session_id = ?1 AND gen = ?4"
            " AND ((task_id = ?2 AND task_id <> '') OR tool_use_id = ?3) ORDER BY id LIMIT 1",
            (self._session, report.task_id, report.tool_use_id, self._gen),
        ).fetchone()
        if row is None or row[3] not in ("background", "ok", "failed"):
            return
        digest = _digest.decode(row[1])
        if report.status:
            digest.status = "failed" if report.status in _BAD_ENDS else "ok"
        first = report.result.strip() or report.summary.strip()
        digest.outcome = " ".join(first.split())[:400]
        digest.excerpt = (report.summary + "\n" + report.result).strip()[:4000]
        self._db.execute(
            "UPDATE tool_events SET digest = ?, status = ?, ended_at = ? WHERE id = ?",
            (self._kept(digest), digest.status, report.at, row[0]),
        )
        if self._observer is not None:
            observation = self._observer.observe(digest, self.cwd)
            made = observation_row(
                self._session, self._observer.name, row[0], observation, self.prompts, row[2], report.at
            )
            if not observe_again(self._db, made):
                self._db.execute(OBSERVATION, made)

    def _branch(self, branch: Branch) -> None:
        mark, old = ("", branch.key) if branch.live else (branch.key, "")
        for table in ("messages", "tool_events", "boundaries"):
            self._db.executemany(
                f"UPDATE {table} SET rewound = ? WHERE session_id = ? AND offset = ? AND rewound = ?",
                [(mark, self._session, offset, old) for offset in branch.offsets],
            )

    def _saw(self, at: int | None) -> None:
        if at is not None:
            self.first_at = at if self.first_at is None else min(self.first_at, at)
            self.last_at = at if self.last_at is None else max(self.last_at, at)


def tombstone_key(item: Item) -> str:
    """The name by which a single thing is kept away once it is forgotten; empty for what has no text."""
    match item:
        case Message(key=key) | Summary(key=key) | ToolEvent(tool_use_id=key):
            return key
        case Fact(name="title", value=value):
            return title_key(value)
    return ""


def title_key(title: str) -> str:
    """The tombstone of a title: titles have no key of their own."""
    return "title:" + hashlib.blake2b(title.encode("utf-8", "replace"), digest_size=12).hexdigest()


def observation_row(
    session: int,
    source: str,
    event: int,
    seen: Observation,
    prompt: int,
    first: int | None,
    last: int | None,
    ordinal: int = 0,
) -> tuple[object, ...]:
    """The parameters of one observation, for :data:`OBSERVATION`."""
    lists = (seen.facts, seen.concepts, seen.files_read, seen.files_modified)
    return (
        session,
        source,
        event,
        ordinal,
        seen.type,
        seen.title,
        seen.subtitle,
        seen.narrative,
        *(_json.encode(v).decode() for v in lists),
        seen.run,
        prompt,
        first,
        last,
    )


def observe_again(db: sqlite3.Connection, row: tuple[object, ...]) -> bool:
    """Write an observation over the one that is there, under its id; False when there is none.

    No upsert: a conflict would still use up an id, and ids are to depend on the transcript alone.
    """
    return db.execute(_OBSERVATION_AGAIN, row).rowcount > 0


_MESSAGE = """
INSERT INTO messages (session_id, key, gen, offset, idx, role, kind, text, at, message_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session_id, key) DO UPDATE SET gen = excluded.gen, offset = excluded.offset, idx = excluded.idx,
  role = excluded.role, kind = excluded.kind, text = excluded.text, at = excluded.at,
  message_id = excluded.message_id, withdrawn = '', rewound = ''
WHERE messages.gen < excluded.gen
"""
_EVENT = """
INSERT INTO tool_events (session_id, tool_use_id, gen, offset, idx, name, status, state, digest, at, ended_at,
  result_offset, agent_id, task_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
#: What an observer has taken or answered stays so when the transcript is read again.
_EVENT_DONE = """
UPDATE tool_events SET status = ?1, digest = ?3, ended_at = ?4, result_offset = ?5, task_id = ?6, gen = ?7,
  state = CASE WHEN ?2 <> 'observed' AND state IN ('claimed', 'observed') THEN state ELSE ?2 END WHERE id = ?8
"""
OBSERVATION = """
INSERT INTO observations (session_id, source, event_id, ordinal, type, title, subtitle, narrative, facts, concepts,
  files_read, files_modified, run, prompt_number, first_at, last_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_OBSERVATION_AGAIN = """
UPDATE observations SET type = ?5, title = ?6, subtitle = ?7, narrative = ?8, facts = ?9, concepts = ?10,
  files_read = ?11, files_modified = ?12, run = ?13, last_at = ?16 WHERE event_id = ?3 AND source = ?2 AND ordinal = ?4
"""
_BOUNDARY = """
INSERT INTO boundaries (session_id, key, gen, offset, idx, trigger, pre_tokens, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session_id, key) DO UPDATE SET gen = excluded.gen, offset = excluded.offset, idx = excluded.idx, rewound = ''
WHERE boundaries.gen < excluded.gen
"""
_SUMMARY = """
INSERT INTO summaries (session_id, key, gen, offset, idx, who, text, at) VALUES (?, ?, ?, ?, ?, 'the client', ?, ?)
ON CONFLICT (session_id, key) DO UPDATE SET gen = excluded.gen, offset = excluded.offset, idx = excluded.idx
WHERE summaries.gen < excluded.gen
"""
