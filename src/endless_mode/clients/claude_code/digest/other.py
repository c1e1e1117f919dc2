"""Skills, slash commands, tool searches, MCP tools, and tools nobody here has heard of."""

from __future__ import annotations

import re
from typing import Any

from endless_mode.clients.claude_code.digest import tokens
from endless_mode.clients.claude_code.digest.texts import (
    argument,
    clip,
    detail_of,
    entries,
    flat,
    mapping,
    result_of,
    text,
    unique,
    window,
)
from endless_mode.model import Digest, ToolEvent

_TELLING = (
    "query",
    "url",
    "path",
    "file_path",
    "filePath",
    "name",
    "title",
    "id",
    "command",
    "prompt",
    "message",
    "description",
)
_SKIPPED = re.compile(r"^(?:#{1,4} |```|await |generic \[ref|[\[\]{}(),]+$|<changed>)")


def skill(event: ToolEvent) -> Digest:
    name = argument(event, "skill", "command", "name") or text(detail_of(event).command_name)
    return Digest("skill", "", target=flat(f"{name} {argument(event, 'args', 'arguments')}", 400))


def tool_search(event: ToolEvent) -> Digest:
    digest = Digest("other", "", target=flat(argument(event, "query"), 300))
    found = [text(m) or text(mapping(m).get("name")) for m in entries(detail_of(event).matches)[:16]]
    digest.names = unique(found, 12)
    digest.outcome = "" if digest.names else flat(result_of(event), 200)
    return digest


def mcp(event: ToolEvent) -> Digest:
    """``mcp__server__tool``: its telling arguments, and what it answered first."""
    server, _, tool = event.name.removeprefix("mcp__").partition("__")
    digest = Digest("mcp", "", target=clip(f"{server} {tool}".strip(), 200))
    return _answered(digest, event)


def resource(event: ToolEvent) -> Digest:
    """ListMcpResources, ReadMcpResource."""
    target = " ".join(p for p in (argument(event, "server"), argument(event, "uri")) if p)
    return _answered(Digest("mcp", "", target=clip(target, 400)), event)


def unknown(event: ToolEvent) -> Digest:
    return _answered(Digest("other", ""), event)


def _answered(digest: Digest, event: ToolEvent) -> Digest:
    digest.scope = arguments_line(event.input)
    result = result_of(event)
    if event.status != "ok":
        return digest
    digest.outcome = flat("; ".join(_telling_lines(result[:6_000])), 260)
    paths, names = tokens.specific(window(result, 3_000, 1_000), known=f"{digest.scope} {digest.outcome}", limit=10)
    digest.paths, digest.names = paths[:6], names
    digest.excerpt = window(result, 2_500, 1_000)
    return digest


def _telling_lines(result: str) -> list[str]:
    """The first four lines that are no headings, no brackets and no repeated program text."""
    lines: list[str] = []
    program = False
    for line in result.split("\n", 120)[:120]:
        line = line.strip().removeprefix("- ")
        if line.startswith("```"):
            program = line in ("```js", "```ts", "```javascript")
        elif line and not program and not _SKIPPED.match(line):
            lines.append(line)
        if len(lines) == 4:
            break
    return lines


def arguments_line(arguments: Any, limit: int = 400) -> str:
    """``key=value`` for every short argument; long texts give their beginning. The telling keys go first."""
    items = [(k, v) for k, v in list(mapping(arguments).items())[:40] if isinstance(k, str)]
    items.sort(key=lambda item: item[0] not in _TELLING)
    said = []
    for key, value in items:
        shown = _shown(value)
        if shown:
            said.append(f"{key[:60]}={shown}")
    return clip(", ".join(said), limit)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        parts = [flat(text(v), 60) for v in value[:8]]
        return f"[{', '.join(p for p in parts if p)}]" if any(parts) else ""
    if isinstance(value, dict):
        parts = [f"{k[:40]}: {flat(text(v), 60)}" for k, v in list(value.items())[:6] if isinstance(k, str) and text(v)]
        return "{" + ", ".join(parts) + "}" if parts else ""
    return flat(text(value), 200)
