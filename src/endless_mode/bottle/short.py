"""Texts made short, for closing parts and handoffs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from endless_mode.bottle.escape import flatten


def quote(text: str, limit: int) -> str:
    """A text in one line, its beginning."""
    return cut(" ".join(flatten(text).split()), limit)


def both_ends(text: str, limit: int) -> str:
    """A text in one line, its beginning and its end."""
    flat = " ".join(flatten(text).split())
    if len(flat) <= limit:
        return flat
    return f"{flat[: limit // 3]} […] {flat[-(limit - limit // 3) :]}"


def cut(text: str, limit: int) -> str:
    """The beginning of a text, with an ellipsis where something is left out."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def clock(at: int | None) -> str:
    """A time in milliseconds as date and minute, UTC."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M") if at is not None else "time unknown"


def units(text: str) -> int:
    """Length in UTF-16 code units, which is how the client counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def within(lines: Iterable[str], room: int) -> str:
    """The lines that :func:`fitting` keeps, as one text."""
    return "\n".join(fitting(lines, room))


def fit(text: str, room: int) -> str:
    """The text with whole lines dropped from its end until it has no more than so many UTF-16 units."""
    return text if units(text) <= room else within(text.split("\n"), room)


def fitting(lines: Iterable[str], room: int) -> list[str]:
    """As many of the first lines as fit into so many UTF-16 units, each with its line break."""
    kept: list[str] = []
    for line in lines:
        room -= units(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept
