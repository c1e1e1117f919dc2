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
#: Words, names of fields and suffixes in lower case, small numbers, measures (``20ms``).
_PLAIN = re.compile(r"\.?[A-Za-z]?[a-z-]+[./]?|[A-Z-]+[./]?|\d{1,2}|\d\d0|[\d.]{1,3}|[\d.]{1,6}[A-Za-z]{1,3}")
#: Names that everybody knows.
_COMMON = frozenset("GitHub GitLab JavaScript TypeScript PostgreSQL GraphQL WebSocket macOS /dev/null".split())
#: Two plain words with a slash between them are no path.
_EITHER = re.compile(r"[A-Za-z]?[a-z-]+/[A-Za-z]?[a-z-]+|[A-Z]+/[A-Z]+")
#: Escapes as code and patterns write them: white space before a word, a character by its number, a dot that is meant.
_ESCAPED = re.compile(r"\\[ntr](?=[A-Z])|\\u[0-9a-fA-F]{4}|\\(?=\.)")
#: What was shortened: how much is left out, and words that are cut.
_SHORTENED = re.compile(r"… \d+ characters …|[\w~./@+-]*…[\w~./@+-]*")
#: Tokens that are longer are not taken apart.
_WHOLE = 300
#: How many ends, and how many beginnings, a token is taken apart into.
_PARTS = 16
#: Texts are looked at up to this length, from both ends.
_WINDOW = 4000
#: Texts longer than this are few, and few of them are remembered.
_SHORT = 1500


def specifics(text: str) -> tuple[str, ...]:
    """The specific tokens of a text in order of first appearance."""
    if len(text) > 2 * _WINDOW:
        text = text[: last_space(text, _WINDOW)] + " " + text[first_space(text, len(text) - _WINDOW) :]
    return (_remembered if len(text) <= _SHORT else _remembered_long)(text)


def _find(text: str) -> tuple[str, ...]:
    if "\\" in text:
        text = _ESCAPED.sub(lambda found: " " if len(found[0]) > 1 else "", text)
    if "…" in text:
        text = _SHORTENED.sub(" ", text)
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
        chunk = _edgeless(chunk)
        if _PLAIN.fullmatch(chunk) or _EITHER.fullmatch(chunk) or (len(chunk) < 5 and not chunk.isdigit()):
            return ""
        if chunk in _COMMON or "..." in chunk:
            return ""
        if _FIGURES.fullmatch(chunk) and not _TELLING_FIGURES.fullmatch(chunk):
            return ""
    return chunk


_remembered = lru_cache(maxsize=4096)(_find)
_remembered_long = lru_cache(maxsize=256)(_find)


def _edgeless(chunk: str) -> str:
    """A chunk without what clings to it: signs, the ``./`` of a path, the slash before a single word."""
    chunk = chunk.lstrip("+-@").rstrip(".+-@/").removeprefix("./")
    if chunk[:1] == "~" and chunk[1:2] != "/":
        chunk = chunk.lstrip("~")
    return chunk[1:] if chunk.count("/") == 1 and chunk[0] == "/" else chunk


def mentions(text: str) -> tuple[str, ...]:
    """The specific tokens of a text, and the parts of them that can be read as words of their own.

    ``a/b/c.py`` mentions ``b/c.py``, ``c.py``, ``a/b`` and ``a``; ``a.b`` mentions ``a`` and ``b``.
    """
    return _mentioned(text) if len(text) <= _SHORT else _mentions(text)


def _mentions(text: str) -> tuple[str, ...]:
    return tuple(part for token in specifics(text) for part in parts_of(token))


_mentioned = lru_cache(maxsize=4096)(_mentions)


def parts_of(token: str) -> tuple[str, ...]:
    """A token and the parts of it that :func:`mentions` speaks of."""
    return _with_parts(token) if ("/" in token or "." in token) and len(token) <= _WHOLE else (token,)


@lru_cache(maxsize=8_192)
def _with_parts(token: str) -> tuple[str, ...]:
    if "://" in token:
        return (token,)
    sign = "/" if "/" in token else "."
    parts = token.strip(sign).split(sign)
    tails = [sign.join(parts[n:]) for n in range(max(0, len(parts) - _PARTS), len(parts))]
    heads = [sign.join(parts[:n]) for n in range(1, min(len(parts), _PARTS + 1))]
    return tuple(dict.fromkeys((token, *tails, *heads)))
