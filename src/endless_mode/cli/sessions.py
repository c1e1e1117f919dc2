"""``endless sessions``: the sessions in the store, and those that only the client still knows of."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import Any

from endless_mode.bottle.predecessor import BEGUN
from endless_mode.cli.output import emit, say, table, when, write_text
from endless_mode.cli.target import config_dir
from endless_mode.cli.words import count, directory
from endless_mode.gone import gone
from endless_mode.home import Home, find_home
from endless_mode.importing import exclusion
from endless_mode.settings import load
from endless_mode.store import open_reader

_QUERY = f"""
SELECT s.content_session_id AS session, s.cwd AS project, s.title, s.started_at, s.last_at, s.prompts,
  (SELECT count(*) FROM boundaries b WHERE b.session_id = s.id AND b.rewound = '') + 1 AS legs,
  (SELECT path FROM bottles b WHERE b.session_id = s.id) AS bottle,
  (SELECT path FROM transcripts t WHERE t.session_id = s.id AND t.agent = '') AS transcript, 'store' AS source
FROM sessions s WHERE {BEGUN} AND (?1 = '' OR s.cwd = ?1 OR s.cwd LIKE ?1 || '/%') ORDER BY s.last_at DESC LIMIT ?2
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--project", metavar="DIR", type=directory, default="", help="only sessions of this directory and below"
    )
    parser.add_argument("--limit", metavar="N", type=count, default=50, help="at most N, newest first (default 50)")
    parser.add_argument("--gone", action="store_true", help="only sessions of which nothing is left but what was typed")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """List sessions, newest first."""
    home = find_home()
    rows = _known(home, given.project, given.limit, only_gone=given.gone)
    if given.json:
        emit(rows)
    elif rows:
        heads = ("session", "last", "prompts", "legs", "project", "what is left")
        cells = [_cells(row) for row in rows]
        width = len(heads) if any(row[-1] for row in cells) else len(heads) - 1
        write_text(table(heads[:width], [row[:width] for row in cells]) + "\n")
    elif given.project and _known(home, "", 1, only_gone=given.gone):
        say(f"No session of {given.project} is known. `endless sessions` lists those of all directories.")
    elif given.gone:
        say("There is no session of which only the typed prompts are left.")
    else:
        say(
            "No sessions are known yet. `endless import` reads past ones in; with the hooks new ones come by themselves."
        )
    return 0


def _known(home: Home, project: str, limit: int, *, only_gone: bool) -> list[dict[str, Any]]:
    """Sessions of a directory, or of all, newest first."""
    project = project.rstrip("/")
    rows = [] if only_gone else _stored(home, project, limit)
    rows += _gone(home, project)
    return sorted(rows, key=lambda row: row["last_at"] or 0, reverse=True)[:limit]


def _cells(row: dict[str, Any]) -> list[str]:
    legs = "" if row["legs"] is None else str(row["legs"])
    mark = "typed prompts only" if row["source"] == "history" else ""
    return [str(row["session"]), when(row["last_at"]), str(row["prompts"]), legs, str(row["project"]), mark]


def _stored(home: Home, project: str, limit: int) -> list[dict[str, Any]]:
    if not home.database.exists():
        return []
    with closing(open_reader(home.database)) as db:
        cursor = db.execute(_QUERY, (project, limit))
        names = [d[0] for d in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def _gone(home: Home, project: str) -> list[dict[str, Any]]:
    excluded = exclusion(load(home).excluded_projects, home.data_dir)
    if home.database.exists():
        with closing(open_reader(home.database)) as db:
            found = gone(config_dir(), db, excluded)
    else:
        found = gone(config_dir(), None, excluded)
    return [
        {
            "session": one.session_id,
            "project": one.project,
            "title": one.begins,
            "started_at": one.first,
            "last_at": one.last,
            "prompts": one.prompts,
            "legs": None,
            "bottle": None,
            "transcript": None,
            "source": "history",
        }
        for one in found.sessions
        if not project or Path(one.project) == Path(project) or Path(project) in Path(one.project).parents
    ]
