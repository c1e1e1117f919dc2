"""Every unmet need on a line of its own: what it was, where it had stood, where it was used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from bench.continuity.calls import arguments, bodies
from bench.continuity.cuts import SCOPES, Cut, Memory, Use
from bench.continuity.reader import Event
from bench.continuity.specifics import Haystack, mentions

PLACES = ("message", "argument", "body", "result", "summary", "injected")
_OF_KIND = {
    "user": "message",
    "assistant": "message",
    "plan": "message",
    "result": "result",
    "summary": "summary",
    "injected": "injected",
}


def losses(cut: Cut, memory: Memory, needs: dict[str, list[Use]], arm: Haystack, name: str) -> list[dict[str, Any]]:
    """Unmet needs of one cut, in order of use. `best` is the place easiest to keep."""
    unmet: dict[str, tuple[Use, list[str]]] = {}
    for scope in SCOPES:
        for use in needs[scope]:
            if use.token not in arm:
                unmet.setdefault(use.token, (use, []))[1].append(scope)
    rows = []
    for token, (use, scopes) in unmet.items():
        stood = _stood(cut, memory, token)
        nearest = stood[0]
        places = sorted({p for p, _, _ in stood}, key=PLACES.index)
        rows.append(
            {
                "cut": cut.name,
                "arm": name,
                "token": token,
                "kind": use.kind,
                "scopes": scopes,
                "best": places[0],
                "best_tool": next(tool for place, tool, _ in stood if place == places[0]),
                "places": places,
                "nearest": nearest[0],
                "nearest_tool": nearest[1],
                "distance": nearest[2],
                "times": len(stood),
                "used_in": use.where,
                "used_by": use.tool or "text",
                "used_after": use.at,
            }
        )
    return rows


def by_kind(rows: Iterable[dict[str, Any]]) -> Counter[tuple[str, str, str]]:
    """(best place, the tool there, kind of token) → count."""
    return Counter((r["best"], r["best_tool"] or "-", r["kind"]) for r in rows)


def _stood(cut: Cut, memory: Memory, token: str) -> list[tuple[str, str, int]]:
    """(place, tool, distance in events), nearest first."""
    size = len(cut.before)
    return [
        (place, event.name, size - at)
        for at in range(size - 1, -1, -1)
        for event in (cut.before[at],)
        for place in _places(event, memory, token)
    ]


def _places(event: Event, memory: Memory, token: str) -> list[str]:
    if event.kind != "call":
        place = _OF_KIND.get(event.kind)
        return [place] if place and token in mentions(memory.relative(event.text)) else []
    found = (("argument", arguments(event)), ("body", bodies(event)))
    return [place for place, text in found if token in mentions(memory.relative(text))]
