"""Values of any type from somebody else's columns as the value they stand for; what stands for none is empty."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

from endless_mode.privacy import clean

#: Characters of one stored text that are looked at; claude-mem's own writers stay far below.
LONGEST = 200_000
#: What claude-mem caps a stored prompt at, in UTF-16 units: 3,999 and an ellipsis.
PROMPT_UNITS = 4_000
_YEAR_9999 = 253_402_300_800_000


def raw(value: Any) -> str:
    """A text as stored; numbers as written, anything else empty."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value[:LONGEST] if isinstance(value, str) else ""


def text(value: Any) -> str:
    """A text fit to show, without white space around it."""
    return clean(raw(value)).strip()


def number(value: Any) -> int | None:
    """A whole number, also one that was written as text."""
    if isinstance(value, bytes | str):
        try:
            value = float(raw(value))
        except ValueError:
            return None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    return value if isinstance(value, int) else None


def time(epoch: Any, written: Any = None) -> int | None:
    """Milliseconds since the epoch, from the number or else from the ISO text."""
    at = number(epoch)
    if at is not None and 0 < at < _YEAR_9999:
        return at
    try:
        moment = datetime.fromisoformat(raw(written).strip().replace("Z", "+00:00"))
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts from a JSON array; a text that is no JSON is a list by lines, as old rows have it."""
    written = raw(value).strip()
    if not written:
        return ()
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        found = [line.strip().removeprefix("- ") for line in written.split("\n")]
    if isinstance(found, str):
        found = [found]
    if not isinstance(found, list):
        return ()
    return tuple(shown for part in found if (shown := text(part)))


def is_cut(stored: str) -> bool:
    """Whether a stored prompt has the length and the end of one that was cut."""
    return stored.endswith("…") and len(stored.encode("utf-16-le", "surrogatepass")) == 2 * PROMPT_UNITS


def platform(value: Any) -> str:
    """A platform's name in the form claude-mem compares: ``claude`` when there is none."""
    name = raw(value).strip().lower().replace(" ", "-")
    return next((known for known in ("codex", "cursor", "claude") if known in name), name) or "claude"
