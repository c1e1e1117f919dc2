"""A slow observer whose every move a test makes."""

from __future__ import annotations

from typing import Any

from endless_mode.home import Home
from endless_mode.model import Observation
from endless_mode.observe import slow
from endless_mode.settings import Settings
from endless_mode.worker.live import LiveService
from tests.live.parts import Served


class Scripted:
    """``stands`` answers the looks one by one, its last value for ever. ``asked`` counts looks; ``other`` names
    whatever else was wanted of it: a seal wants nothing else."""

    name = "scripted"

    def __init__(self, *stands: bool) -> None:
        self.stands = list(stands) or [False]
        self.asked = 0
        self.other: list[str] = []

    def standing_still(self, session_id: str) -> bool:
        self.asked += 1
        return self.stands[min(self.asked, len(self.stands)) - 1]

    def __getattr__(self, name: str) -> Any:
        self.other.append(name)
        raise AttributeError(name)

    def service(self, home: Home, settings: Settings) -> LiveService:
        return LiveService(home, settings, observer=None, slow_observer=self)


def row_of(served: Served, session: str = "s-1") -> int:
    return int(served.rows("SELECT id FROM sessions WHERE content_session_id = ?", session)[0][0])


def claim(served: Served, most: int, session: str = "s-1") -> list[slow.Waiting]:
    row = row_of(served, session)
    return served.use(lambda db: slow.claim(db, row, most))  # type: ignore[no-any-return]


def confirm(served: Served, waiting: list[slow.Waiting], session: str = "s-1") -> None:
    """Store one observation for each and wake who waits, as an observer does."""
    row = row_of(served, session)
    seen = {w.id: [Observation("command", f"Seen {w.digest.command or w.digest.target}")] for w in waiting}
    served.use(lambda db: slow.confirm(db, row, Scripted.name, seen))
    served.changed(session)
