"""``endless resume``: go on with a session in a fresh context."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from pathlib import Path

from endless_mode.cli.naming import whole_id
from endless_mode.cli.output import emit, say, write_text
from endless_mode.cli.target import config_dir
from endless_mode.errors import EndlessError
from endless_mode.home import Home, find_home
from endless_mode.install.check_client import hooks
from endless_mode.install.checks import context
from endless_mode.store import open_reader
from endless_mode.worker.client import WorkerClient, ensure_worker

#: Words behind ``--`` are the client's.
TAKES_MORE = True
#: The client's program.
CLIENT = "claude"
#: Seconds the worker has: it may have to read a large transcript first.
PATIENCE = 120.0

_LAST = """
SELECT content_session_id FROM sessions s WHERE s.cwd = ?
  AND EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id)
ORDER BY coalesce(last_at, started_at) DESC LIMIT 1
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("session", metavar="SESSION", nargs="?", default="", help="the session to go on with")
    parser.add_argument(
        "--last", action="store_true", help="the last session of this directory, also one that was cleared"
    )
    parser.add_argument(
        "--print", dest="only_print", action="store_true", help="print the command instead of running it"
    )
    parser.add_argument("--json", action="store_true", help="like --print, as one JSON document")
    parser.epilog = "Words behind -- go to the client: endless resume --last -- --model opus"


def run(given: argparse.Namespace) -> int:
    """Prepare the handoff, then become the client."""
    home = find_home()
    session = last_session(home, Path.cwd()) if given.last else whole_id(home, given.session, config_dir())
    if not session or (given.last and given.session):
        raise EndlessError(
            "no_session_named", "Which session?", "Name one (`endless sessions` lists them), or say --last."
        )
    client = shutil.which(CLIENT)
    if client is None and not (given.only_print or given.json):
        raise EndlessError("no_client", f"The client `{CLIENT}` is not on the PATH.", "Use --print to see the command.")
    found = hooks(context(home))
    if found.status == "fail":
        say(f"note: {found.message} Without them the new session gets no handoff. {found.hint}")
    ensure_worker(home)
    ready = WorkerClient(home, PATIENCE).resume(session, config_dir().absolute())
    directory = Path(ready.cwd) if ready.cwd and Path(ready.cwd).is_dir() else Path.cwd()
    command = [CLIENT, "--session-id", ready.session, *given.more]
    if given.json:
        emit(
            {
                "command": command,
                "directory": str(directory),
                "session": ready.session,
                "predecessor": ready.predecessor,
                "bottle": ready.bottle_path,
                "mode": ready.mode,
            }
        )
        return 0
    if given.only_print:
        write_text(f"cd {shlex.quote(str(directory))} && {shlex.join(command)}\n")
        return 0
    if str(directory) != ready.cwd:
        say(f"note: the session's directory {ready.cwd or '(unknown)'} is not there; going on in {directory}")
    assert client is not None
    os.chdir(directory)
    return os.execv(client, [client, *command[1:]])


def last_session(home: Home, cwd: Path) -> str:
    """The last session of a directory in which anything was said.

    Raises:
        EndlessError: there is none.
    """
    row = None
    if home.database.exists():
        db = open_reader(home.database)
        places = dict.fromkeys((os.environ.get("PWD", ""), str(cwd)))
        row = next((found for place in places if (found := db.execute(_LAST, (place,)).fetchone())), None)
        db.close()
    if row is None:
        raise EndlessError(
            "no_session",
            f"No session of {cwd} is known.",
            "`endless sessions` lists what is; `endless import` reads in older ones.",
        )
    return str(row[0])
