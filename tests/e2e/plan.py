"""A model that does what our handoff asks: it issues the Read calls of the reading plan."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from .answers import Answer, Tool, call, read
from .recorded import Request

HANDOFF_HEADER = "# [claude-mem] Endless Mode — session continuation"

_READ = re.compile(
    r'Read\(file_path="(?P<path>(?:[^"\\]|\\.)+)"'
    r"(?:, offset=(?P<offset>\d+))?(?:, limit=(?P<limit>\d+))?\)"
)


def handoffs_in(request: Request) -> list[str]:
    """Every handoff the model sees in a request, oldest first: each from its header to the next
    header or the end of the text it stands in. Texts that came out of tools do not count.
    """
    texts = [part.text for part in request.seen if part.where == "text"]
    return [HANDOFF_HEADER + rest for text in texts for rest in text.split(HANDOFF_HEADER)[1:]]


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
    """A script step. If the newest handoff in the request was not followed yet, it answers with the
    Read calls of its plan, at most `together` per answer; else it passes the request on.
    `issued` collects the calls.
    """

    together: int = 100
    issued: list[Tool] = field(default_factory=list)
    _followed: set[str] = field(default_factory=set)
    _left: list[Tool] = field(default_factory=list)

    def __call__(self, request: Request) -> Answer | None:
        found = handoffs_in(request)
        if not self._left and found and found[-1] not in self._followed:
            self._followed.add(found[-1])
            self._left = planned_reads(found[-1])
        if not self._left:
            return None
        now, self._left = self._left[: self.together], self._left[self.together :]
        self.issued.extend(now)
        answer = call(*now, text="Reading the session's record first.")
        return replace(answer, stay=bool(self._left))


def follow_plan(together: int = 100) -> FollowPlan:
    """A fresh plan-following step; put it where the script expects the handoff."""
    return FollowPlan(together)
