"""A stand-in for claude-mem: its hooks, its database (a real one, emptied), its worker's process and what it prints."""

from __future__ import annotations

import gzip
import json
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from .home import Home, wait_until
from .plan import HANDOFF_HEADER

FIXTURES = Path(__file__).parents[1] / "fixtures" / "claude-mem"
TIMELINE = "# [herons] recent context, 2026-12-01 10:00am UTC"
THEIR_HANDOFF = f"{HANDOFF_HEADER}\nRead the bottle of the other program first."

HOOK = """
import json, sqlite3, sys, time
event, database, says = sys.argv[1:4]
given = json.load(sys.stdin)
now, name = int(time.time() * 1000), given["session_id"]
db = sqlite3.connect(database, timeout=10)
with db:
    if event == "UserPromptSubmit":
        db.execute("INSERT OR IGNORE INTO sdk_sessions (content_session_id, memory_session_id, project, platform_source, "
                   "started_at, started_at_epoch, status, user_prompt) VALUES (?, ?, 'herons', 'claude', '', ?, 'active', ?)",
                   (name, "m-" + name, now, given["prompt"]))
        row = db.execute("SELECT id FROM sdk_sessions WHERE content_session_id = ?", (name,)).fetchone()[0]
        db.execute("INSERT INTO user_prompts (session_db_id, content_session_id, prompt_number, prompt_text, created_at, "
                   "created_at_epoch) VALUES (?, ?, 1, ?, '', ?)", (row, name, given["prompt"], now))
    if event == "PostToolUse":
        db.execute("INSERT INTO observations (memory_session_id, project, type, title, prompt_number, created_at, "
                   "created_at_epoch) VALUES (?, 'herons', 'discovery', ?, 1, '', ?)",
                   ("m-" + name, "Noticed by the neighbour: a wading bird", now))
db.close()
if event == "SessionStart" and (given["source"] in ("compact", "resume") or "recent context" in says):
    print(json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": says}}))
"""

WORKER = """
import json, os, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA journal_mode=WAL")
db.execute("SELECT count(*) FROM observations").fetchone()
open(sys.argv[2], "w").write(json.dumps({"pid": os.getpid(), "port": 1}))
time.sleep(600)
"""


class Neighbour:
    """claude-mem in a home; ``hands_over`` makes it the branch with an Endless Mode of its own."""

    def __init__(self, home: Home, *, hands_over: bool = False) -> None:
        self.data = home.home / ".claude-mem"
        self.data.mkdir(mode=0o700, exist_ok=True)
        self.database = self.data / "claude-mem.db"
        self.database.write_bytes(gzip.decompress((FIXTURES / "fresh-v13.15.3.db.gz").read_bytes()))
        with closing(sqlite3.connect(self.database)) as db, db:
            for table in ("observations", "session_summaries", "user_prompts", "sdk_sessions"):
                db.execute(f"DELETE FROM {table}")
        script = home.root / "claude-mem" / "scripts" / "hook.py"
        script.parent.mkdir(parents=True)
        script.write_text(HOOK)

        def command(event: str, says: str) -> str:
            return shlex.join([sys.executable, str(script), event, str(self.database), says])

        both = "startup|clear|compact|resume" if hands_over else "startup|clear|compact"
        home.add_hook("SessionStart", command("SessionStart", THEIR_HANDOFF if hands_over else TIMELINE), both)
        for event in ("UserPromptSubmit", "PostToolUse"):
            home.add_hook(event, command(event, ""))

    @contextmanager
    def at_work(self) -> Iterator[int]:
        """Its worker: a process that has the database open."""
        pid_file = self.data / "worker.pid"
        process = subprocess.Popen([sys.executable, "-c", WORKER, str(self.database), str(pid_file)])
        try:
            wait_until(pid_file.exists, what="the neighbour's worker")
            yield process.pid
        finally:
            process.kill()
            process.wait()

    def rows(self, query: str) -> list[Any]:
        """What its database holds."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as db:
            return db.execute(query).fetchall()


def doctor_line(done: subprocess.CompletedProcess[str], name: str) -> dict[str, Any]:
    """One finding of `endless doctor --json`."""
    found: dict[str, Any] = next(check for check in json.loads(done.stdout)["checks"] if check["name"] == name)
    return found
