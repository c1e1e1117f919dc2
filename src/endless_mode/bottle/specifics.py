"""Specific tokens: strings that cannot be guessed and must have been seen (paths, names, ids, URLs, numbers)."""

from __future__ import annotations

import re
from functools import lru_cache

from endless_mode.cutting import first_space, last_space

_URL = re.compile(r"http(?<![A-Za-z0-9_~./@+-]http)s?://[^\s\"'<>()\[\]{}`\\|]+")
_OTHERS_TO_SPACE = bytes(
    code if chr(code).isascii() and (chr(code).isalnum() or chr(code) in "_~./@+-") else 0x20 for code in range(256)
)
_STRUCTURE = re.compile(r"[_./\d]|[a-z][A-Z]")
#: Figures alone are specific as a whole number of three digits or more, or as a version or address of three parts.
_FIGURES = re.compile(r"[\d.,:/~@+-]+")
_TELLING_FIGURES = re.compile(r"\d{3,}|v?\d+(?:\.\d+){2,3}|\d{4}-\d\d-\d\d")
_PLAIN = re.compile(r"[A-Za-z-]+[./]?|\d{1,2}|\d\d0|[\d.]{1,3}")
#: Texts are looked at up to this length, from both ends.
_WINDOW = 4000
#: Longest text whose tokens are remembered.
_SHORT = 1500


def specifics(text: str) -> tuple[str, ...]:
    """The specific tokens of a text in order of first appearance."""
    if len(text) > 2 * _WINDOW:
        text = text[: last_space(text, _WINDOW)] + " " + text[first_space(text, len(text) - _WINDOW) :]
    return _remembered(text) if len(text) <= _SHORT else _find(text)


def _find(text: str) -> tuple[str, ...]:
    chunks: list[str] = []
    at = 0
    for url in _URL.finditer(text) if "://" in text else ():
        chunks += _split(text[at : url.start()])
        chunks.append(url[0])
        at = url.end()
    chunks += _split(text[at:])
    return tuple(dict.fromkeys(filter(None, map(_token, chunks))))


def _split(text: str) -> list[str]:
    """The runs of letters, digits and ``_~./@+-`` in a text."""
    return text.encode("ascii", "replace").translate(_OTHERS_TO_SPACE).decode("ascii").split()


@lru_cache(maxsize=16_384)
def _token(chunk: str) -> str:
    """What of a chunk is specific: the chunk without its edges, or nothing."""
    if chunk.startswith("http") and "://" in chunk:
        return chunk
    chunk = chunk.rstrip("~./@+-")
    if chunk.isalpha() and (chunk.islower() or chunk[1:].islower() or chunk.isupper()):
        return ""
    if len(chunk) < 3 or not _STRUCTURE.search(chunk):
        return ""
    if not chunk.startswith("http"):
        chunk = chunk.lstrip("+-@").rstrip(".+-@/")
        if _PLAIN.fullmatch(chunk) or (len(chunk) < 5 and not chunk.isdigit()):
            return ""
        if _FIGURES.fullmatch(chunk) and not _TELLING_FIGURES.fullmatch(chunk):
            return ""
    return chunk


_remembered = lru_cache(maxsize=4096)(_find)
