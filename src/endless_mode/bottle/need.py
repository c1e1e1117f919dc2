"""What is most likely needed next, and packing it into a budget.

Measured on real compactions, chained sessions, and cuts at regular places of all sessions: of the specific tokens that
stood best in an argument of a tool, 23 % were needed when that was less than ten tool uses ago, 7 % after fifty, 1 %
after two hundred; of those the assistant said 20, 5 and 1 %; of those in code it wrote, in what a result brought up and
in files it read, 3 % and less. A token therefore weighs by the best place it stood in and by how long ago that was. Rates
chosen with one repository left out met more there too; how often a token had stood and of which kind it is did not help.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from itertools import count

from msgspec import Struct

from endless_mode.bottle.specifics import mentions

#: Weights of the places: in an argument, said by the assistant, by the user, in a subagent's report, in written code,
#: brought up by a result, in a file that was read.
ARGUMENT, SPOKEN, ASKED, REPORTED, WRITTEN, BROUGHT, READ = 0.28, 0.16, 0.08, 0.08, 0.025, 0.02, 0.007
_FADES, _STEEP = 50.0, 0.9

#: The section of single tokens.
NAMES = "Names"


def fading(age: int) -> float:
    """What is left of a weight after so many tool uses."""
    return math.pow(1.0 + age / _FADES, -_STEEP)


class Weights:
    """``of``: token → how likely it is needed next, between 0 and 1."""

    def __init__(self) -> None:
        self.of: dict[str, float] = {}

    def add(self, tokens: Iterable[str], weight: float) -> None:
        """Take in tokens that stood somewhere; the best place of each counts."""
        of = self.of
        for token in tokens:
            if weight > of.get(token, 0.0):
                of[token] = weight


class Candidate(Struct, gc=False):
    """A piece of text that may be packed: ``needs`` another candidate's key to stand before it.

    ``order`` places it in its section; ``bonus`` is its worth beside its tokens; ``cost`` is how many characters it takes;
    ``tokens`` are those it mentions, sought in the text when they are not given.
    """

    section: str
    key: str
    text: str
    order: int
    needs: str = ""
    bonus: float = 0.0
    cost: int = 0
    tokens: tuple[str, ...] | None = None
    worth: list[tuple[str, float]] | None = None

    def __post_init__(self) -> None:
        self.cost = len(self.text) + (2 if self.section == NAMES else 3)

    def names(self) -> tuple[str, ...]:
        """The tokens it mentions."""
        if self.tokens is None:
            self.tokens = mentions(self.text)
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

    def take(self, budget: int) -> list[Candidate]:
        """The best candidates until ``budget`` characters are spent, in the order taken.

        A single name goes out again when something longer comes in that has it.
        """
        heap, have, rest = self._heap, self._have, []
        taken: dict[str, Candidate] = {}
        while heap and budget > 3:
            stale, turn, candidate = heapq.heappop(heap)
            if candidate.needs in self._earlier:
                self._push(self._freed(candidate))
                continue
            cost = candidate.cost
            if cost > budget:
                rest.append((stale, turn, candidate))
                continue
            worth = self._rate(candidate)
            if worth <= 0:
                continue
            if worth < -stale - 1e-12:
                heapq.heappush(heap, (-worth, turn, candidate))
                continue
            budget -= cost
            for token in candidate.names():
                if token not in have:
                    have.add(token)
                elif (single := taken.pop(named(token), None)) is not None:
                    budget += single.cost
            taken[candidate.key] = candidate
            for follower in self._waiting.pop(candidate.key, ()):
                self._push(follower)
        self._heap += rest
        heapq.heapify(self._heap)
        self._earlier.update(taken)
        return list(taken.values())

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
        return value / candidate.cost


def named(token: str) -> str:
    """The key of a single token."""
    return f"name:{token}"
