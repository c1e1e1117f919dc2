"""Specific tokens: strings that cannot be guessed and must have been seen (paths, names, ids, URLs, numbers)."""

from __future__ import annotations

import re
from functools import lru_cache

_CHUNK = re.compile(r"https?://[^\s\"'<>()\[\]{}`\\|]+|[A-Za-z0-9_~./@+-]*[A-Za-z0-9_]")
_STRUCTURE = re.compile(r"[_./\d]|[a-z][A-Z]")
_PLAIN = re.compile(r"[A-Za-z-]+[./]?|\d{1,2}|\d\d0|[\d.]{1,3}")
#: Texts are looked at up to this length, from both ends.
_WINDOW = 4000
#: Longest text whose tokens are remembered.
_SHORT = 1500


def specifics(text: str) -> tuple[str, ...]:
    """The specific tokens of a text in order of first appearance."""
    if len(text) > 2 * _WINDOW:
        text = text[:_WINDOW] + " " + text[-_WINDOW:]
    return _remembered(text) if len(text) <= _SHORT else _find(text)


def _find(text: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for chunk in dict.fromkeys(_CHUNK.findall(text)):
        if chunk.isalpha() and (chunk.islower() or chunk[1:].islower() or chunk.isupper()):
            continue
        if len(chunk) < 3 or not _STRUCTURE.search(chunk):
            continue
        if not chunk.startswith("http"):
            chunk = chunk.lstrip("+-@").rstrip(".+-@/")
            if _PLAIN.fullmatch(chunk) or (len(chunk) < 5 and not chunk.isdigit()):
                continue
        found[chunk] = None
    return tuple(found)


_remembered = lru_cache(maxsize=4096)(_find)
