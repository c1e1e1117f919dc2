"""Specific tokens: strings that cannot be guessed and must have been seen.

kinds: `url`; `path` (with a slash: rooted with two parts, or three parts, or two of which one has a dot,
digit, `_` or `-`); `dotted` (file names, qualified names); `snake` (any case); `camel` (a small letter
before a capital); `mixed` (letters with digits); `kebab` (with a digit); `hash` (7–64 hex digits, digit and
letter); `number` (three or more digits, no multiple of ten below a thousand); `version`; `errno` (ENOENT,
E2BIG). Six characters or more, except numbers, versions and errno. Plain words, plain hyphenations, product
names and /dev/null are no tokens.
"""

from __future__ import annotations

import errno
import re
from functools import lru_cache

_CHUNK = re.compile(r"https?://[^\s\"'<>()\[\]{}`\\|]+|[A-Za-z0-9_~./@+-]*[A-Za-z0-9_]")
_NUMBER = re.compile(r"\d{3,}")
_VERSION = re.compile(r"v?\d+(\.\d+)+(-[A-Za-z0-9.]+)?")
_HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}")
_DOTTED = re.compile(r"\.?[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)+|\.[A-Za-z_][\w-]{3,}")
_SNAKE = re.compile(r"_*[A-Za-z0-9]+(_+[A-Za-z0-9]+)+_*")
_CAMEL = re.compile(r"[A-Za-z]*[a-z][A-Z][A-Za-z0-9]*|[a-z]+[0-9]*[A-Z][A-Za-z0-9]*")
_MIXED = re.compile(r"(?=\d*[A-Za-z])(?=[A-Za-z]*\d)[A-Za-z0-9]{4,}")
_KEBAB = re.compile(r"(?=[^\d]*\d)[A-Za-z0-9_]+(-[A-Za-z0-9_]+)+")
_ERRNO = re.compile("|".join(sorted(errno.errorcode.values(), key=len, reverse=True)))
_FORMS = (
    ("version", _VERSION),
    ("number", _NUMBER),
    ("hash", _HASH),
    ("snake", _SNAKE),
    ("camel", _CAMEL),
    ("kebab", _KEBAB),
    ("mixed", _MIXED),
    ("errno", _ERRNO),
    ("dotted", _DOTTED),
)
_COMMON = frozenset({"GitHub", "GitLab", "JavaScript", "TypeScript", "OAuth2", "PostgreSQL", "GraphQL", "WebSocket"})
MIN_LENGTH = 6
_PLAIN_PART = re.compile(r"[A-Za-z]+")


@lru_cache(maxsize=400_000)
def _classify(chunk: str) -> tuple[tuple[str, str], ...]:
    if chunk.startswith(("http://", "https://")):
        return ((chunk.rstrip(".,;:!?*_"), "url"),)
    chunk = chunk.lstrip("+-@").rstrip(".+-@/")
    if "/" in chunk:
        return _path(chunk)
    if len(chunk) < 3 or chunk in _COMMON:
        return ()
    for kind, form in _FORMS:
        if form.fullmatch(chunk):
            return ((chunk, kind),) if _specific(chunk, kind) else ()
    return tuple(t for part in re.split(r"[.+@~-]+", chunk) if part and part != chunk for t in _classify(part))


def _specific(chunk: str, kind: str) -> bool:
    if kind == "number":
        return not (len(chunk) == 3 and chunk.endswith("0"))
    if kind == "version":
        return sum(c.isdigit() for c in chunk) >= 3
    return len(chunk) >= MIN_LENGTH or kind == "errno"


def _path(chunk: str) -> tuple[tuple[str, str], ...]:
    while chunk.startswith("./"):
        chunk = chunk[2:]
    parts = [p for p in chunk.split("/") if p not in ("", ".", "..")]
    rooted = chunk.startswith(("/", "~/", "../"))
    structured = any(not _PLAIN_PART.fullmatch(p) for p in parts)
    if len(chunk) < MIN_LENGTH or chunk == "/dev/null":
        return ()
    if (rooted and len(parts) >= 2) or (len(parts) >= 2 and structured) or len(parts) >= 3:
        return ((chunk, "path"),)
    return tuple(t for p in parts for t in _classify(p))


@lru_cache(maxsize=60_000)
def specifics(text: str) -> dict[str, str]:
    """Specific tokens of `text` in order of appearance, each with its kind."""
    found: dict[str, str] = {}
    for match in _CHUNK.finditer(text):
        for token, kind in _classify(match.group()):
            found.setdefault(token, kind)
    return found


@lru_cache(maxsize=60_000)
def mentions(text: str) -> frozenset[str]:
    """The specific tokens of `text` and the tails of its paths: `a/b/c.py` mentions `b/c.py` and `c.py`."""
    found: set[str] = set()
    for token, kind in specifics(text).items():
        found.add(token)
        if kind == "path":
            parts = token.strip("/").split("/")
            found.update("/".join(parts[i:]) for i in range(len(parts)))
    return frozenset(found)


def stands(text: str, token: str) -> bool:
    """Whether `token` stands in `text` as a whole word; a hash may go on to the right (short, long form)."""
    open_right = _HASH.fullmatch(token) is not None
    at = text.find(token)
    while at >= 0:
        end = at + len(token)
        left = at == 0 or not _wordlike(text[at - 1]) or not _wordlike(token[0])
        right = open_right or end == len(text) or not _wordlike(text[end]) or not _wordlike(token[-1])
        if left and right:
            return True
        at = text.find(token, at + 1)
    return False


def _wordlike(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())


class Haystack:
    """Texts in which tokens are looked up; grows by `add`."""

    def __init__(self, *parts: str) -> None:
        self._texts: list[str] = []
        self._tokens: set[str] = set()
        for part in parts:
            self.add(part)

    def add(self, text: str) -> None:
        """Take in one more text."""
        if text:
            self._texts.append(text)
            self._tokens.update(mentions(text))

    def __contains__(self, token: object) -> bool:
        if token in self._tokens:
            return True
        return isinstance(token, str) and any(stands(text, token) for text in self._texts)
