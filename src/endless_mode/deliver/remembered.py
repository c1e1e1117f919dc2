"""The client's record of what was typed, beside what claude-mem has of the same session.

A prompt that both have stands once: by its text (claude-mem's may be cut short) and a time close by. What only the
record has is added at its time. It also shows prompts that were private from end to end, which claude-mem passes over
while it notes their work: that work is taken out, to the end of the turn after it, in which late notes come in.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from typing import TypeVar

import msgspec

from endless_mode.claude_mem.session import MemObservation, MemPrompt, MemSession, MemSummary
from endless_mode.clients.claude_code.history import Record, Typed

#: What a bottle says of this source.
HISTORY = (
    "from the client's record of what was typed (history.jsonl): also what was taken back or rewound;"
    " prompts that came in otherwise are not in it"
)
#: A prompt is stored this close to when it was typed, in milliseconds; one that waited in the queue is later.
_NEAR = 15 * 60_000
#: The same for a prompt that is known by its time, because its pasted text is gone.
_MOMENT = 60_000

#: What clients from about 2.1.332 on put around a pasted text when they send it.
_WRAPPING = re.compile(r"</?pasted_content(?: id=\"[^\"<>\n]{1,40}\")?>")
_WRAPPING_CUT = re.compile(r"</?[a-z_]{0,14}(?: id=\"?[^\"<>\n]{0,40}\"?)?$")

_Dated = TypeVar("_Dated", MemObservation, MemSummary)


def remembered(told: MemSession | None, record: Record, session_id: str) -> MemSession | None:
    """One session from both sources; ``told`` itself when the record has nothing of it."""
    if not record.prompts:
        return told
    base = told or MemSession(session_id, "claude", "", sources=())
    kept, added = _compared(base.prompts, record.prompts)
    project = next((one.project for one in reversed(record.prompts) if one.project), base.project)
    hidden = _hidden([*base.prompts, *added], record.prompts)
    times = [one.at for one in record.prompts if one.at is not None]
    problems = list(base.problems)
    if record.left_out:
        problems.append(f"{record.left_out} older prompts are left out for size")
    if lost := sum(one.lost for one in record.prompts):
        problems.append(f"the client has not kept {lost} pasted texts; their marks stand in the prompts")
    return msgspec.structs.replace(
        base,
        project=project,
        started=min([*times, *([base.started] if base.started is not None else [])], default=None),
        prompts=_in_order(kept, added),
        observations=_shown(base.observations, hidden),
        summaries=_shown(base.summaries, hidden),
        problems=tuple(problems),
        sources=(*base.sources, HISTORY),
    )


def _compared(stored: tuple[MemPrompt, ...], typed: tuple[Typed, ...]) -> tuple[list[MemPrompt], list[MemPrompt]]:
    """claude-mem's prompts, whole where the record has them whole, and those that only the record has."""
    kept = list(stored)
    free = set(range(len(kept)))
    alike: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for n, prompt in enumerate(kept):
        alike[_words(prompt.text), prompt.private].append(n)
    cut = [n for n, prompt in enumerate(kept) if prompt.truncated]
    added: list[MemPrompt] = []
    for one in typed:
        same = [n for n in alike[_words(_sent(one)), one.private] if n in free and _near(kept[n].at, one.at, _NEAR)]
        if not same:
            same = [n for n in cut if n in free and _begins(one, kept[n])]
        if not same and one.lost:
            head = one.text.partition("[")[0].strip()
            same = [n for n in sorted(free) if kept[n].text.startswith(head) and _near(kept[n].at, one.at, _MOMENT)]
            same = [n for n in same if kept[n].at is not None and one.at is not None]
        if not same:
            added.append(_prompt(one))
            continue
        best = min(same, key=lambda n: abs((kept[n].at or 0) - (one.at or 0)))
        free.discard(best)
        if kept[best].truncated and not one.lost:
            kept[best] = msgspec.structs.replace(
                kept[best], text=one.text, truncated=one.cut_at is not None, kept=one.cut_at or 0
            )
    return kept, added


def _sent(one: Typed) -> str:
    return f"!{one.text}" if one.kind == "shell" else one.text


def _words(text: str) -> str:
    return " ".join(_WRAPPING.sub(" ", text).split())


def _begins(one: Typed, stored: MemPrompt) -> bool:
    # The cut may have gone through the wrapping itself.
    said = _words(_WRAPPING_CUT.sub("", stored.text.rstrip("…")))
    return _words(one.text).startswith(said) and _near(stored.at, one.at, _NEAR)


def _near(a: int | None, b: int | None, most: int) -> bool:
    return a is None or b is None or abs(a - b) <= most


def _prompt(one: Typed) -> MemPrompt:
    return MemPrompt(
        None, one.text, one.at, one.cut_at is not None, one.private, typed=True, kind=one.kind, kept=one.cut_at or 0
    )


def _in_order(stored: list[MemPrompt], added: list[MemPrompt]) -> tuple[MemPrompt, ...]:
    """The stored ones keep their order; an added one stands before the first that is later than it."""
    times: list[int] = []
    for prompt in stored:
        times.append(max(prompt.at or 0, times[-1] if times else 0))
    before: dict[int, list[MemPrompt]] = defaultdict(list)
    last = 0
    for one in added:
        last = bisect_right(times, one.at) if one.at is not None else last
        before[last].append(one)
    found: list[MemPrompt] = []
    for n in range(len(stored) + 1):
        found += before[n]
        found += stored[n : n + 1]
    return tuple(found)


def _hidden(prompts: list[MemPrompt], typed: tuple[Typed, ...]) -> list[tuple[int, int]]:
    """The times in which what claude-mem noted is not to be shown: ``(from, to)``."""
    starts = sorted({prompt.at for prompt in prompts if prompt.at is not None})
    far = 1 << 62
    return [
        (one.at, [*starts[bisect_right(starts, one.at) :], far, far][1])
        for one in typed
        if one.private and one.at is not None
    ]


def _shown(items: tuple[_Dated, ...], hidden: list[tuple[int, int]]) -> tuple[_Dated, ...]:
    """Without what falls into hidden times; where there are any, without what has no time."""
    if not hidden:
        return items
    return tuple(
        item for item in items if item.at is not None and not any(first <= item.at < end for first, end in hidden)
    )
