"""What must come out, told by what the client did: an independent account that knows nothing of the product's store.

One :class:`Account` a session. It knows the transcript's content item by item, every compaction, and what was printed
for it; ``problems`` collects what should not be.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: Finished tool uses that count as progress without a finished turn.
LITTLE = 8


@dataclass
class Item:
    """Something in the transcript: ``u`` prompt, ``a`` answer, ``t`` tool use, ``B`` boundary. ``end``: its last byte;
    for a tool use ``done`` is where its result ends, 0 while there is none."""

    kind: str
    end: int
    text: str = ""
    done: int = 0
    compaction: Compaction | None = None


@dataclass
class Compaction:
    """One compaction, or an attempt at one. ``printed`` counts handoffs and ``nothing`` says that none is due."""

    number: int
    printed: int = 0
    nothing: bool = False
    recorded: bool = False
    #: The product cannot know: what it remembered was deleted before the client wrote anything down.
    unknowable: bool = False
    at: float = 0.0
    level: int = 0


@dataclass
class Account:
    session: str
    items: list[Item] = field(default_factory=list)
    ever: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    running: Compaction | None = None
    compactions: int = 0
    handoffs: int = 0
    #: An attempt that printed a handoff and was given up, nothing said and no resume seen since.
    dangling: bool = False

    # -- the transcript ------------------------------------------------------------------------------------

    def add(self, kind: str, end: int, text: str = "") -> Item:
        item = Item(kind, end, text)
        self.items.append(item)
        if kind in "ua":
            self.ever.add(text)
        if kind in "at":
            self.dangling = False
        return item

    def cut(self, size: int) -> None:
        self.items = [item for item in self.items if item.end <= size]
        for item in self.items:
            if item.done > size:
                item.done = 0

    @property
    def said(self) -> list[str]:
        return [item.text for item in self.items if item.kind in "ua"]

    def newest(self) -> Compaction | None:
        return next((i.compaction for i in reversed(self.items) if i.kind == "B"), None)

    def said_since(self) -> bool:
        """Whether the model did anything since the newest boundary."""
        for item in reversed(self.items):
            if item.kind == "B":
                return False
            if item.kind in "at":
                return True
        return bool(self.items)

    def just_compacted(self) -> bool:
        """Whether there is a boundary and the model has done nothing since."""
        return self.newest() is not None and not self.said_since()

    def pressure(self, upto: int | None = None) -> int:
        """Legs without progress in a row before a boundary (an index) or, without one, before now."""
        legs: list[list[Item]] = [[]]
        for item in self.items[:upto]:
            if item.kind == "B":
                legs.append([])
            else:
                legs[-1].append(item)
        level = 0
        for leg in reversed(legs[1:]):
            if progress(leg):
                break
            level += 1
        return level

    # -- compactions ---------------------------------------------------------------------------------------

    def begin(self) -> Compaction:
        self.compactions += 1
        self.running = Compaction(self.compactions)
        return self.running

    def end(self, end: int, at: float) -> Compaction:
        """The boundary is written."""
        compaction = self.running or self.begin()
        compaction.at, compaction.level = at, self.pressure()
        compaction.nothing = compaction.nothing or compaction.level >= 2
        self.items.append(Item("B", end, compaction=compaction))
        self.running = None
        return compaction

    def give_up(self) -> None:
        if self.running is not None and (self.running.printed or self.running.nothing):
            self.dangling = True
        self.running = None

    def resumed(self) -> None:
        """A client starts anew from the transcript: what the old one was handed and did not record is gone with it."""
        newest = self.newest()
        if newest is not None and newest.printed and not newest.recorded and not self.said_since():
            newest.printed = 0
        self.dangling = False

    # -- what is printed -----------------------------------------------------------------------------------

    def printed(self, where: str, compaction: Compaction | None, handed: int, due: bool, plain: bool) -> None:
        """``handed`` handoffs came out of one event (or several at once); was that right?"""
        self.handoffs += handed
        if compaction is None:
            if handed:
                self.problems.append(f"{where}: a handoff without a compaction")
            return
        compaction.printed += handed
        if compaction.printed > 1 and not compaction.unknowable:
            self.problems.append(f"{where}: compaction {compaction.number} was handed over {compaction.printed} times")
        if due and compaction.printed == 0:
            self.problems.append(f"{where}: compaction {compaction.number} was not handed over")
        if compaction.nothing and handed and not compaction.unknowable:
            self.problems.append(f"{where}: compaction {compaction.number} was handed over under pressure")
        if plain:
            self.problems.append(f"{where}: compaction {compaction.number} got a reading plan under pressure")

    def holds(self, where: str, bottle: list[str]) -> None:
        """Every message of the transcript is in the bottle once and in order; nothing is in it that was never said."""
        strange = [text for text in bottle if text not in self.ever]
        if strange:
            self.problems.append(f"{where}: never said: {strange[:2]}")
        there = set(self.said)
        found = [text for text in bottle if text in there]
        if found != self.said:
            lost = [text for text in self.said if text not in found]
            self.problems.append(f"{where}: lost {lost[:3]}" if lost else f"{where}: twice or out of order")


def progress(leg: list[Item]) -> bool:
    """Whether a leg finished a turn or did a fair amount of work."""
    if sum(item.kind == "t" and item.done > 0 for item in leg) >= LITTLE:
        return True
    spoken = [n for n, item in enumerate(leg) if item.kind == "a"]
    if not spoken:
        return False
    last_use = max((n for n, item in enumerate(leg) if item.kind == "t"), default=-1)
    return spoken[-1] > last_use or any(item.kind == "u" for item in leg[spoken[0] :])
