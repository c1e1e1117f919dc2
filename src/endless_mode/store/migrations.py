"""The database schema as a list of functions; each runs once, in order, in its own transaction.

Never change a function that has been released; add one. Floor: SQLite 3.37 (no ``->>``, no ``unixepoch()``).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

Migration = Callable[[sqlite3.Connection], None]


def m001_initial(db: sqlite3.Connection) -> None:
    """Sessions and everything read from their transcripts; bottles and deliveries."""
    for statement in _INITIAL.split(";\n\n"):
        db.execute(statement)


_INITIAL = """
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  platform_source TEXT NOT NULL,
  content_session_id TEXT NOT NULL,
  memory_session_id TEXT,
  cwd TEXT NOT NULL DEFAULT '',
  title TEXT NOT NULL DEFAULT '',
  version TEXT NOT NULL DEFAULT '',
  branch TEXT NOT NULL DEFAULT '',
  context_tokens INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER,
  last_at INTEGER,
  ended_at INTEGER,
  end_reason TEXT NOT NULL DEFAULT '',
  predecessor TEXT NOT NULL DEFAULT '',
  prompts INTEGER NOT NULL DEFAULT 0,
  UNIQUE (platform_source, content_session_id)
) STRICT;

CREATE TABLE transcripts (
  session_id INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  agent TEXT NOT NULL DEFAULT '',
  path TEXT NOT NULL,
  device INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  anchor BLOB NOT NULL,
  gen INTEGER NOT NULL,
  state BLOB,
  lines INTEGER NOT NULL DEFAULT 0,
  objects INTEGER NOT NULL DEFAULT 0,
  skipped INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session_id, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  gen INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  role TEXT NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  at INTEGER,
  message_id TEXT NOT NULL DEFAULT '',
  withdrawn TEXT NOT NULL DEFAULT '',
  rewound TEXT NOT NULL DEFAULT '',
  UNIQUE (session_id, key)
) STRICT;

CREATE INDEX messages_place ON messages (session_id, offset, idx);

CREATE TABLE tool_events (
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  tool_use_id TEXT NOT NULL,
  gen INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  state TEXT NOT NULL,
  digest TEXT NOT NULL,
  at INTEGER,
  ended_at INTEGER,
  result_offset INTEGER NOT NULL DEFAULT -1,
  agent_id TEXT NOT NULL DEFAULT '',
  task_id TEXT NOT NULL DEFAULT '',
  rewound TEXT NOT NULL DEFAULT '',
  UNIQUE (session_id, tool_use_id)
) STRICT;

CREATE INDEX tool_events_place ON tool_events (session_id, offset, idx);

CREATE INDEX tool_events_task ON tool_events (session_id, task_id) WHERE task_id <> '';

CREATE INDEX tool_events_waiting ON tool_events (session_id, state) WHERE state IN ('pending', 'claimed');

CREATE TABLE observations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  source TEXT NOT NULL,
  event_id INTEGER NOT NULL REFERENCES tool_events(id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL DEFAULT 0,
  type TEXT NOT NULL,
  title TEXT NOT NULL,
  subtitle TEXT NOT NULL DEFAULT '',
  narrative TEXT NOT NULL DEFAULT '',
  facts TEXT NOT NULL DEFAULT '[]',
  concepts TEXT NOT NULL DEFAULT '[]',
  files_read TEXT NOT NULL DEFAULT '[]',
  files_modified TEXT NOT NULL DEFAULT '[]',
  run TEXT NOT NULL DEFAULT '',
  prompt_number INTEGER NOT NULL DEFAULT 0,
  first_at INTEGER,
  last_at INTEGER,
  UNIQUE (event_id, source, ordinal)
) STRICT;

CREATE INDEX observations_session ON observations (session_id);

CREATE TABLE observation_events (
  observation_id INTEGER NOT NULL REFERENCES observations(id) ON DELETE CASCADE,
  event_id INTEGER NOT NULL REFERENCES tool_events(id) ON DELETE CASCADE,
  PRIMARY KEY (observation_id, event_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX observation_events_event ON observation_events (event_id);

CREATE TABLE boundaries (
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  gen INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  trigger TEXT NOT NULL DEFAULT '',
  pre_tokens INTEGER,
  at INTEGER,
  rewound TEXT NOT NULL DEFAULT '',
  UNIQUE (session_id, key)
) STRICT;

CREATE TABLE summaries (
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  gen INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  who TEXT NOT NULL,
  text TEXT NOT NULL,
  at INTEGER,
  UNIQUE (session_id, key)
) STRICT;

CREATE TABLE proofs (
  session_id INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  offset INTEGER NOT NULL,
  gen INTEGER NOT NULL,
  event TEXT NOT NULL,
  marker TEXT NOT NULL,
  at INTEGER,
  PRIMARY KEY (session_id, offset)
) STRICT, WITHOUT ROWID;

CREATE TABLE bottles (
  session_id INTEGER PRIMARY KEY REFERENCES sessions(id) ON DELETE CASCADE,
  path TEXT NOT NULL,
  mode TEXT NOT NULL,
  rendered_at INTEGER NOT NULL,
  rendered_offset INTEGER NOT NULL,
  gap INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE deliveries (
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  marker TEXT NOT NULL UNIQUE,
  armed_at INTEGER NOT NULL,
  armed_offset INTEGER NOT NULL,
  gap INTEGER NOT NULL DEFAULT 0,
  consumed_at INTEGER,
  consumed_offset INTEGER,
  event TEXT NOT NULL DEFAULT '',
  boundary_key TEXT NOT NULL DEFAULT '',
  mode TEXT NOT NULL DEFAULT '',
  units INTEGER NOT NULL DEFAULT 0,
  plan_tokens INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX deliveries_session ON deliveries (session_id, armed_offset);

CREATE TABLE tombstones (
  id INTEGER PRIMARY KEY,
  platform_source TEXT NOT NULL,
  content_session_id TEXT NOT NULL,
  until INTEGER,
  at INTEGER NOT NULL,
  UNIQUE (platform_source, content_session_id)
) STRICT;

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID
"""


def m002_forgotten(db: sqlite3.Connection) -> None:
    """Single messages and tool uses that must not come back. ``session`` is empty for keys that are unique everywhere."""
    db.execute(
        "CREATE TABLE forgotten (session TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (session, key))"
        " STRICT, WITHOUT ROWID"
    )


#: Of a tool event, as SQL: it leaves something behind, so it counts for where things stand however old it is. A digest
#: begins with its kind: ``{"kind":"edit"``.
LASTING = (
    "(substr(digest, 10, 5) IN ('edit\"', 'write', 'todo\"') OR task_id <> '' OR status = 'open'"
    " OR state IN ('pending', 'claimed'))"
)


def m003_lasting(db: sqlite3.Connection) -> None:
    """An index of the tool events that count however old they are."""
    db.execute(f"CREATE INDEX tool_events_lasting ON tool_events (session_id, offset, idx) WHERE {LASTING}")


MIGRATIONS: list[Migration] = [m001_initial, m002_forgotten, m003_lasting]


def migrate(db: sqlite3.Connection) -> list[str]:
    """Apply what is missing; return the names of what was applied.

    Raises:
        sqlite3.DatabaseError: the file is no usable database.
    """
    db.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)")
    done = {name for (name,) in db.execute("SELECT name FROM migrations")}
    applied: list[str] = []
    for migration in MIGRATIONS:
        name = migration.__name__
        if name in done:
            continue
        db.execute("BEGIN IMMEDIATE")
        try:
            migration(db)
            db.execute("INSERT INTO migrations VALUES (?, datetime('now'))", (name,))
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise
        applied.append(name)
    return applied
