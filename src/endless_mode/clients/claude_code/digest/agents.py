"""Subagents: Agent (older clients: Task)."""

from __future__ import annotations

import re

from endless_mode.clients.claude_code.digest import tokens
from endless_mode.clients.claude_code.digest.texts import (
    argument,
    clip,
    detail_of,
    flat,
    number,
    result_of,
    text,
    window,
)
from endless_mode.model import Digest, ToolEvent

#: The first line of an agent's excerpt: its task in short.
TASK = "Task: "
_AGENT_ID = re.compile(r"agentId: ([\w-]{1,80})")
_TRAILER = re.compile(r"\n?agentId: [^\n]*(?:\n<usage>.*)?\s*$", re.DOTALL)
_MARKS = re.compile(
    r"^(?:#+ .*|\*\*.*\*\*:?|---.*|(?:Perfect|Great|Excellent|Done|Now|Based|Let|I have|I'll"
    r"|Here)\b[^\n]{0,200}[!:])$",
    re.IGNORECASE,
)


def agent(event: ToolEvent) -> Digest:
    """What it was asked, and what it answered or that it runs in the background."""
    detail = detail_of(event)
    kind = argument(event, "subagent_type", "agentType") or text(detail.agent_type)
    prompt = argument(event, "prompt")
    digest = Digest(
        "agent", "", target=clip(argument(event, "description") or flat(prompt, 120), 300), scope=kind[:120]
    )
    asked = f"{TASK}{flat(prompt, 700)}" if prompt else ""
    result = result_of(event)
    known = _AGENT_ID.search(result[-2_000:]) or _AGENT_ID.search(result[:600])
    digest.task_id = (text(detail.agent_id) or (known[1] if known else ""))[:80]
    if event.status == "background" or text(detail.status) == "async_launched" or detail.is_async is True:
        digest.status = "background"
        digest.paths = [text(detail.output_file)] if text(detail.output_file) else []
        digest.excerpt = asked
        return digest
    if event.status != "ok":
        digest.excerpt = asked
        return digest
    said = _TRAILER.sub("", result[-70_000:]).strip()
    digest.outcome = flat(opening(said), 300)
    uses, spent = number(detail.total_tool_use_count), number(detail.total_tokens)
    digest.lines = ", ".join(
        p
        for p in (
            f"{uses} tool uses" if uses else "",
            f"{round(spent / 1000)}k tokens" if spent and spent < 10**12 else "",
        )
        if p
    )
    digest.paths, digest.names = tokens.specific(window(said, 5_000, 2_000), known=digest.outcome, limit=10)
    digest.excerpt = f"{asked}\n{window(said, 3_000, 1_000)}"
    return digest


def message(event: ToolEvent) -> Digest:
    """SendMessage: a word to a running agent."""
    digest = Digest("agent", "", target=clip(argument(event, "to", "recipient", "agentId"), 120))
    digest.outcome = flat(argument(event, "message", "content", "prompt"), 300)
    digest.excerpt = window(result_of(event), 1_500, 500)
    return digest


def opening(said: str) -> str:
    """The answer's beginning without the headings and the pleasantries in front of it."""
    lines = [line.strip() for line in said[:3_000].split("\n")]
    kept = [line for line in lines if line and not _MARKS.match(line) and not line.startswith("```")]
    return " ".join(kept[:6])
