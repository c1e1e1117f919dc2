"""``endless sessions``: the sessions in the store."""

from __future__ import annotations

import argparse
from typing import Any

from endless_mode.cli.output import emit, say, table, when
from endless_mode.home import find_home
from endless_mode.store import open_reader

_QUERY = """
SELECT s.content_session_id AS session, s.cwd AS project, s.title, s.started_at, s.last_at, s.prompts,
  (SELECT count(*) FROM boundaries b WHERE b.session_id = s.id AND b.rewound = '') + 1 AS legs,
  (SELECT path FROM bottles b WHERE b.session_id = s.id) AS bottle,
  (SELECT path FROM transcripts t WHERE t.session_id = s.id AND t.agent = '') AS transcript
FROM sessions s WHERE ?1 = '' OR s.cwd = ?1 OR s.cwd LIKE ?1 || '/%' ORDER BY s.last_at DESC LIMIT ?2
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--project", metavar="DIR", default="", help="only sessions of this directory and below")
    parser.add_argument("--limit", metavar="N", type=int, default=50, help="at most N, newest first (default 50)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """List sessions, newest first."""
    home = find_home()
    rows: list[dict[str, Any]] = []
    if home.database.exists():
        db = open_reader(home.database)
        cursor = db.execute(_QUERY, (given.project.rstrip("/"), given.limit))
        names = [d[0] for d in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
        db.close()
    if given.json:
        emit(rows)
    elif rows:
        heads = ("session", "last", "prompts", "legs", "project")
        cells = [
            [str(r["session"]), when(r["last_at"]), str(r["prompts"]), str(r["legs"]), str(r["project"])] for r in rows
        ]
        print(table(heads, cells))
    else:
        say("No sessions are known yet. They come in while the client runs with the hooks installed.")
    return 0
