"""claude-mem's observations and summaries in the bottle of a session whose conversation we have ourselves.

The transcript is the authority on order. claude-mem's prompt numbers and times are both late at best (an observation
bears the number of the prompt that was newest when it was written down, and often the time of that moment), so an
observation stands at its time, but never after the turn of its number. Turns are found by what the prompts say, not by
counting.

Three rules keep it small and honest:

* An observation is left out when a line of ours in the same turn says the same: when it holds every word of its title.
* Together they may add a tenth to the bottle (:data:`SHARE`); what is newest goes in first, lines before summaries.
* claude-mem observes the work of private prompts too. From a private turn of ours to the end of the turn after it, in
  which late answers come in, nothing of claude-mem's is shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice

import msgspec
from msgspec import Struct

from endless_mode.bottle.entries import (
    BoundaryMark,
    Document,
    Entry,
    GeneratedSummary,
    Happened,
    Line,
    Mark,
    Speech,
)
from endless_mode.claude_mem.session import MemObservation, MemSession, MemSummary
from endless_mode.claude_mem.wording import line, summary

#: What may be added: this share of the bottle's characters, or so many.
SHARE, LEAST = 0.10, 4_000

_WORD = re.compile(r"[^\W_]{2,}")
_FILLERS = frozenset(
    "a an and are as at by for from in into is it its no not of on or that the this to was were with".split()
)
_COMPARED = 2_000
#: A prompt is stored this close to its line in the transcript, in milliseconds.
_NEAR = 15 * 60_000


def enrich(document: Document, session: MemSession) -> Document:
    """The document with what claude-mem has of the session; the same object when that is nothing."""
    layout = _Layout(document.entries, session)
    room = max(LEAST, int(SHARE * sum(map(_chars, document.entries))))
    added, left_out = _chosen(layout, session, room)
    if not added and not left_out:
        return document
    notes = list(document.header.notes)
    if left_out:
        notes.append(f"{left_out} older observations and summaries of claude-mem are left out for size")
    header = msgspec.structs.replace(document.header, notes=notes)
    return msgspec.structs.replace(document, header=header, entries=_merged(document.entries, added))


class _Added(Struct, frozen=True):
    """Something to stand behind entry ``after`` (-1: before all)."""

    after: int
    what: Line | GeneratedSummary


def _chosen(layout: _Layout, session: MemSession, room: int) -> tuple[list[_Added], int]:
    """What fits, in order of its place; and how much did not fit."""
    offered: list[_Added] = []
    seen: set[tuple[int, str]] = set()
    for item in sorted(session.observations, key=_when):
        place = layout.place(item)
        shown = line(item)
        if place is None or (place, shown.text) in seen or layout.says_already(place, item.title):
            continue
        seen.add((place, shown.text))
        offered.append(_Added(place, shown))
    lines = len(offered)
    for told in sorted(session.summaries, key=_when):
        place, block = layout.place(told), summary(told)
        if place is not None and block is not None:
            offered.append(_Added(place, block))
    chosen: list[int] = []
    for n in (*reversed(range(lines)), *reversed(range(lines, len(offered)))):
        room -= len(offered[n].what.text) + 12
        if room < 0:
            break
        chosen.append(n)
    return [offered[n] for n in sorted(chosen, key=lambda n: (offered[n].after, n))], len(offered) - len(chosen)


def _when(item: MemObservation | MemSummary) -> tuple[int, int]:
    return item.at or 0, item.id


def _merged(entries: list[Entry], added: list[_Added]) -> list[Entry]:
    """Lines join the activity they stand behind."""
    merged: list[Entry] = []
    waiting = iter([*added, None])
    next_one = next(waiting)

    def put(place: int) -> None:
        nonlocal next_one
        while next_one is not None and next_one.after <= place:
            last = merged[-1] if merged else None
            if isinstance(next_one.what, GeneratedSummary):
                merged.append(next_one.what)
            elif isinstance(last, Happened):
                merged[-1] = Happened([*last.lines, next_one.what])
            else:
                merged.append(Happened([next_one.what]))
            next_one = next(waiting)

    put(-1)
    for place, entry in enumerate(entries):
        merged.append(entry)
        put(place)
    return merged


class _Layout:
    """Where things are in a bottle: times, turns, and what may not be spoken of."""

    def __init__(self, entries: list[Entry], session: MemSession) -> None:
        self._entries = entries
        self._times: list[int] = []
        self._timed: list[int] = []
        for n, entry in enumerate(entries):
            if isinstance(entry, Speech | Mark | BoundaryMark) and entry.at is not None:
                # Where a clock ran backwards, the highest time so far counts.
                self._times.append(max(entry.at, self._times[-1] if self._times else 0))
                self._timed.append(n)
        self._turns = [n for n, e in enumerate(entries) if isinstance(e, Speech) and e.role == "user"]
        anchors = _matched(entries, self._turns, session)
        starts = [*(start for _, start in anchors), len(entries)]
        self._ends = {number: end - 1 for (number, _), end in zip(anchors, starts[1:], strict=True)}
        self._hidden = [
            (n, next(islice((s for s in starts if s > n), 1, None), len(entries)) - 1)
            for n, entry in enumerate(entries)
            if isinstance(entry, Mark) and entry.kind == "private"
        ]
        self._words: dict[int, list[frozenset[str]]] = {}

    def place(self, item: MemObservation | MemSummary) -> int | None:
        """The entry behind which something of claude-mem's stands; ``None`` when it is not to be shown."""
        end = None if item.number is None else self._ends.get(item.number)
        by_time = None if item.at is None else self._at(item.at)
        if end is None or by_time is None:
            place = by_time if end is None else end
        else:
            place = end if isinstance(item, MemSummary) else min(by_time, end)
        if place is None or self._is_hidden(place) or (by_time is not None and self._is_hidden(by_time)):
            return None
        return place

    def _at(self, at: int) -> int:
        """The last entry of what was going on at a time, -1 before everything."""
        before = bisect_right(self._times, at) - 1
        place = self._timed[before] if before >= 0 else -1
        while 0 <= place < len(self._entries) - 1 and isinstance(self._entries[place + 1], Happened):
            place += 1
        return place

    def _is_hidden(self, place: int) -> bool:
        return any(first <= place <= last for first, last in self._hidden)

    def says_already(self, place: int, title: str) -> bool:
        """Whether one line of ours in the turn around ``place`` holds every word of a title."""
        words = _words(title)
        turn = bisect_right(self._turns, place)
        if turn not in self._words:
            bounds = [0, *self._turns, len(self._entries)]
            around = self._entries[bounds[turn] : bounds[turn + 1]]
            self._words[turn] = [_words(row.text) for e in around if isinstance(e, Happened) for row in e.lines]
        return bool(words) and any(words <= own for own in self._words[turn])


def _matched(entries: list[Entry], turns: list[int], session: MemSession) -> list[tuple[int, int]]:
    """Stored prompts that stand in the bottle, each with the place of its words."""
    spoken = [(n, e, _normal(e.text)) for n in turns if isinstance(e := entries[n], Speech)]
    found: list[tuple[int, int]] = []
    begin = 0
    for prompt in session.prompts:
        said = _normal(prompt.text)
        if prompt.number is None or not said:
            continue
        for at in range(begin, len(spoken)):
            place, speech, text = spoken[at]
            same = text.startswith(said.rstrip("…")) if prompt.truncated else text == said
            if same and _near(prompt.at, speech.at):
                found.append((prompt.number, place))
                begin = at + 1
                break
    return found


def _near(one: int | None, other: int | None) -> bool:
    return one is None or other is None or abs(one - other) <= _NEAR


def _normal(text: str) -> str:
    return " ".join(text[: 2 * _COMPARED].split())[:_COMPARED]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _FILLERS


def _chars(entry: Entry) -> int:
    match entry:
        case Speech() | GeneratedSummary():
            return len(entry.text)
        case Happened(lines):
            return sum(len(row.text) + 10 for row in lines)
        case _:
            return 40
