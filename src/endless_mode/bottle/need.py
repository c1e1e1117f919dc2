"""What is most likely needed next, and packing it into a budget.

Measured on real compactions and on chained sessions: of the specific tokens in a session, those that stood in the
arguments of tool calls come back most often (a quarter of the newest, 8 % after fifty tool uses, 2 % after two hundred),
then those the assistant wrote itself (16 % of the newest), then those in code it wrote (4 %), then those that only a
subagent's report, a search or a read brought up (10 %, and under 1 %). So a token weighs by the best place it
stood in and by how long ago that was.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
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

    def add(self, tokens: Iterable[str], place: float, age: int) -> None:
        """Take in tokens that stood in such a place so long ago."""
        weight = place / (1.0 + age / _FADES) ** _STEEP
        of = self.of
        for token in tokens:
            if weight > of.get(token, 0.0):
                of[token] = weight


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
    worth: list[tuple[str, float]] | None = None

    def names(self) -> tuple[str, ...]:
        """Its specific tokens."""
        if self.tokens is None:
            self.tokens = specifics(self.text)
        return self.tokens


#: A candidate with what it was worth per character when it was last looked at (negative), and its turn.
_Rated = tuple[float, int, Candidate]


class Packer:
    """Takes the candidates worth most per character, budget after budget.

    A token counts once: what is ``covered`` (or a candidate taken before has) adds nothing. So the worth of a candidate
    only falls, and the best is found by looking again at the first alone, until it stays the first.

    ``freed`` makes a candidate stand by itself when the one it needs went into an earlier budget.
    """

    def __init__(self, weights: Weights, covered: Iterable[str], freed: Callable[[Candidate], Candidate]) -> None:
        self._have = set(covered)
        self._worth_of = weights.of
        self._freed = freed
        self._heap: list[_Rated] = []
        self._waiting: dict[str, list[Candidate]] = {}
        self._earlier: set[str] = set()
        self._turn = count()

    def offer(self, candidates: Iterable[Candidate]) -> None:
        """Add candidates; one that needs another waits until that is taken."""
        heap, turn, rate = self._heap, self._turn, self._rate
        for candidate in candidates:
            if candidate.needs:
                self._waiting.setdefault(candidate.needs, []).append(candidate)
            elif (worth := rate(candidate)) > 0:
                heap.append((-worth, next(turn), candidate))
        heapq.heapify(heap)

    def take(self, budget: int, section: str = "") -> list[Candidate]:
        """The best candidates (of one section, if named) until ``budget`` characters are spent, in the order taken."""
        if section:
            rest = [item for item in self._heap if item[2].section != section]
            self._heap = [item for item in self._heap if item[2].section == section]
            heapq.heapify(self._heap)
        else:
            rest = []
        taken: list[Candidate] = []
        while self._heap and budget > 3:
            stale, turn, candidate = heapq.heappop(self._heap)
            if candidate.needs in self._earlier:
                self._push(self._freed(candidate))
                continue
            cost = len(candidate.text) + 3
            if cost > budget:
                rest.append((stale, turn, candidate))
                continue
            worth = self._rate(candidate)
            if worth <= 0:
                continue
            if worth < -stale - 1e-12:
                heapq.heappush(self._heap, (-worth, turn, candidate))
                continue
            budget -= cost
            self._have.update(candidate.names())
            taken.append(candidate)
            for follower in self._waiting.pop(candidate.key, ()):
                self._push(follower)
        self._heap += rest
        heapq.heapify(self._heap)
        self._earlier.update(c.key for c in taken)
        return taken

    def _push(self, candidate: Candidate) -> None:
        if (worth := self._rate(candidate)) > 0:
            heapq.heappush(self._heap, (-worth, next(self._turn), candidate))

    def _rate(self, candidate: Candidate) -> float:
        told = candidate.worth
        if told is None:
            of = self._worth_of
            told = candidate.worth = [(name, of[name]) for name in candidate.names() if name in of]
        have, value = self._have, candidate.bonus
        for name, worth in told:
            if name not in have:
                value += worth
        return value / (len(candidate.text) + 3)
