"""``endless forget``: remove sessions, or single texts, for good."""

from __future__ import annotations

import argparse
from contextlib import closing
from datetime import datetime, timedelta

from endless_mode.cli.naming import too_short, whole_id
from endless_mode.cli.output import emit, say, table, when, write_text
from endless_mode.cli.target import config_dir
from endless_mode.cli.words import directory
from endless_mode.clients.claude_code import ClaudeCode
from endless_mode.deliver.ladder import best_document
from endless_mode.errors import EndlessError, WorkerError
from endless_mode.forgetting import Doomed, Forgot, Selection, forget, plan
from endless_mode.home import Home, find_home
from endless_mode.store import Store, open_reader
from endless_mode.worker.client import WorkerClient, ensure_worker
from endless_mode.worker.messages import ForgetRequest

#: Seconds that forgetting may take in the worker.
PATIENCE = 600.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("session", metavar="SESSION", nargs="?", default="", help="this session")
    parser.add_argument(
        "--project", metavar="DIR", type=directory, default="", help="sessions of this directory and below"
    )
    parser.add_argument(
        "--since", metavar="DATE", default="", help="sessions active on or after DATE (2026-01-31 or 2026-01-31T10:00)"
    )
    parser.add_argument("--until", metavar="DATE", default="", help="sessions active on or before DATE")
    parser.add_argument(
        "--text", metavar="TEXT", default="", help="only the messages and tool uses that hold TEXT, as it is spelt"
    )
    parser.add_argument("--yes", action="store_true", help="do it; without this you are only shown what would go")
    parser.add_argument("--now", action="store_true", help="also copy the database without its free pages at once")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """Show what would go, or let it go; 1 when there is nothing."""
    home = find_home()
    if not home.database.exists():
        raise EndlessError("no_store", "There is no database yet: nothing is kept.", "")
    chosen = Selection(
        whole_id(home, given.session, config_dir()),
        given.project,
        _moment(given.since),
        _moment(given.until, end=True),
        given.text,
    )
    found = _look(home, chosen)
    nothing = not found.sessions and not found.files
    if given.session and nothing and chosen == Selection(session=chosen.session):
        raise EndlessError(
            "no_such_session",
            f"No session {chosen.session[:140]!r} is known, or it was forgotten before.",
            f"See `endless sessions`. {too_short(chosen.session)}".strip(),
        )
    if given.yes and not nothing:
        found = _carry_out(home, chosen, now=given.now)
    if given.json:
        emit({"done": given.yes and not nothing, "sessions": found.sessions, "files": found.files})
    else:
        tell(found, done=given.yes)
    return int(nothing)


def _look(home: Home, chosen: Selection) -> Forgot:
    """What would go. A session nobody keeps anything of is none."""
    with closing(open_reader(home.database)) as db:
        found = plan(db, home, chosen)
    found.sessions = [one for one in found.sessions if one.stored or found.files or _elsewhere(home, one.session)]
    return found


def _elsewhere(home: Home, session: str) -> bool:
    """Whether the client or claude-mem keeps anything of a session that is not stored here."""
    if ClaudeCode().find_transcript(session, config_dir()) is not None:
        return True
    return best_document(home, None, session, config_dir=config_dir()).document is not None


def _carry_out(home: Home, chosen: Selection, *, now: bool) -> Forgot:
    """Through the worker, which alone writes while it runs; without one by ourselves, and then at once."""
    try:
        ensure_worker(home)
        return WorkerClient(home, PATIENCE).forget(ForgetRequest(chosen, dry_run=False, now=now))
    except WorkerError as error:
        if error.code != "no_worker":
            raise
    with Store.open(home.database, patience=5.0) as store:
        return forget(store, home, chosen, now=True)


def tell(found: Forgot, *, done: bool) -> None:
    """Print what went, or would."""
    if not found.sessions and not found.files:
        say("Nothing fits, so nothing was changed.")
        return
    rows = [
        [one.session, when(one.at), _share(one), str(one.messages), str(one.events), one.project]
        for one in found.sessions
    ]
    heads = ("session", "last", "what goes", "messages", "tool uses", "project")
    write_text("\n".join([table(heads, rows), *found.files]) + "\n")
    if done:
        say("Forgotten. The client's own transcripts are as they were; what is forgotten is not read from them again.")
    else:
        say("This is what would go. Nothing has been changed; say --yes to do it.")


def _share(one: Doomed) -> str:
    if not one.stored:
        return "not stored here; no bottle of it will be made"
    return "everything" if one.whole else "what holds the text"


def _moment(given: str, *, end: bool = False) -> int | None:
    """A date or time of this machine's clock in milliseconds; a bare date as an end means that whole day.

    Raises:
        EndlessError: it is neither.
    """
    if not given:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError as error:
        raise EndlessError("bad_date", f"{given!r} is no date.", "Write 2026-01-31 or 2026-01-31T10:00.") from error
    if end and len(given) == len("2026-01-31"):
        moment += timedelta(days=1, milliseconds=-1)
    return int(moment.timestamp() * 1000)
