"""From a tool event of Claude Code to a bounded, neutral digest of it.

``TOOLS`` is the table from a tool's name to the function that describes it; aliases are further entries.
A function fills in what its tool can say; what holds for all tools (name, status, error, the user's words)
is filled in here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from endless_mode.clients.claude_code.digest import (
    agents,
    edits,
    files,
    other,
    search,
    shell,
    talk,
    todos,
    web,
)
from endless_mode.clients.claude_code.digest.texts import clip, flat, result_of, text
from endless_mode.model import Digest, ToolEvent

__all__ = ["TOOLS", "describe", "digest"]

Describe = Callable[[ToolEvent], Digest]

TOOLS: dict[str, Describe] = {
    "!": shell.user_shell,
    "Bash": shell.bash,
    "PowerShell": shell.bash,
    "BashOutput": shell.output,
    "TaskOutput": shell.output,
    "AgentOutputTool": shell.output,
    "KillShell": shell.stopped,
    "KillBash": shell.stopped,
    "TaskStop": shell.stopped,
    "Read": files.read,
    "NotebookRead": files.read,
    "Edit": edits.edit,
    "MultiEdit": edits.multi_edit,
    "Write": edits.write,
    "NotebookEdit": edits.notebook,
    "Grep": search.grep,
    "Glob": search.glob,
    "LS": search.listing,
    "LSP": search.lsp,
    "WebFetch": web.fetch,
    "WebSearch": web.search,
    "Agent": agents.agent,
    "Task": agents.agent,
    "SendMessage": agents.message,
    "TodoWrite": todos.todo_write,
    "TaskCreate": todos.task_create,
    "TaskUpdate": todos.task_update,
    "TaskList": todos.task_list,
    "TaskGet": todos.task_get,
    "AskUserQuestion": talk.question,
    "EnterPlanMode": talk.enter_plan,
    "ExitPlanMode": talk.exit_plan,
    "Skill": other.skill,
    "SlashCommand": other.skill,
    "ToolSearch": other.tool_search,
    "ListMcpResources": other.resource,
    "ListMcpResourcesTool": other.resource,
    "ReadMcpResource": other.resource,
    "ReadMcpResourceTool": other.resource,
}

#: Kinds whose names are those of the call, not of what came of it.
_OF_THE_CALL = frozenset({"edit", "write", "question", "plan"})
_PREFIX = re.compile(r"^(?:Error: |InputValidationError: )+")


def digest(event: ToolEvent) -> Digest:
    """What is kept of ``event``; never raises.

    One event that defies description must not stop a session from being stored, so a failure here gives a
    digest with the tool's name alone.
    """
    try:
        return describe(event)
    except Exception:
        return Digest("other", text(event.name)[:200], status=event.status)


def describe(event: ToolEvent) -> Digest:
    """:func:`digest` without its net: what the tests hold to never raising."""
    name = text(event.name)
    function = TOOLS.get(name) or (other.mcp if name.startswith("mcp__") else other.unknown)
    made = function(event)
    made.tool = name[:200]
    if made.status == "ok":
        made.status = event.status
    if event.status == "denied":
        made.words = clip(text(event.words).strip(), 2_000)
        made.error = made.excerpt = ""
        made.exit_code = None
        if made.kind not in _OF_THE_CALL:
            # What the client says of a refusal is nobody's output.
            made.outcome = ""
            made.symbols, made.paths, made.names = [], [], []
    elif event.status == "failed" and not made.error and made.kind != "shell":
        made.error = _error(event)
    return made


def _error(event: ToolEvent) -> str:
    """The first meaningful line of a failed tool's result, and what follows a line that ends in a colon."""
    lines = [flat(line, 300) for line in result_of(event)[:6_000].split("\n", 60)[:60]]
    lines = [line for line in lines if sum(map(str.isalnum, line)) >= 2 and not line.startswith("###")]
    if not lines:
        return ""
    first = _PREFIX.sub("", lines[0]) or lines[0]
    return clip(f"{first} {lines[1]}" if first.endswith(":") and len(lines) > 1 else first, 400)
