"""What a tool call says, told apart: its arguments, the code bodies it carries, and one bare line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.continuity.reader import Event

WRITERS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
BODY_KEYS = frozenset({"old_string", "new_string", "new_source", "code", "function", "operations"})
ENUM_KEYS = frozenset({"output_mode", "status", "subagent_type", "type", "model", "operation"})
LINE_LIMIT = 100
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1[^\n]*\n(.*?)\n[ \t]*\2\b", re.S)
_SLICES = {
    "Bash": "command",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "Write": "file_path",
    "Read": "file_path",
    "NotebookEdit": "notebook_path",
    "Grep": "pattern",
    "Glob": "pattern",
}


def _leaves(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, key)


def _is_body(event: Event, key: str) -> bool:
    return key in BODY_KEYS or (event.name == "Write" and key == "content")


def arguments(event: Event) -> str:
    """Every string of the input that is no code body and no choice from a list; heredocs are cut out."""
    parts = (
        _HEREDOC.sub("", v) if k == "command" else v
        for k, v in _leaves(event.input)
        if not (k in ENUM_KEYS or _is_body(event, k))
    )
    return "\n".join(parts)


def bodies(event: Event) -> str:
    """Code bodies: old and new strings, written content, scripts handed to a tool, heredocs."""
    found: list[str] = []
    for key, value in _leaves(event.input):
        if _is_body(event, key):
            found.append(value)
        elif key == "command":
            found.extend(m.group(3) for m in _HEREDOC.finditer(value))
    return "\n".join(found)


def target(event: Event) -> str:
    """The path a file tool works on, or an empty text."""
    return str(event.input.get("file_path") or event.input.get("notebook_path") or "")


def bare_line(event: Event) -> str:
    """`- Tool — argument`: command, path or pattern, else the first value; 100 characters, paths whole."""
    key = _SLICES.get(event.name)
    value = event.input.get(key) if key else next(iter(event.input.values()), "")
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return f"- {event.name} — {text if key and key.endswith('_path') else text[:LINE_LIMIT]}"
