"""Times as a bottle shows them, in UTC. What is given is milliseconds since the epoch."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

_DAY = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()
_TOO_LATE = (date.max.toordinal() + 1 - _EPOCH) * _DAY


class Times:
    """Clock times in document order: the date stands in front where it differs from the one before."""

    def __init__(self, day: int) -> None:
        self.day = day

    def minute(self, at: int | None) -> str:
        """``HH:MM``."""
        return self._short(at, _clock(at)[:5])

    def second(self, at: int | None) -> str:
        """``HH:MM:SS``."""
        return self._short(at, _clock(at))

    def _short(self, at: int | None, clock: str) -> str:
        if at is None or not clock:
            return "—"
        day = at // _DAY
        if day == self.day:
            return clock
        self.day = day
        return f"{_date(day)} {clock}"


def _clock(at: int | None) -> str:
    """``HH:MM:SS``, empty for times nobody can have meant (before 1970, after 9999)."""
    if at is None or not 0 <= at < _TOO_LATE:
        return ""
    seconds = at % _DAY // 1000
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


@lru_cache(maxsize=256)
def _date(day: int) -> str:
    return date.fromordinal(_EPOCH + day).isoformat()


def full_minute(at: int | None) -> str:
    """Date and minute; a dash when there is none."""
    clock = _clock(at)
    return f"{_date(at // _DAY)} {clock[:5]}" if at is not None and clock else "—"


def full_second(at: int | None) -> str:
    """Date and second; a dash when there is none."""
    clock = _clock(at)
    return f"{_date(at // _DAY)} {clock} UTC" if at is not None and clock else "—"
