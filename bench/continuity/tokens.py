"""Token counts without a vocabulary: an estimate by class of character."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache, lru_cache

_SPACES = re.compile(r"\s+")
_ASCII_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


@cache
def _weight(char: str) -> float:
    code = ord(char)
    if char.isspace():
        return 0.0
    if char in _ASCII_LETTERS:
        return 0.20
    if char.isdigit() and code < 128:
        return 0.86
    if code < 128:
        return 0.93
    if 0x0400 <= code <= 0x052F:
        return 0.64
    if 0xAC00 <= code <= 0xD7AF or 0x1100 <= code <= 0x11FF:
        return 1.25
    if 0x3040 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF:
        return 0.71
    return 2.8


@lru_cache(maxsize=4096)
def estimate(text: str) -> int:
    """Tokens of `text`, rounded up; weights per character class, half a token per run of white space."""
    total = sum(_weight(char) * n for char, n in Counter(text).items())
    return math.ceil(total + 0.5 * sum(1 for _ in _SPACES.finditer(text)))
