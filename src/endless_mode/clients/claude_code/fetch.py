"""One tool use read again from the transcript, for expansion on demand. What comes out is clean."""

from __future__ import annotations

from endless_mode.clients.base import Source
from endless_mode.clients.claude_code.calls import clean_event, outcome_of, result_text
from endless_mode.clients.claude_code.entry import entries_at, iter_blocks
from endless_mode.clients.claude_code.tool_uses import call_event
from endless_mode.model import ToolEvent


def fetch(source: Source, offset: int, result_offset: int, tool_use_id: str) -> ToolEvent | None:
    """The tool use whose call stands at ``offset`` and whose result at ``result_offset`` (-1: none yet).

    ``None`` when the lines are no longer there.
    """
    event: ToolEvent | None = None
    for entry in entries_at(source, offset):
        for index, block in iter_blocks(entry.message, "tool_use"):
            if block.id == tool_use_id:
                event = call_event(entry, block, offset, index)
    if event is None:
        return None
    for entry in entries_at(source, result_offset) if result_offset >= 0 else ():
        for _, block in iter_blocks(entry.message, "tool_result"):
            if block.tool_use_id == tool_use_id:
                event.result, event.detail = result_text(block.content), entry.toolUseResult
                event.status, event.words = outcome_of(event, bool(block.is_error))
    return clean_event(event)
