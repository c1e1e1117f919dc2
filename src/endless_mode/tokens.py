"""How many tokens a text costs, estimated without a vocabulary.

No public vocabulary of the current models works offline, so characters are weighed by class. The weights are
fitted against known vocabularies; single texts can be off by a quarter, so show the number with a ``≈``.
"""

from __future__ import annotations

from math import ceil

_LETTERS = bytes(range(0x41, 0x5B)) + bytes(range(0x61, 0x7B))
_DIGITS = b"0123456789"
_SPACE = b" \t\n\r\x0b\x0c"
_PUNCTUATION = bytes(b for b in range(0x80) if b not in _LETTERS + _DIGITS + _SPACE)

#: UTF-8 lead bytes tell the script well enough, and bytes are counted at memory speed.
_LATIN = bytes(range(0xC2, 0xCA))  # U+0080 to U+024F: accented letters
_CYRILLIC = bytes(range(0xD0, 0xD4))
_CJK = bytes(range(0xE3, 0xEA))  # kana, ideographs and their punctuation
_HANGUL = bytes(range(0xEA, 0xEE))
_TRAIL = bytes(range(0x80, 0xC0))

#: Tokens per character.
_WEIGHTS = (
    (_LETTERS, 0.20),
    (_DIGITS, 0.86),
    (_PUNCTUATION, 0.93),
    (_LATIN, 1.0),
    (_CYRILLIC, 0.64),
    (_CJK, 0.71),
    (_HANGUL, 1.25),
)
_OTHER = 2.8
#: Tokens per run of white space, and per further character of the run (long runs are no single token).
_SPACE_RUN = 0.50
_SPACE_MORE = 0.03

_SPACE_OR_NOT = bytes(0x20 if b in _SPACE else 0x78 for b in range(0x100))


def weigh(data: bytes) -> float:
    """Estimated tokens of UTF-8 ``data``, not rounded; parts together weigh no less than the whole."""
    total = 0.0
    rest = data.translate(None, _SPACE)
    spaces = len(data) - len(rest)
    if spaces:
        marked = data.translate(_SPACE_OR_NOT)
        runs = marked.count(b" x") + marked.endswith(b" ")
        total += runs * _SPACE_RUN + (spaces - runs) * _SPACE_MORE
    if not rest.isascii():
        rest = rest.translate(None, _TRAIL)
    for members, weight in _WEIGHTS:
        if not rest:
            return total
        less = rest.translate(None, members)
        total += (len(rest) - len(less)) * weight
        rest = less
    return total + len(rest) * _OTHER


def estimate_tokens(text: str) -> int:
    """Estimated tokens of ``text``, rounded up; 0 for the empty text."""
    return ceil(weigh(text.encode("utf-8", "surrogatepass")))
