"""Single tokens in rows by kind, so that a reader finds a path among paths and an id among ids."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

#: Characters of a row: a handoff that must be shorter drops whole rows.
ROW = 400
NEXT_NAME = ", "
_ID = re.compile(r"(?=.*\d)[0-9a-f-]{7,}|[\d.,:~+-]+|v\d+(?:\.\d+)+|[A-Z]{2,}-\d+")


def rows(texts: Iterable[str]) -> list[str]:
    """Rows of paths, names and ids, each kind in the order given; a text is one token or several."""
    kinds: dict[str, list[str]] = {"Paths": [], "Names": [], "Ids": []}
    for text in texts:
        for token in text.split(NEXT_NAME):
            kinds[_kind(token)].append(token)
    return [row for kind, members in kinds.items() for row in _broken(kind, members)]


@lru_cache(maxsize=8_192)
def _kind(token: str) -> str:
    if "/" in token:
        return "Paths"
    return "Ids" if _ID.fullmatch(token) else "Names"


def _broken(kind: str, members: list[str]) -> list[str]:
    found: list[str] = []
    for member in members:
        if found and len(found[-1]) + len(member) <= ROW:
            found[-1] += NEXT_NAME + member
        else:
            found.append(f"{kind}: {member}")
    return found
