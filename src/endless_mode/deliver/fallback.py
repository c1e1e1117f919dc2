"""A hook's last resort: answer one event in a process of its own, without a worker.

Does what the worker would do, over the same store; when that is held by somebody else or cannot be used, nothing is
handed over twice, so nothing is handed over.
"""

from __future__ import annotations

from pathlib import Path

from endless_mode.deliver.desk import Desk
from endless_mode.home import find_home
from endless_mode.settings import load
from endless_mode.store.recovery import open_or_recover
from endless_mode.worker.log import Log
from endless_mode.worker.messages import HookInput


def answer(event: str, payload: HookInput) -> bytes:
    """The bytes the hook prints for a SessionStart of source ``compact`` or ``resume``."""
    home = find_home()
    settings = load(home)
    if not settings.enabled or payload.agent_id is not None or event != "SessionStart":
        return b""
    home.create()
    log = Log(home.log, settings.log_level)
    store, _ = open_or_recover(home.database, home.run / "suspect")
    path = Path(payload.transcript_path) if payload.transcript_path else None
    with store:
        desk = Desk(home, settings, store, lambda name, session, error: log.write(name, level="error", session=session, error=error))
        if payload.source == "compact":
            text = desk.after_compaction(payload.session_id, path, payload.cwd)
        elif payload.source == "resume":
            text = desk.at_resume(payload.session_id, path, payload.cwd)
        else:
            text = ""
    return text.encode("utf-8", "replace")
