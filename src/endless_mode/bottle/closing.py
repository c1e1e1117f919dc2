"""Where things stand: the closing part, derived from the store, never generated.

Two pieces. The *state* (at most 6,000 UTF-16 units) also stands in every handoff, so that a model that never reads the
bottle has it: requests, decisions, todos, checks, and the lines most likely needed next. The *working set* goes on where
the state's packing stopped, in parts of growing size, most needed first; the reading plan reads as many as it can pay.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from msgspec import Struct

from endless_mode.bottle.fixed import fixed_lines
from endless_mode.bottle.need import NAMES, Candidate, Packer
from endless_mode.bottle.offers import candidates, freed, hunks, weigh
from endless_mode.bottle.predecessor import goes_on_from
from endless_mode.bottle.rows import rows
from endless_mode.bottle.short import fit, units
from endless_mode.bottle.specifics import mentions, parts_of
from endless_mode.bottle.standing import MESSAGES_SEEN, Standing, standing
from endless_mode.bottle.view import SessionRow

#: UTF-16 units of the state.
STATE_UNITS = 6_000
#: Characters of the parts of the working set.
PARTS = (6_000, 10_000, 18_000, 36_000)
#: The working set's share of the conversation's characters: a short session is read whole and needs little of it.
PARTS_SHARE = 0.35


def part_heading(number: int) -> str:
    """The line a part of the working set begins with."""
    return f"### Working set, part {number}\n"


class Closing(Struct, frozen=True):
    """The closing part in its pieces."""

    state: str
    working_set: list[str]

    @property
    def text(self) -> str:
        """The whole, as it stands in the bottle."""
        parts = [f"{part_heading(n)}{text}" for n, text in enumerate(self.working_set, 1)]
        return "\n\n".join([self.state, *parts])


def closing(db: sqlite3.Connection, session: SessionRow) -> Closing:
    """The closing part of a session's bottle."""
    told = standing(db, session)
    weights = weigh(told, session.cwd)
    fixed = "\n".join(part for part in (fixed_lines(told), goes_on_from(db, session)) if part)
    offered = candidates(told, session.cwd, weights)
    packer = Packer(weights, (*mentions(fixed), *parts_of(session.cwd)), freed)
    packer.offer(offered)
    taken = packer.take(max(STATE_UNITS - units(fixed) - 150, 0))
    taken += packer.take(STATE_UNITS - units(_fit(fixed, taken)) - 40)
    state = _fit(fixed, taken)
    packer.offer(hunks(told))
    parts: list[str] = []
    left = int(_spoken_chars(db, session, told) * PARTS_SHARE)
    for size in PARTS:
        if left < PARTS[0] // 2:
            break
        taken = packer.take(min(size, left))
        left -= size
        if not taken:
            break
        parts.append(_sections(taken))
    return Closing(state, parts)


def _spoken_chars(db: sqlite3.Connection, session: SessionRow, told: Standing) -> int:
    """About how long the conversation part is: its messages, reckoned from the newest, and the lines between them."""
    chars = sum(len(said.text) for said in told.messages)
    if len(told.messages) >= MESSAGES_SEEN:
        (count,) = db.execute(
            "SELECT count(*) FROM messages WHERE session_id = ? AND gen = ?", (session.id, session.gen)
        ).fetchone()
        chars = chars * max(count, len(told.messages)) // len(told.messages)
    if chars * PARTS_SHARE >= sum(PARTS):
        return chars
    (lines,) = db.execute(
        "SELECT coalesce(sum(length(title)), 0) FROM observations WHERE session_id = ?", (session.id,)
    ).fetchone()
    return chars + int(lines)


def _fit(fixed: str, taken: list[Candidate]) -> str:
    """Fixed lines and packed sections, never past the limit."""
    kept = list(taken)
    while True:
        text = "\n".join(part for part in (fixed, _sections(kept)) if part)
        if units(text) <= STATE_UNITS or not kept:
            return fit(text, STATE_UNITS)
        kept.pop()


_ORDER = ("Files", "Commands", "Searches", "Other tools", NAMES, "Code")


def _sections(taken: Iterable[Candidate]) -> str:
    by_section: dict[str, list[Candidate]] = {}
    for candidate in taken:
        by_section.setdefault(candidate.section, []).append(candidate)
    parts: list[str] = []
    for section in _ORDER:
        members = sorted(by_section.get(section, ()), key=lambda c: c.order)
        if not members:
            continue
        if section == NAMES:
            parts += rows(c.text for c in members)
        else:
            parts.append("\n".join([f"{section}, newest first:", *_joined(members)]))
    return "\n".join(parts)


def _joined(members: list[Candidate]) -> list[str]:
    """Lines of a section; what hangs on another candidate goes behind it on its line."""
    lines: dict[str, str] = {}
    root: dict[str, str] = {}
    for c in members:
        home = root.get(c.needs, "")
        if home:
            lines[home] += (": " if c.needs == home else ", ") + c.text
            root[c.key] = home
        else:
            lines[c.key] = f"- {c.text}"
            root[c.key] = c.key
    return list(lines.values())
