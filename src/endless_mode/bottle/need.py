"""What is most likely needed next, and packing it into a budget.

Measured on real compactions and on chained sessions: of the specific tokens in a session, those that stood in the
arguments of tool calls come back most often (a quarter of the newest, 8 % after fifty tool uses, 2 % after two hundred),
then those the assistant wrote itself (16 % of the newest), then those in code it wrote (4 %), then those that only a
subagent's report, a search or a read brought up (10 %, and under 1 %). So a token weighs by the best place it
stood in and by how long ago that was.
"""

from __future__ import annotations

import heapq
from itertools import count

from msgspec import Struct

from endless_mode.bottle.specifics import specifics

ARGUMENT, SPOKEN, REPORTED, WRITTEN, BROUGHT, READ = 0.28, 0.16, 0.10, 0.05, 0.012, 0.008
#: Weight at age ``a`` (in tool uses): place / (1 + a / _FADES) ** _STEEP.
_FADES, _STEEP = 26.0, 1.3


class Weights:
    """``of``: token → how likely it is needed next. Feed newest first; ``age`` counts events back from the end."""

    def __init__(self) -> None:
        self.of: dict[str, float] = {}

    def add(self, text: str, place: float, age: int) -> None:
        """Take in the tokens of a text that stood in such a place so long ago."""
        weight = place / (1.0 + age / _FADES) ** _STEEP
        for token in specifics(text):
            if weight > self.of.get(token, 0.0):
                self.of[token] = weight


class Candidate(Struct):
    """A piece of text that may be packed: ``needs`` another candidate's key to stand before it.

    ``order`` places it in its section; ``bonus`` is its worth beside its tokens.
    """

    section: str
    key: str
    text: str
    order: int
    needs: str = ""
    bonus: float = 0.0
    tokens: tuple[str, ...] | None = None

    def names(self) -> tuple[str, ...]:
        """Its specific tokens."""
        if self.tokens is None:
            self.tokens = specifics(self.text)
        return self.tokens


def pack(
    candidates: list[Candidate], weights: Weights, budget: int, covered: set[str] | None = None
) -> tuple[list[Candidate], set[str]]:
    """The candidates worth most per character, until ``budget`` characters are spent; in the order they were taken.

    A token counts once: what ``covered`` (or a candidate taken before) has adds nothing.
    """
    have = set(covered or ())
    worth_of = weights.of
    waiting: dict[str, list[Candidate]] = {}
    heap: list[tuple[float, int, Candidate]] = []
    taken: list[Candidate] = []

    def rate(candidate: Candidate) -> float:
        value = candidate.bonus
        for token in candidate.names():
            if token not in have:
                value += worth_of.get(token, 0.0)
        return value / (len(candidate.text) + 3)

    def offer(candidate: Candidate) -> None:
        if (worth := rate(candidate)) > 0:
            heapq.heappush(heap, (-worth, next(turn), candidate))

    turn = count()
    for candidate in candidates:
        if candidate.needs:
            waiting.setdefault(candidate.needs, []).append(candidate)
        else:
            offer(candidate)
    while heap and budget > 3:
        stale, n, candidate = heapq.heappop(heap)
        cost = len(candidate.text) + 3
        if cost > budget:
            continue
        worth = rate(candidate)
        if worth <= 0:
            continue
        if worth < -stale - 1e-12:
            heapq.heappush(heap, (-worth, n, candidate))
            continue
        budget -= cost
        have.update(candidate.names())
        taken.append(candidate)
        for follower in waiting.pop(candidate.key, ()):
            offer(follower)
    return taken, have
