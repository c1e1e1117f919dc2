"""Tool uses of one transcript: calls waiting for their results, and what in both is conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import copy

from endless_mode.clients.base import Source
from endless_mode.clients.claude_code.calls import (
    answers_of,
    approved_plan,
    clean_call,
    clean_result,
    is_own,
    outcome_of,
    plan_of,
    question_of,
    result_text,
)
from endless_mode.clients.claude_code.entry import (
    Block,
    Entry,
    decode,
    entries_at,
    iter_blocks,
    key_of,
    ms_of,
    text_of,
)
from endless_mode.clients.claude_code.screen import Screen
from endless_mode.clients.claude_code.state import MAX_OPEN, OpenCall, State, text_digest
from endless_mode.model import Item, Message, MessageKind, ToolEvent, Withdrawn
from endless_mode.privacy import clean

#: Tools whose use by a subagent counts in the session: they change files.
_CHANGES = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
#: Plan mode keeps its plan in a file of the client's before it is offered for approval.
_PLAN_FILE = re.compile(r"/\.claude/plans/[^/]+\.md\Z")


class ToolUses:
    """Pairs calls with results. What must outlive the process is in ``state``; inputs are read again when lost."""

    def __init__(self, source: Source, state: State, screen: Screen, hidden: frozenset[str] = frozenset()) -> None:
        self._source = source
        self._screen = screen
        self._hidden = hidden
        self._at = state
        self._calls: dict[str, ToolEvent] = {}
        self._done: set[str] = set()

    def call(self, entry: Entry, block: Block, offset: int, index: int) -> Iterator[Item]:
        """A tool_use block of the main line."""
        event = call_event(entry, block, offset, index)
        if event is None or is_own(event) or self._known(event.tool_use_id):
            return
        event = self._clean_call(event)
        self._wait(event)
        yield from self._spoken(event, key_of(entry, offset, index))
        yield copy(event)

    def result(self, entry: Entry, block: Block, offset: int, index: int) -> Iterator[Item]:
        """A tool_result block of the main line. Results of calls that are not known are passed over."""
        event = self._ended(entry, block, offset)
        if event is None or self._at.private:
            return
        yield event
        yield from self._planned(event)
        kind, text = _decided(event)
        if kind is not None:
            yield Message(key_of(entry, offset, index), offset, index, "user", kind, text, event.ended_at)

    # -- subagents -----------------------------------------------------------------------------------------

    def progress(self, entry: Entry, offset: int) -> Iterator[Item]:
        """Old clients copy a subagent's conversation into progress lines; only its changes to files matter."""
        data = entry.data
        if data is None:
            return
        raw = bytes(data.message)
        if b'"file_path"' not in raw and b'"notebook_path"' not in raw and b'"tool_result"' not in raw:
            return
        self._screen.cleared = False  # what lies deeper in a line was not looked at
        for _, inner in decode(raw, offset) or ():
            inner.cwd = inner.cwd or entry.cwd
            yield from self.subagent(inner, offset, text_of(data.agentId) or "subagent")

    def subagent(self, entry: Entry, offset: int, agent: str) -> Iterator[Item]:
        """An entry of a subagent's conversation; what it did for a private prompt stays out."""
        if self._hidden and entry.type == "user" and isinstance(entry.promptId, str):
            self._at.private = text_digest(entry.promptId) in self._hidden
        if self._at.private:
            return
        if entry.type == "assistant":
            for index, block in iter_blocks(entry.message, "tool_use"):
                event = call_event(entry, block, offset, index)
                if event is not None and event.name in _CHANGES and not self._known(event.tool_use_id):
                    event.agent_id = agent
                    self._wait(self._clean_call(event))
        elif entry.type == "user":
            for _, block in iter_blocks(entry.message, "tool_result"):
                if isinstance(block.tool_use_id, str) and block.tool_use_id in self._at.open:
                    ended = self._ended(entry, block, offset)
                    if ended is not None:
                        ended.agent_id = ended.agent_id or agent
                        yield ended

    # -- pairing -------------------------------------------------------------------------------------------

    def _known(self, tool_use_id: str) -> bool:
        return tool_use_id in self._done or tool_use_id in self._at.open

    def _wait(self, event: ToolEvent) -> None:
        self._at.open[event.tool_use_id] = OpenCall(event.offset, event.index)
        self._calls[event.tool_use_id] = event
        for waiting in (self._at.open, self._calls):
            while len(waiting) > MAX_OPEN:
                waiting.pop(next(iter(waiting)))

    def _ended(self, entry: Entry, block: Block, offset: int) -> ToolEvent | None:
        """The tool use that a result block completes, clean; ``None`` when its call is not known."""
        event = self._called(block.tool_use_id) if isinstance(block.tool_use_id, str) else None
        if event is None:
            return None
        self._done.add(event.tool_use_id)
        event.result = result_text(block.content)
        event.detail = entry.toolUseResult
        event.result_offset, event.ended_at = offset, ms_of(entry.timestamp)
        event.status, event.words = outcome_of(event, bool(block.is_error))
        as_it_stands = self._screen.cleared and not event.words and event.result is block.content
        return event if as_it_stands else clean_result(event)

    def _clean_call(self, event: ToolEvent) -> ToolEvent:
        """A call of the present entry, clean."""
        return event if self._screen.cleared else clean_call(event)

    def _called(self, tool_use_id: str) -> ToolEvent | None:
        """The call a result belongs to, read again from its line when another reader saw it."""
        call = self._at.open.pop(tool_use_id, None)
        event = self._calls.pop(tool_use_id, None)
        if call is None or event is not None:
            return event if call is not None else None
        for entry in entries_at(self._source, call.offset):
            for index, block in iter_blocks(entry.message, "tool_use"):
                if block.id == tool_use_id and (found := call_event(entry, block, call.offset, index)):
                    return clean_call(found)
        return None

    # -- what in it is conversation ------------------------------------------------------------------------

    def _spoken(self, event: ToolEvent, key: str) -> Iterator[Item]:
        """The part of a call that is conversation: a plan offered, a question asked."""
        if event.name == "ExitPlanMode" and (plan := plan_of(event)).strip():
            yield from self._plan(event, key, plan)
        elif event.name == "AskUserQuestion" and (question := clean(question_of(event))).strip():
            yield Message(key, event.offset, event.index, "assistant", "question", question, event.at)

    def _planned(self, event: ToolEvent) -> Iterator[Item]:
        """A plan that only the result, or only the plan file written before, has in words."""
        if event.status != "ok":
            return
        if (event.name == "ExitPlanMode" and not plan_of(event).strip() and (plan := approved_plan(event)).strip()) or (
            event.name == "Write"
            and _PLAN_FILE.search(text_of(event.input.get("file_path")))
            and (plan := text_of(event.input.get("content"))).strip()
        ):
            yield from self._plan(event, f"plan:{event.tool_use_id}", plan)

    def _plan(self, event: ToolEvent, key: str, plan: str) -> Iterator[Item]:
        """A plan in words. It takes the place of the draft before it, unless the draft has the same words."""
        at, digest = self._at, text_digest(plan)
        if at.plan_draft and digest == at.plan_digest:
            at.plan_draft = ""
            return
        if at.plan_draft:
            yield Withdrawn(at.plan_draft, "stands elsewhere")
        at.plan_digest, at.plan_draft = digest, key if key.startswith("plan:") and event.name == "Write" else ""
        yield Message(key, event.offset, event.index, "assistant", "plan", plan, event.at)


def call_event(entry: Entry, block: Block, offset: int, index: int) -> ToolEvent | None:
    """A tool_use block as an open event; ``None`` when it has no id or name."""
    if not isinstance(block.id, str) or not isinstance(block.name, str):
        return None
    return ToolEvent(
        tool_use_id=block.id,
        name=block.name,
        offset=offset,
        index=index,
        input=block.input if isinstance(block.input, dict) else {},
        at=ms_of(entry.timestamp),
        cwd=text_of(entry.cwd),
    )


def _decided(event: ToolEvent) -> tuple[MessageKind | None, str]:
    """What the user decided by a result: an answer, an approval, a refusal."""
    if event.status == "denied":
        if event.words.strip():
            return "refusal", event.words
        return ("refusal", "(plan refused)") if event.name == "ExitPlanMode" else (None, "")
    if event.status != "ok":
        return None, ""
    if event.name == "ExitPlanMode":
        return "approval", "(plan approved)"
    if event.name == "AskUserQuestion" and (answers := clean(answers_of(event))).strip():
        return "answer", answers
    return None, ""
