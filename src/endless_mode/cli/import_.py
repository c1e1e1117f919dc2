"""``endless import``: read past sessions into the store."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from endless_mode.cli.output import emit, progress, say
from endless_mode.cli.target import config_dir
from endless_mode.errors import EndlessError, WorkerError
from endless_mode.gone import Gone, gone
from endless_mode.home import Home, find_home
from endless_mode.importing import Imported, exclusion, import_all
from endless_mode.ingest import ingest_file
from endless_mode.settings import load
from endless_mode.store import Store, open_reader
from endless_mode.worker.client import WorkerClient, ensure_worker

#: Seconds between two looks at how far the worker is.
LOOK = 0.2
#: Bytes of transcript to one transaction when no worker has to be considered.
STRETCH = 4 << 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--config-dir", metavar="DIR", type=Path, help="the client's configuration directory")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """Import; say what was read, and what could not be and why."""
    home = find_home()
    root = (given.config_dir or config_dir()).expanduser().absolute()
    if not (root / "projects").is_dir():
        raise EndlessError(
            "no_sessions",
            f"There is no directory {root / 'projects'}.",
            "Name the client's directory with --config-dir.",
        )
    home.create()
    show = progress("importing") or _silent
    try:
        ensure_worker(home)
        done = by_worker(home, root, show)
    except WorkerError as error:
        if error.code != "no_worker":
            raise
        done = by_ourselves(home, root, show)
    found = _gone(home, root)
    done.remembered, done.nameless = len(found.sessions), found.nameless
    if given.json:
        emit(done)
    else:
        tell(done)
    return 0


def _silent(_done: int, _whole: int) -> None:
    """No progress bar."""


def by_worker(home: Home, root: Path, show: Callable[[int, int], None]) -> Imported:
    """Ask the worker, which alone writes while it runs, and watch it."""
    client = WorkerClient(home)
    status = client.begin_import(root)
    while status.running:
        show(status.state.done_bytes, status.state.total_bytes)
        time.sleep(LOOK)
        try:
            status = client.import_status()
        except WorkerError as error:
            if error.code != "no_worker":
                raise
            ensure_worker(home)  # it ended in between; another one goes on from there
            status = client.begin_import(root)
    if status.failed:
        raise EndlessError(
            "import_failed", "The import broke off.", "The worker's log says why; what was read is kept."
        )
    show(1, 1)
    return status.state


def by_ourselves(home: Home, root: Path, show: Callable[[int, int], None]) -> Imported:
    """Be the writer for as long as it takes: there is no worker, and none can be started."""
    excluded = exclusion(load(home).excluded_projects, home.data_dir)
    with Store.open(home.database, patience=5.0) as store:
        return import_all(
            partial(_read, store), store.read, root, excluded, lambda state: show(state.done_bytes, state.total_bytes)
        )


def _read(store: Store, session_id: str, path: Path, report: Callable[[int, int], None]) -> int:
    return ingest_file(store, path, session_id=session_id, progress=report, stretch=STRETCH).skipped


def _gone(home: Home, root: Path) -> Gone:
    """What is left of sessions that have no transcript to read."""
    with closing(open_reader(home.database)) as db:
        return gone(root, db, exclusion(load(home).excluded_projects, home.data_dir))


def tell(done: Imported) -> None:
    """Say what came of it."""
    say(f"{done.read} of {done.files} sessions read ({done.total_bytes / 1e6:,.0f} MB), {done.known} had nothing new")
    if done.bad_lines:
        say(f"{done.bad_lines} lines could not be read and were left out")
    if done.remembered:
        say(
            f"of {done.remembered} sessions without a transcript the client knows what was typed:"
            " `endless sessions --gone`, `endless bottle SESSION`"
        )
    if done.nameless:
        say(f"{done.nameless} typed prompts in the client's record name no session and are left out")
    for one in done.skipped:
        say(f"not read: {one.path}: {one.why}")
