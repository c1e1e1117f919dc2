"""A hook's last resort: answer one event in a process of its own, without a worker.

Does what the worker would do, over the same store; when that is held by somebody else, nothing is handed over twice,
so nothing is handed over. When no store can be opened at all, a compaction gets its handoff from a temporary one.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from endless_mode.deliver.desk import Caller
from endless_mode.deliver.eligible import is_excluded
from endless_mode.deliver.keeper import Keeper
from endless_mode.errors import EndlessError
from endless_mode.home import find_home
from endless_mode.settings import load
from endless_mode.store.store import StoreBusy
from endless_mode.worker.log import Log
from endless_mode.worker.messages import HookInput


def answer(event: str, payload: HookInput) -> bytes:
    """The bytes the hook prints for a SessionStart of source ``compact`` or ``resume``."""
    home = find_home()
    settings = load(home)
    wanted = event == "SessionStart" and payload.source in ("compact", "resume")
    if not wanted or not settings.enabled or payload.agent_id is not None or is_excluded(settings, payload.cwd):
        return b""
    log = Log(home.log, settings.log_level)

    def complain(name: str, session: str, error: BaseException) -> None:
        log.write(name, level="error", session=session, error=error)

    keeper = Keeper(home, settings, complain)
    path = Path(payload.transcript_path) if payload.transcript_path else None
    caller = Caller(payload.session_id, path, payload.cwd)
    try:
        home.create()
        keeper.open()
    except StoreBusy:
        return b""
    except (sqlite3.Error, EndlessError, OSError) as error:
        complain("no_store", payload.session_id, error)
        keeper.use_spare_only()
    try:
        text = keeper.after_compaction(caller) if payload.source == "compact" else keeper.at_resume(caller)
    finally:
        keeper.close()
    return text.encode("utf-8", "replace")
