"""Cutting texts between words: half a word would read as a name that nobody gave."""

from __future__ import annotations

#: A word longer than this is cut after all.
_LONGEST = 200


def last_space(text: str, end: int) -> int:
    """Where to cut at or before ``end``, so that no word loses its end."""
    if end >= len(text) or text[end].isspace():
        return end
    found = max(text.rfind(" ", max(0, end - _LONGEST), end), text.rfind("\n", max(0, end - _LONGEST), end))
    return found if found > 0 else end


def first_space(text: str, start: int) -> int:
    """Where to go on at or after ``start``, so that no word loses its beginning."""
    if start <= 0 or text[start - 1].isspace():
        return start
    found = [at for mark in (" ", "\n") if (at := text.find(mark, start, start + _LONGEST)) >= 0]
    return min(found) + 1 if found else start
