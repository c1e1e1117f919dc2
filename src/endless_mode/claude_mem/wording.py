"""claude-mem's observations and summaries as they stand in a bottle."""

from __future__ import annotations

import re

from endless_mode.bottle.entries import GeneratedSummary, Line
from endless_mode.bottle.escape import flatten
from endless_mode.claude_mem.session import MemObservation, MemSummary

WHO = "claude-mem"

_TITLE, _CLAUSE = 240, 240
_CLAUSE_END = re.compile(r"[.!?;:](?=\s)|\n")
_FIELDS = (
    ("Request", "request"),
    ("Investigated", "investigated"),
    ("Learned", "learned"),
    ("Completed", "completed"),
    ("Next steps", "next_steps"),
    ("Notes", "notes"),
)


def line(observation: MemObservation) -> Line:
    """``[#cm:id] title — first clause of the narrative``."""
    return Line([f"cm:{observation.id}"], line_text(observation))


def line_text(observation: MemObservation) -> str:
    """The line without its id: title and first clause, or what there is in their stead."""
    said = [
        observation.title,
        _clause(observation.narrative),
        observation.subtitle,
        *observation.facts[:1],
        observation.type or "observation",
    ]
    title, *more = [flat for part in said if (flat := " ".join(flatten(part).split()))]
    clause = next((part for part in more[:1] if part != observation.type and part != title), "")
    shown = _cut(title, _TITLE) + (f" — {_cut(clause, _CLAUSE)}" if clause else "")
    return f"{shown} (by a subagent)" if observation.agent else shown


def summary(given: MemSummary) -> GeneratedSummary | None:
    """A summary as a generated block; ``None`` when nothing is in it."""
    text = summary_text(given)
    return GeneratedSummary(WHO, text) if text else None


def summary_text(given: MemSummary) -> str:
    """The fields of a summary that hold something, a line each."""
    return "\n".join(f"{label}: {value}" for label, name in _FIELDS if (value := getattr(given, name)))


def _clause(text: str) -> str:
    head = text.strip()
    end = _CLAUSE_END.search(head)
    return (head[: end.start()] if end else head).rstrip(" .")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
