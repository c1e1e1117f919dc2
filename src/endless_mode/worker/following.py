"""Sessions that are live: their transcripts are looked at again and again, so that no hook on tool calls is needed."""

from __future__ import annotations

import time
from pathlib import Path

from msgspec import Struct

#: Seconds between two looks at the live transcripts, and for one that has not grown for a while.
POLL, POLL_QUIET = 1.0, 10.0
_QUIET_AFTER = 600.0


class Live(Struct):
    """A session whose transcript is being followed."""

    path: Path
    size: int = -1
    grew: float = 0.0
    looked: float = 0.0
    #: The client said that a compaction is over, and no prompt has come since.
    compacted: bool = False
    #: The turn is over: what the transcript still gets belongs into the bottle without another hook.
    resting: bool = False


class Following:
    """The live sessions by their ids."""

    def __init__(self) -> None:
        self._live: dict[str, Live] = {}

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._live

    def get(self, session_id: str) -> Live | None:
        """A session that is followed."""
        return self._live.get(session_id)

    def path(self, session_id: str) -> Path | None:
        """Its transcript."""
        live = self._live.get(session_id)
        return live.path if live else None

    def follow(self, session_id: str, path: Path) -> None:
        """Follow a session, whose client has just fired a hook."""
        live = self._live.setdefault(session_id, Live(path))
        live.path, live.grew = path, time.monotonic()

    def leave(self, session_id: str) -> None:
        """Follow it no longer."""
        self._live.pop(session_id, None)

    def since(self, horizon: float) -> list[str]:
        """Sessions that grew after a time (monotonic, seconds)."""
        return [session_id for session_id, live in self._live.items() if live.grew > horizon]

    def grown(self) -> list[str]:
        """Sessions whose transcript has grown since the last look."""
        now = time.monotonic()
        return [session_id for session_id, live in list(self._live.items()) if _has_grown(live, now)]


def _has_grown(live: Live, now: float) -> bool:
    if now - live.grew > _QUIET_AFTER and now - live.looked < POLL_QUIET:
        return False
    live.looked = now
    try:
        size = live.path.stat().st_size
    except OSError:
        return False
    if size == live.size:
        return False
    live.size, live.grew = size, now
    return True
