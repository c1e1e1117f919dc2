"""A model that does what our handoff asks: it issues the Read calls of the reading plan."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .answers import Answer, Tool, call, read
from .recorded import Request

HANDOFF_HEADER = "# [claude-mem] Endless Mode — session continuation"

_READ = re.compile(
    r'Read\(file_path="(?P<path>(?:[^"\\]|\\.)+)"'
    r"(?:, offset=(?P<offset>\d+))?(?:, limit=(?P<limit>\d+))?\)"
)


def handoffs_in(request: Request) -> list[str]:
    """Every handoff the model sees in a request: the text from its header to the end of its block."""
    return [
        part.text[part.text.index(HANDOFF_HEADER) :]
        for part in request.seen
        if HANDOFF_HEADER in part.text and part.where == "text"
    ]


def planned_reads(handoff: str) -> list[Tool]:
    """The Read calls a handoff names, in its order."""
    return [
        read(
            found["path"],
            int(found["offset"]) if found["offset"] else None,
            int(found["limit"]) if found["limit"] else None,
        )
        for found in _READ.finditer(handoff)
    ]


@dataclass
class FollowPlan:
    """A script step. If the request carries a handoff it answers with the Read calls of the newest
    one's plan, at most `together` per answer; else it passes the request on. `issued` collects them.
    """

    together: int = 100
    issued: list[Tool] = field(default_factory=list)
    _left: list[Tool] | None = None

    def __call__(self, request: Request) -> Answer | None:
        if self._left is None:
            found = handoffs_in(request)
            self._left = planned_reads(found[-1]) if found else []
        if not self._left:
            return None
        now, self._left = self._left[: self.together], self._left[self.together :]
        self.issued.extend(now)
        answer = call(*now, text="Reading the session's record first.")
        return Answer(answer.text, answer.tools, stay=bool(self._left))


def follow_plan(together: int = 100) -> FollowPlan:
    """A fresh plan-following step; put it where the script expects the handoff."""
    return FollowPlan(together)
