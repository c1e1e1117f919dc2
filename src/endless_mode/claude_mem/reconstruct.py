"""A bottle from claude-mem's database and the client's record of prompts, for a session whose transcript is gone.

By prompt number: what the user said, verbatim; what claude-mem observed; its summaries, marked as generated. Prompts
that only the client's record has stand at their time, within the number before. Nothing is
made up: what the assistant said is not stored anywhere, and prompts that are missing are named, not filled in.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterable
from itertools import chain, pairwise
from typing import TypeVar

from endless_mode.bottle.closing import STATE_UNITS
from endless_mode.bottle.entries import MODE_RECONSTRUCTED, Document, Entry, Happened, Header, Line, Mark, Speech
from endless_mode.bottle.short import clock, quote, within
from endless_mode.claude_mem.session import MemObservation, MemPrompt, MemSession, MemSummary
from endless_mode.claude_mem.wording import line, line_text, summary, summary_text
from endless_mode.clients.claude_code.wording import bash_input, prompt_text, slash_command
from endless_mode.model import MessageKind

_TYPED_COMMAND = re.compile(r"/[A-Za-z][\w:.-]*(?:\s[^\n]*)?")
_FILES_SHOWN, _LINES_SHOWN = 60, 25

_Dated = TypeVar("_Dated", MemObservation, MemSummary)


def reconstructed(session: MemSession, now: int | None = None) -> Document:
    """The document of a session; ``now`` is the render stamp in milliseconds, the present by default.

    It has no message of the assistant's.
    """
    turns = _turns(session)
    body = list(chain.from_iterable(_entries(turn) for turn in turns))
    notes = [*_notes(session, turns), *session.problems]
    header = Header(
        content_session_id=session.content_session_id,
        project=session.project,
        mode=MODE_RECONSTRUCTED,
        started=session.started,
        rendered=int(time.time() * 1000) if now is None else now,
        notes=notes,
    )
    request = next((e.text for e in body if isinstance(e, Speech)), None)
    return Document(header, body, request, _closing(body, [turn for turn in turns if not turn.private]))


# Turns


class _Turn:
    """Everything of one prompt number; ``number`` 0 is what came before the first prompt."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.prompts: list[MemPrompt] = []
        self.observations: list[MemObservation] = []
        self.summaries: list[MemSummary] = []

    @property
    def private(self) -> bool:
        """Whether its prompt was private from end to end, so that what was noted of its work is too."""
        return any(prompt.private and not prompt.typed for prompt in self.prompts)


def _turns(session: MemSession) -> list[_Turn]:
    turns: dict[int, _Turn] = {}

    def turn(number: int) -> _Turn:
        return turns.setdefault(number, _Turn(number))

    number = 0
    starts: list[tuple[int, int]] = []
    for prompt in session.prompts:
        number = max(prompt.number or number, number, 0)
        turn(number).prompts.append(prompt)
        if prompt.at is not None:
            starts.append((prompt.at, number))
    # Work of an entirely private first prompt is stored without a number.
    hidden = session.opens_private
    for item in _in_time(session.observations):
        if item.number or not hidden:
            turn(_number_of(item, starts)).observations.append(item)
    for told in _in_time(session.summaries):
        if told.number or not hidden:
            turn(_number_of(told, starts)).summaries.append(told)
    return [turns[number] for number in sorted(turns)]


def _in_time(items: Iterable[_Dated]) -> list[_Dated]:
    return sorted(items, key=lambda item: (item.at or 0, item.id))


def _number_of(item: MemObservation | MemSummary, starts: list[tuple[int, int]]) -> int:
    """Its own number; without one, that of the last prompt before it."""
    if item.number is not None:
        return item.number
    at = item.at
    return 0 if at is None else max((number for start, number in starts if start <= at), default=0)


def _entries(turn: _Turn) -> Iterable[Entry]:
    for prompts, observations, summaries in _stretches(turn):
        yield from filter(None, map(_speech, prompts))
        if turn.private:
            continue
        lines = [line(observation) for observation in observations]
        if lines and turn.number and not turn.prompts:
            lines.insert(0, Line([], f"(the prompt of this work, number {turn.number}, is not stored)"))
        if lines:
            yield Happened(lines)
        yield from filter(None, map(summary, summaries))


_Stretch = tuple[list[MemPrompt], list[MemObservation], list[MemSummary]]


def _stretches(turn: _Turn) -> list[_Stretch]:
    """A turn cut at each prompt that claude-mem has not numbered: its work is told apart by time alone."""
    found: list[_Stretch] = [([], [], [])]
    starts: list[int] = []
    for prompt in turn.prompts:
        if prompt.typed and prompt.at is not None and found[-1][0]:
            starts.append(prompt.at)
            found.append(([], [], []))
        found[-1][0].append(prompt)
    for item in turn.observations:
        found[0 if item.at is None else bisect_right(starts, item.at)][1].append(item)
    for told in turn.summaries:
        found[0 if told.at is None else bisect_right(starts, told.at)][2].append(told)
    return found


def _speech(prompt: MemPrompt) -> Entry | None:
    if prompt.private:
        return Mark("private", prompt.at)
    typed = _typed(prompt)
    if typed is None:
        return None
    kind, text = typed
    return Speech("user", kind, text, prompt.at, prompt.kept if prompt.truncated else None)


def _typed(prompt: MemPrompt) -> tuple[MessageKind, str] | None:
    """A stored prompt as what a person typed; ``None`` when it is text of the client's own."""
    stored = prompt.text
    if prompt.kind is not None:
        return prompt.kind, stored
    if command := slash_command(stored):
        return "command", " ".join(part for part in command if part)
    if (shell := bash_input(stored)) is not None:
        return "shell", shell
    text = prompt_text(stored)
    if text is None:
        return None
    return ("command" if _TYPED_COMMAND.fullmatch(text) else "prompt"), text


# Notes


def _notes(session: MemSession, turns: list[_Turn]) -> list[str]:
    notes = list(session.sources)
    stored = {turn.number for turn in turns if turn.prompts}
    known = {turn.number for turn in turns} - {0}
    missing = _gaps(sorted(stored - {0}), max(known, default=0))
    if missing and session.prompts:
        notes.append(f"prompts that are not stored: {missing}")
    if not session.prompts:
        notes.append("no prompt of this session is stored")
    own = sum(not p.private and _typed(p) is None for p in session.prompts)
    if own:
        notes.append(f"{own} stored prompts are texts of the client and left out")
    return notes


def _gaps(stored: list[int], last: int) -> str:
    """The numbers from 1 to ``last`` that are not among ``stored``, as ``2, 4–6``."""
    gaps = [(low + 1, high - 1) for low, high in pairwise([0, *stored, last + 1]) if high - low > 1]
    shown = [f"{first}–{end}" if end > first else str(first) for first, end in gaps[:20]]
    return ", ".join(shown) + (", …" if len(gaps) > 20 else "")


# Where things stand


def _closing(body: list[Entry], turns: list[_Turn]) -> str:
    """Last requests, the last summary, files and last observations, most needed first, within the size of a state."""
    speeches = [e for e in body if isinstance(e, Speech)]
    observed = [o for turn in turns for o in turn.observations]
    told = [s for turn in turns for s in turn.summaries if summary_text(s)]
    parts = [] if speeches else ["No request of the user's is preserved."]
    if speeches:
        parts.append(f"Last request ({clock(speeches[-1].at)}): {quote(speeches[-1].text, 900)}")
    if len(speeches) > 1:
        parts.append(f"Original request: {quote(speeches[0].text, 300)}")
    if told:
        when = clock(told[-1].at)
        parts.append(f"Last session summary, {when} (generated by claude-mem — not verbatim, nobody's words):")
        parts += [f"> {quote(row, 700)}" for row in summary_text(told[-1]).split("\n") if row.strip()]
    if len(speeches) > 2:
        parts.append("Requests before the last, newest first:")
        parts += [f"- {quote(e.text, 160)}" for e in reversed(speeches[1:-1][-8:])]
    files = list(dict.fromkeys(f for o in reversed(observed) for f in reversed(o.files_modified)))[:_FILES_SHOWN]
    if files:
        parts.append(f"Files changed, newest first: {', '.join(quote(f, 200) for f in files)}")
    if observed:
        parts.append("What was observed last, newest first:")
        parts += [f"- [#cm:{o.id}] {line_text(o)}" for o in reversed(observed[-_LINES_SHOWN:])]
    return within(parts, STATE_UNITS)
