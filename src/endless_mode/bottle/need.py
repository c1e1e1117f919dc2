"""What is most likely needed next, and packing it into a budget.

Measured on real compactions: of the specific tokens in a session, those that stood in the arguments of recent tool
calls come back most often (a quarter of those of the last sixteen events, one in fifteen after two hundred), then those
the assistant wrote itself, then those in code it wrote, then (one in five hundred) those only a result brought up. So
a token weighs by the best place it stood in and by how long ago that was.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from msgspec import Struct

from endless_mode.bottle.specifics import specifics

ARGUMENT, SPOKEN, WRITTEN, BROUGHT = 0.25, 0.10, 0.05, 0.012
#: Events after which a token's weight has halved.
_HALF = 25.0


class Weights:
    """Token → how likely it is needed next. Feed newest first; ``age`` counts events back from the end."""

    def __init__(self) -> None:
        self._of: dict[str, float] = {}

    def add(self, text: str, place: float, age: int) -> None:
        """Take in the tokens of a text that stood in such a place so long ago."""
        weight = place / (1.0 + age / _HALF)
        for token in specifics(text):
            if weight > self._of.get(token, 0.0):
                self._of[token] = weight

    def __getitem__(self, token: str) -> float:
        return self._of.get(token, 0.0)

    def items(self) -> Iterable[tuple[str, float]]:
        """All tokens with their weights."""
        return self._of.items()


class Candidate(Struct):
    """A piece of text that may be packed: ``needs`` another candidate's key to stand before it."""

    section: str
    key: str
    text: str
    order: int
    needs: str = ""
    #: Worth beside its tokens.
    bonus: float = 0.0


def pack(
    candidates: list[Candidate], weights: Weights, budget: int, covered: set[str] | None = None
) -> tuple[list[Candidate], set[str]]:
    """The candidates worth most per character, until ``budget`` characters are spent; in the order they were taken.

    A token counts once: what ``covered`` (or a candidate taken before) has adds nothing.
    """
    have = set(covered or ())
    tokens = [specifics(c.text) for c in candidates]
    waiting: dict[str, list[int]] = {}
    heap: list[tuple[float, int]] = []
    taken: list[Candidate] = []
    keys: set[str] = set()

    def rate(n: int) -> float:
        value = sum(weights[t] for t in tokens[n] if t not in have)
        return (value + candidates[n].bonus) / (len(candidates[n].text) + 3)

    def offer(n: int) -> None:
        if (worth := rate(n)) > 0:
            heapq.heappush(heap, (-worth, n))

    for n, candidate in enumerate(candidates):
        if candidate.needs:
            waiting.setdefault(candidate.needs, []).append(n)
        else:
            offer(n)
    while heap:
        stale, n = heapq.heappop(heap)
        worth = rate(n)
        if worth <= 0:
            continue
        if worth < -stale - 1e-12:
            heapq.heappush(heap, (-worth, n))
            continue
        cost = len(candidates[n].text) + 3
        if cost > budget:
            continue
        budget -= cost
        have.update(tokens[n])
        taken.append(candidates[n])
        keys.add(candidates[n].key)
        for follower in waiting.pop(candidates[n].key, ()):
            offer(follower)
    return taken, have
