"""Items on their way into the store: collected for a stretch of the transcript, written in one go.

First copy wins: a key that is already there in the same generation keeps its row. Tool events are ``events.py``.
"""

from __future__ import annotations

import hashlib
import sqlite3

from endless_mode.ingest.events import Digester, Events
from endless_mode.model import (
    Boundary,
    Branch,
    Fact,
    Item,
    Message,
    Proof,
    Summary,
    TaskReport,
    ToolEvent,
    Withdrawn,
)
from endless_mode.observe.base import InlineObserver

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
        self._events = Events(db, session, gen, digester, observer)
        self._messages: dict[str, Message] = {}
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
                self._saw(item.at)
                self._saw(item.ended_at)
                self._events.add(item, self.prompts)
            case Fact():
                if item.name == "cwd":
                    # The session's directory is the first one stated; uses are observed from the present one.
                    self.facts.setdefault("cwd", item.value)
                    self.cwd = item.value
                else:
                    self.facts[item.name] = item.value
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
                self._events.report(item, self.cwd, self.prompts)

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
        self._events.flush()

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


_MESSAGE = """
INSERT INTO messages (session_id, key, gen, offset, idx, role, kind, text, at, message_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session_id, key) DO UPDATE SET gen = excluded.gen, offset = excluded.offset, idx = excluded.idx,
  role = excluded.role, kind = excluded.kind, text = excluded.text, at = excluded.at,
  message_id = excluded.message_id, withdrawn = '', rewound = ''
WHERE messages.gen < excluded.gen
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
