"""Tool events on their way into the store: collected for a stretch, then digested, observed and written, step by step.

An event keeps the place of its call; its result completes it. Observation ids follow the order in which results stand
in the file, so the cutting of a file into stretches does not show in them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import msgspec

from endless_mode.ingest.put_together import cleaned, suspicious
from endless_mode.ingest.rows import OBSERVATION, observation_row, observe_again
from endless_mode.model import Digest, Observation, Status, TaskReport, ToolEvent
from endless_mode.observe.base import InlineObserver

#: Turns a client's tool event into its digest.
Digester = Callable[[ToolEvent], Digest]

_json = msgspec.json.Encoder()
_digest = msgspec.json.Decoder(Digest)
#: How a background task ends badly, in the client's words.
_BAD_ENDS = frozenset({"failed", "killed", "error", "stopped"})


class Events:
    """The tool events of one stretch. ``flush`` must run inside the transaction that moves the cursor."""

    def __init__(
        self, db: sqlite3.Connection, session: int, gen: int, digester: Digester, observer: InlineObserver | None
    ) -> None:
        self._db = db
        self._session = session
        self._gen = gen
        self._digester = digester
        self._observer = observer
        self._events: dict[str, ToolEvent] = {}
        #: The number of the turn in which each completed use ended, in that order.
        self._turns: dict[str, int] = {}

    def add(self, event: ToolEvent, turn: int) -> None:
        """Take a call, or a use with its result; the first result wins."""
        key = event.tool_use_id
        held = self._events.get(key)
        if held is not None:
            if held.status != "open":
                return
            event.offset, event.index, event.at = held.offset, held.index, held.at
        self._events[key] = event
        if event.status != "open":
            self._turns[key] = turn

    def _kept(self, digest: Digest) -> str:
        """The digest as JSON; without its excerpt once an observation's narrative holds it."""
        if self._observer is not None:
            digest.excerpt = ""
        return _json.encode(digest).decode()

    # -- writing -------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what was collected."""
        if not self._events:
            return
        events, observer = self._events, self._observer
        # One step for all events, then the next, and like tools side by side: the processor keeps the code of a step.
        digests = {key: self._digester(events[key]) for key in sorted(events, key=lambda key: events[key].name)}
        seen = (
            {key: observer.observe(digests[key], events[key].cwd) for key in self._turns}
            if observer is not None
            else {}
        )
        for key in suspicious(digests, seen):
            digests[key] = cleaned(digests[key])
            if observer is not None and key in seen:
                seen[key] = cleaned(observer.observe(digests[key], events[key].cwd))
        known = self._known(list(events))
        ids = self._write(digests, known)
        fresh: list[tuple[object, ...]] = []
        for key, observation in seen.items():
            if key not in ids:
                continue
            event = events[key]
            made = self._observation(ids[key], observation, self._turns[key], event.at, event.ended_at)
            if key not in known or not observe_again(self._db, made):
                fresh.append(made)
        self._db.executemany(OBSERVATION, fresh)
        self._events.clear()
        self._turns.clear()

    def _write(self, digests: dict[str, Digest], known: dict[str, tuple[int, int, str]]) -> dict[str, int]:
        """Write the events that are new or say more than their rows; their row ids."""
        ids: dict[str, int] = {}
        fresh: list[tuple[object, ...]] = []
        (newest,) = self._db.execute("SELECT coalesce(max(id), 0) FROM tool_events").fetchone()
        for key, event in self._events.items():
            row = known.get(key)
            if row is None:
                newest += 1
                ids[key] = newest
                fresh.append(self._row(newest, event, digests[key]))
            elif row[1] < self._gen or (row[2] == "open" and event.status != "open"):
                self._update(row[0], event, digests[key], anew=row[1] < self._gen)
                ids[key] = row[0]
        self._db.executemany(_EVENT, fresh)
        return ids

    def _known(self, keys: list[str]) -> dict[str, tuple[int, int, str]]:
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

    def _row(self, row: int, event: ToolEvent, digest: Digest) -> tuple[object, ...]:
        return (
            row,
            self._session,
            event.tool_use_id,
            self._gen,
            event.offset,
            event.index,
            event.name,
            event.status,
            self._state_of(event.status),
            self._kept(digest),
            event.at,
            event.ended_at,
            event.result_offset,
            event.agent_id,
            digest.task_id,
        )

    def _update(self, row: int, event: ToolEvent, digest: Digest, anew: bool) -> None:
        self._db.execute(
            _EVENT_DONE,
            (
                event.status,
                self._state_of(event.status),
                self._kept(digest),
                event.ended_at,
                event.result_offset,
                digest.task_id,
                self._gen,
                row,
            ),
        )
        if anew:
            self._db.execute(
                "UPDATE tool_events SET offset = ?, idx = ?, at = ?, rewound = '' WHERE id = ?",
                (event.offset, event.index, event.at, row),
            )

    def _state_of(self, status: Status) -> str:
        if status == "open":
            return "open"
        return "observed" if self._observer is not None else "pending"

    def _observation(
        self, row: int, observation: Observation, turn: int, first: int | None, last: int | None
    ) -> tuple[object, ...]:
        assert self._observer is not None
        return observation_row(self._session, self._observer.name, row, observation, turn, first, last)

    # -- late news -----------------------------------------------------------------------------------------

    def report(self, report: TaskReport, cwd: str, turn: int) -> None:
        """A background use has ended: its digest says so, and its observation is made anew under the same id."""
        row = self._db.execute(_REPORTED, (self._session, report.task_id, report.tool_use_id, self._gen)).fetchone()
        if row is None or row[3] not in ("background", "ok", "failed"):
            return
        digest = _digest.decode(row[1])
        if report.status:
            digest.status = "failed" if report.status in _BAD_ENDS else "ok"
        first = report.result.strip() or report.summary.strip()
        digest.outcome = " ".join(first.split())[:400]
        digest.excerpt = (report.summary + "\n" + report.result).strip()[:4000]
        digest = cleaned(digest)
        if self._observer is not None:
            observation = cleaned(self._observer.observe(digest, cwd))
            made = self._observation(row[0], observation, turn, row[2], report.at)
            if not observe_again(self._db, made):
                self._db.execute(OBSERVATION, made)
        self._db.execute(
            "UPDATE tool_events SET digest = ?, status = ?, ended_at = ? WHERE id = ?",
            (self._kept(digest), digest.status, report.at, row[0]),
        )


_EVENT = """
INSERT INTO tool_events (id, session_id, tool_use_id, gen, offset, idx, name, status, state, digest, at, ended_at,
  result_offset, agent_id, task_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
#: What an observer has taken or answered stays so when the transcript is read again.
_EVENT_DONE = """
UPDATE tool_events SET status = ?1, digest = ?3, ended_at = ?4, result_offset = ?5, task_id = ?6, gen = ?7,
  state = CASE WHEN ?2 <> 'observed' AND state IN ('claimed', 'observed') THEN state ELSE ?2 END WHERE id = ?8
"""
#: Two look-ups by index; one condition with OR reads the whole table.
_REPORTED = """
SELECT id, digest, at, status FROM tool_events WHERE id = (SELECT min(id) FROM (
  SELECT id FROM tool_events WHERE session_id = ?1 AND task_id = ?2 AND task_id <> '' AND gen = ?4
  UNION ALL SELECT id FROM tool_events WHERE session_id = ?1 AND tool_use_id = ?3 AND gen = ?4))
"""
