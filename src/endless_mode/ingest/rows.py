"""The rows of observations: how an observation is written, and written again under the id it has."""

from __future__ import annotations

import sqlite3

import msgspec

from endless_mode.model import Observation

_json = msgspec.json.Encoder()


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
    return (
        session,
        source,
        event,
        ordinal,
        seen.type,
        seen.title,
        seen.subtitle,
        seen.narrative,
        _listed(seen.facts),
        _listed(seen.concepts),
        _listed(seen.files_read),
        _listed(seen.files_modified),
        seen.run,
        prompt,
        first,
        last,
    )


def _listed(values: list[str]) -> str:
    return _json.encode(values).decode() if values else "[]"


def observe_again(db: sqlite3.Connection, row: tuple[object, ...]) -> bool:
    """Write an observation over the one that is there, under its id; False when there is none.

    No upsert: a conflict would still use up an id, and ids are to depend on the transcript alone.
    """
    return db.execute(_OBSERVATION_AGAIN, row).rowcount > 0


OBSERVATION = """
INSERT INTO observations (session_id, source, event_id, ordinal, type, title, subtitle, narrative, facts, concepts,
  files_read, files_modified, run, prompt_number, first_at, last_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_OBSERVATION_AGAIN = """
UPDATE observations SET type = ?5, title = ?6, subtitle = ?7, narrative = ?8, facts = ?9, concepts = ?10,
  files_read = ?11, files_modified = ?12, run = ?13, last_at = ?16 WHERE event_id = ?3 AND source = ?2 AND ordinal = ?4
"""
