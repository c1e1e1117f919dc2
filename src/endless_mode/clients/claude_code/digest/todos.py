"""Todo lists: TodoWrite and TaskList state the whole list, the other task tools speak of one item."""

from __future__ import annotations

import re
from typing import Any

from endless_mode.clients.claude_code.digest.texts import (
    argument,
    clip,
    detail_of,
    entries,
    flat,
    mapping,
    result_of,
    task_of,
    text,
)
from endless_mode.model import Digest, Todo, ToolEvent

_MOST = 50
_ITEM = re.compile(r"#(\S{1,20}) \[(\w{1,20})\] (.{1,400})")
_CREATED = re.compile(r"Task #(\S{1,20}) created")
_HEAD = re.compile(r"Task #(\S{1,20}): (.{1,300})\nStatus: (\w+)")
_STATES = frozenset({"pending", "in_progress", "completed", "deleted"})


def todo_write(event: ToolEvent) -> Digest:
    items = [_todo(item) for item in entries(mapping(event.input).get("todos"))[:_MOST]]
    digest = Digest("todo", "", todos=[item for item in items if item.text], todos_whole=event.status == "ok")
    done = sum(item.status == "completed" for item in digest.todos)
    digest.outcome = f"{done} of {len(digest.todos)} done" if digest.todos else "emptied"
    return digest


def task_create(event: ToolEvent) -> Digest:
    subject = argument(event, "subject", "title") or text(task_of(detail_of(event)).subject)
    created = _CREATED.match(result_of(event)[:200])
    identity = text(task_of(detail_of(event)).id) or (created[1] if created else "")
    digest = Digest("todo", "", target=clip(subject, 300), todos=[Todo(clip(subject, 300), "pending", identity)])
    digest.excerpt = clip(argument(event, "description"), 1_500)
    return digest


def task_update(event: ToolEvent) -> Digest:
    """A new state or wording; the item's subject is only there when it changed."""
    identity = argument(event, "taskId", "task_id", "id")
    change = mapping(detail_of(event).status_change)
    before, after = text(change.get("from"))[:20], (argument(event, "status") or text(change.get("to")))[:20]
    subject = clip(argument(event, "subject"), 300)
    digest = Digest(
        "todo",
        "",
        target=f"#{identity[:40]}",
        todos=[Todo(subject, after if after in _STATES else "", identity[:40])],
    )
    arguments = mapping(event.input)
    said = [f"{before} → {after}" if before and after else after, subject]
    for key, words in (("addBlockedBy", "blocked by"), ("addBlocks", "blocks")):
        others = [text(other)[:20] for other in entries(arguments.get(key))[:10]]
        said.append(f"{words} #{', #'.join(others)}" if others else "")
    said.append(f"owner {argument(event, 'owner')[:60]}" if argument(event, "owner") else "")
    said.append(flat(argument(event, "description"), 240))
    digest.outcome = "; ".join(p for p in said if p)
    return digest


def task_list(event: ToolEvent) -> Digest:
    listed = [_todo(item) for item in entries(detail_of(event).tasks)[:_MOST]]
    if not listed:
        listed = [Todo(flat(item[3], 300), item[2], item[1]) for item in _ITEM.finditer(result_of(event)[:20_000])][
            :_MOST
        ]
    digest = Digest("todo", "", todos=[item for item in listed if item.text], todos_whole=event.status == "ok")
    done = sum(item.status == "completed" for item in digest.todos)
    digest.outcome = f"{done} of {len(digest.todos)} done" if digest.todos else "empty"
    return digest


def task_get(event: ToolEvent) -> Digest:
    result = result_of(event)[:6_000]
    head = _HEAD.match(result)
    identity = argument(event, "taskId", "task_id") or (head[1] if head else "")
    digest = Digest("todo", "", target=f"#{identity[:40]}")
    if head:
        digest.todos = [Todo(flat(head[2], 300), head[3], head[1])]
        digest.outcome = flat(f"{head[3]}; {head[2]}; {result[head.end() :].strip()}", 360)
    return digest


def _todo(value: Any) -> Todo:
    item = mapping(value)
    said = text(item.get("content")) or text(item.get("subject")) or text(item.get("text"))
    state = text(item.get("status")) or "pending"
    return Todo(flat(said, 200), state if state in _STATES else "pending", text(item.get("id"))[:40])
