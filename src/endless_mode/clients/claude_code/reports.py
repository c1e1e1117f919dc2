"""What background tasks and agents report when they end, as the client puts it into the conversation."""

from __future__ import annotations

from collections.abc import Iterator

from endless_mode.clients.claude_code import wording
from endless_mode.clients.claude_code.entry import Entry, ms_of
from endless_mode.clients.claude_code.state import State
from endless_mode.model import Item, TaskReport
from endless_mode.privacy import clean


def task_reports(at: State, texts: list[str], entry: Entry, offset: int) -> Iterator[Item]:
    """The reports among the texts of an entry; those of a private turn stay out."""
    if at.private:
        return
    for index, text in enumerate(texts):
        fields = wording.notification(clean(text))
        if fields is None:
            continue
        yield TaskReport(
            offset,
            index,
            task_id=fields.get("task-id", ""),
            tool_use_id=fields.get("tool-use-id", ""),
            status=fields.get("status", ""),
            summary=fields.get("summary", ""),
            result=fields.get("result", ""),
            at=ms_of(entry.timestamp),
        )
