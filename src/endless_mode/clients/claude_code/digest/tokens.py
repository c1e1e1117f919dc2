"""The specific tokens of an output: paths, URLs, hashes, ids, ports, versions, identifiers.

One pattern runs over a text and passes by the words that cannot be specific (most of them: plain lower case);
each other word is judged by its shape alone, so the cost is linear and small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TypeVar

from endless_mode.clients.claude_code.digest.texts import wordset

T = TypeVar("T")

#: What separates words. ``:`` stays inside (``a.py:12``, ``host:80``), so do ``.``, ``-`` and ``/``.
#: White space is spelt out: a class with ``\s`` in it is tested member by member, one without it by one look into a table.
_SPACE = r" \t-\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_APART = _SPACE + r"\"'`<>()\[\]{}|,;\\…│├└─━→*"
_PATH = re.compile(r"(?:[A-Za-z]:)?(?=[@.+~%$/-]*+\w)[\w@.+~%$/-]++(?::\d+(?:[:-]\d+)?)?").fullmatch
_LINE = re.compile(r":(\d+)(?:[:-]\d+)?$")
_HASH = re.compile(
    r"[0-9a-f]{7,40}|[0-9a-f]{64}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
).fullmatch
_RANGE = re.compile(r"[0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40}").fullmatch
_TICKET = re.compile(r"[A-Z][A-Z0-9]{1,9}-\d{1,6}").fullmatch
_HOST = re.compile(r"(?:[\w-]+(?:\.[\w-]+)*|\[::1?\]):\d{2,5}").fullmatch
_VERSION = re.compile(r"v?\d+\.\d+(?:\.\d+)+(?:[-+.][\w.]+)?|v\d+\.\d+").fullmatch
_IDENT = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|#)[A-Za-z_$][\w$]*)*(?:\(\))?").fullmatch
_HUMP = re.compile(r"[a-z0-9][A-Z]").search
_SIGN = re.compile(r"[._0-9-]").search
_ISSUE = re.compile(r"#\d{1,6}").fullmatch
_TEXT_EXTENSIONS = wordset(
    "py pyi js jsx mjs cjs ts tsx mts vue svelte astro go rs rb ex exs heex java kt kts scala swift cs "
    "php dart c h cc cpp hpp "
    "zig sh bash ps1 md mdx rst txt sql toml ini cfg yaml yml json jsonl json5 lock css scss html htm xml "
    "svg png jpg pdf "
    "ipynb proto graphql prisma tf env log csv tsv gradle mod sum patch diff db sqlite pen zip gz tgz whl "
    "wasm map snap"
)


#: The words of a text but for numbers and words that could stand in any sentence, capitals alone or in front. It fits
#: everywhere, so a search never begins again further on; the empty word may be among what it finds.
telling_words = re.compile(
    rf"(?:(?:[0-9][0-9:%]*+|[A-Z]*+[a-z]*+)[.:!?]*+[{_APART}]++)*+(?:([^{_APART}]++)|\Z)"
).findall

#: How much is searched before it is asked whether that is enough (characters).
_AT_ONCE = 1_500
#: Words that are longer are not looked at.
_LONGEST = 240
#: How many words verdicts are remembered of.
_VERDICTS = 16_384

#: White space as code writes it, before a word.
_ESCAPED = re.compile(r"\\[ntr](?=[A-Z])")

URL, PATH, HASH, ID, VERSION, IDENT = range(6)


def kind_of(word: str) -> int | None:
    """What a word is, or nothing when it is not specific."""
    if word.isalpha():
        return IDENT if len(word) <= 80 and _HUMP(word) else None
    if "/" in word:
        return _kind_of_place(word)
    if "." in word and _unplaced(word).rpartition(".")[2].lower() in _TEXT_EXTENSIONS and _PATH(word):
        return PATH
    first = word[0]
    if first.isdigit() or first in "abcdefv":
        if "." in word:
            if _VERSION(word):
                return VERSION
            if _RANGE(word):
                return HASH
        elif not word.isdigit() and _HASH(word):
            return HASH
    if first == "#":
        return ID if _ISSUE(word) else None
    if ":" in word and _HOST(word) and not _clock(word):
        return ID
    if first.isupper() and "-" in word and _TICKET(word):
        return ID
    return IDENT if is_identifier(word) else None


def _kind_of_place(word: str) -> int | None:
    """A word with a slash: a URL, a path, or one of those names that look like either."""
    if "//" in word:
        if "://api." in word or ("//github.com/" in word and word.count("/") < 4):
            return IDENT
        if "://" in word:
            known = word.startswith(("http", "ws", "file:", "git", "ssh", "postgres", "redis"))
            return URL if known and "//avatars." not in word else None
    return PATH if _is_path(word) else None


def _unplaced(word: str) -> str:
    """A path without the line it may end in."""
    return _LINE.sub("", word) if ":" in word else word


def is_identifier(word: str) -> bool:
    """True for names that a program would give: inner underscores, humps, dots or colons."""
    if not 4 <= len(word) <= 80:
        return False
    telling = "_" in word.strip("_") or word.endswith("()") or "::" in word or _HUMP(word)
    return bool(telling) and _IDENT(word) is not None


class Verdicts(dict[str, T]):
    """What ``judge`` says of words, remembered; when there are too many of them, all are forgotten.

    A look-up of what is known is a dictionary's own; one of ``lru_cache`` costs more, as it keeps the order of use.
    """

    __slots__ = ("_judge",)

    def __init__(self, judge: Callable[[str], T]) -> None:
        self._judge = judge

    def __missing__(self, word: str) -> T:
        verdict = self._judge(word)
        if len(self) >= _VERDICTS:
            self.clear()
        if len(word) <= _LONGEST:
            self[word] = verdict
        return verdict


class Names:
    """Finds the identifiers in a source.

    Args:
        name: what a name looks like.
        inside: what a name may have in it besides letters and digits; the rest of ASCII only separates names.
        dull: characters (a class) of which a name that is no identifier may consist altogether.
        special: whether a name is an identifier.
    """

    __slots__ = ("_found", "_spaces", "_telling")

    def __init__(self, name: str, inside: str, dull: str, special: Callable[[str], bool]) -> None:
        names = re.compile(name).findall
        kept = (*inside.encode(), *range(128, 256))
        self._spaces = bytes(c if chr(c).isalnum() or c in kept else 32 for c in range(256))
        # The run goes on to the first telling character and from there back to the last space, which the engine does fast.
        self._telling = re.compile(rf"[{dull} ]* (?:([^ ]++)|\Z)").findall
        self._found = Verdicts(lambda word: tuple(filter(special, names(word)))).__getitem__

    def __call__(self, source: str, known: Iterable[str] = (), limit: int = 1 << 30) -> list[str]:
        """The first ``limit`` identifiers in order of appearance, without the known ones."""
        # Bytes are translated by a table.
        spaced = source.encode("utf-8", "surrogatepass").translate(self._spaces).decode("utf-8", "surrogatepass")
        spaced = f" {spaced} "
        found = dict.fromkeys(known)
        start, at, end = len(found), 0, 0
        while end >= 0 and len(found) < start + limit:
            end = spaced.find(" ", at + _AT_ONCE)
            words = self._telling(spaced[at:] if end < 0 else spaced[at:end])
            found.update(dict.fromkeys(chain.from_iterable(filter(None, map(self._found, words)))))
            at = end
        return list(found)[start : start + limit]


def _is_special(word: str) -> bool:
    return 6 <= len(word) <= 80 and ("." in word or "_" in word or _HUMP(word) is not None)


_qualified = Names(r"[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+", "._", "a-z0-9", _is_special)


def identifiers(source: str, known: list[str], limit: int) -> list[str]:
    """Identifiers of a source text in order of appearance, qualified ones whole."""
    # Old clients number lines with an arrow; without it nearly every source is ASCII.
    source = source.replace("→", " ")
    return _qualified(_ESCAPED.sub(" ", source) if "\\" in source else source, known, limit)


def _clock(word: str) -> bool:
    return word[0].isdigit() and word.count(":") >= 1 and "." not in word


def _is_path(word: str) -> bool:
    """``and/or`` and ``3/4`` are none; ``src/a.py``, ``/etc/x``, ``./run``, ``feature/x-1`` are."""
    if not _PATH(word) or not (word.islower() or any(map(str.isalpha, word))):
        return False
    body = _unplaced(word)
    if "//" in body:
        return False
    if body.startswith(("/", "~/", "./", "../")):
        return len(body) > 3 and (body.count("/") > 1 or "." in body[2:])
    return body.count("/") >= 2 or _SIGN(body) is not None


def trimmed(word: str) -> str:
    """A word without the punctuation around it."""
    return word.rstrip(".,:;!?").lstrip("-+@:")


def specific(value: str, known: str = "", limit: int = 12) -> tuple[list[str], list[str]]:
    """``(paths, names)`` of a text, without what stands in ``known`` already; each at most ``limit``.

    Names are ordered by how specific their kind is, then by place.
    """
    paths: dict[str, None] = {}
    ranked: dict[str, int] = {}
    most, versions = limit * 4, 0
    for word, kind in filter(None, map(_judged, telling_words(value))):
        if kind == PATH:
            if len(paths) < most and word not in known:
                paths[word] = None
        elif word not in ranked and (kind != VERSION or versions < 4) and word not in known:
            ranked[word] = kind
            versions += kind == VERSION
            if len(ranked) >= most:
                break
    return shortened(paths, limit), sorted(ranked, key=ranked.__getitem__)[:limit]


def _judge(raw: str) -> tuple[str, int] | None:
    """A word as it stands in a text: what of it is specific, and its kind."""
    if len(raw) < 3 or (raw.isalpha() and (raw.islower() or raw[1:].islower() or raw.isupper())) or len(raw) > _LONGEST:
        return None
    if "=" in raw and "://" not in raw:
        raw = raw.rpartition("=")[2]
    word = trimmed(raw)
    # Numbers alone and what is too short are the most of what is left.
    if word.isdecimal() or (len(word) < 4 and not word.startswith("#")):
        return None
    kind = kind_of(word)
    return None if kind is None else (word, kind)


_judged = Verdicts(_judge).__getitem__


def shortened(paths: Iterable[str], limit: int) -> list[str]:
    """Paths with their line numbers gathered: ``a.py:3``, ``a.py:9`` become ``a.py:3,9``."""
    return gathered([(path, "") for path in paths], limit)


def gathered(places: Iterable[tuple[str, str]], limit: int) -> list[str]:
    """:func:`shortened` for paths and lines that are apart already; a line may be empty."""
    lines: dict[str, list[str]] = {}
    for path, line in places:
        if ":" in path and (found := _LINE.search(f"{path}:{line}" if line else path)):
            path, line = found.string[: found.start()], found[1]
        numbers = lines.get(path)
        if numbers is None:
            if len(lines) == limit:
                continue
            numbers = lines[path] = []
        if line and len(numbers) < 10 and line not in numbers:
            numbers.append(line)
    return [f"{path}:{','.join(numbers)}" if numbers else path for path, numbers in lines.items()]
