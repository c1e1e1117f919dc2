"""The line that stands for a tool use, and the golden file of lines for the recorded ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from endless_mode.clients.claude_code.detail import Detail
from endless_mode.clients.claude_code.digest import describe
from endless_mode.model import Digest, ToolEvent
from endless_mode.observe.rules import RulesObserver

FIXTURES = Path(__file__).parent.parent / "fixtures" / "tools"
EVENTS, LINES = FIXTURES / "events.jsonl", FIXTURES / "lines.txt"


def said(digest: Digest, cwd: str = "") -> str:
    """``title — outcome``, as it stands in a bottle without its id."""
    observation = RulesObserver().observe(digest, cwd)
    outcome = observation.narrative.split("\n", 1)[0]
    return f"{observation.title} — {outcome}" if outcome else observation.title


def recorded() -> Iterator[ToolEvent]:
    for text in EVENTS.read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        yield ToolEvent(
            tool_use_id="t",
            name=row["name"],
            offset=0,
            index=0,
            input=row["input"],
            result=row["result"],
            detail=msgspec.convert(row["detail"], Detail) if "detail" in row else None,
            status=row["status"],
            words=row.get("words", ""),
            cwd=row["cwd"],
        )


def lines() -> list[str]:
    return [said(describe(event), event.cwd) for event in recorded()]


if __name__ == "__main__":
    LINES.write_text("\n".join(lines()) + "\n", encoding="utf-8")
