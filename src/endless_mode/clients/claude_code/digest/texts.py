"""Small total functions on values of any type and on texts of any length.

Everything here takes whatever a transcript may hold and gives a bounded text, number or list back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from endless_mode.clients.claude_code.detail import Detail, FileDetail, TaskDetail
from endless_mode.cutting import first_space, last_space
from endless_mode.model import ToolEvent
from endless_mode.privacy import clean

#: How much of the beginning and of the end of a long output is looked at (characters).
HEAD = TAIL = 32_768

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-_])")
_ERROR_TAG = re.compile(r"</?tool_use_error>")
_NO_DETAIL = Detail()
_NO_FILE = FileDetail()
_NO_TASK = TaskDetail()
_SAFE_INT = 1 << 63


def wordset(words: str) -> frozenset[str]:
    """The words of a text as a set: for tables that would be long to write otherwise."""
    return frozenset(words.split())


def text(value: Any) -> str:
    """The value if it is a text, a number in digits, else nothing."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -_SAFE_INT < value < _SAFE_INT else ""
    return str(value) if isinstance(value, float) else ""


def number(value: Any) -> int | None:
    """The value if it is a whole number of a sane size."""
    if isinstance(value, int) and not isinstance(value, bool) and -_SAFE_INT < value < _SAFE_INT:
        return value
    return None


def entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def argument(event: ToolEvent, *keys: str) -> str:
    """The first of the call's arguments under these keys that has a text."""
    arguments = mapping(event.input)
    for key in keys:
        found = text(arguments.get(key))
        if found:
            return found
    return ""


def detail_of(event: ToolEvent) -> Detail:
    return event.detail if isinstance(event.detail, Detail) else _NO_DETAIL


def file_of(detail: Detail) -> FileDetail:
    return detail.file if isinstance(detail.file, FileDetail) else _NO_FILE


def task_of(detail: Detail) -> TaskDetail:
    return detail.task if isinstance(detail.task, TaskDetail) else _NO_TASK


def clip(value: str, limit: int) -> str:
    """At most ``limit`` characters, the cut marked."""
    return value if len(value) <= limit else value[: limit - 1].rstrip() + "…"


def flat(value: str, limit: int) -> str:
    """One line: runs of white space become a space; at most ``limit`` characters."""
    return clip(" ".join(value[: limit * 3].split()), limit)


def window(value: str, head: int = HEAD, tail: int = TAIL) -> str:
    """The text itself, or its beginning and end with a mark between; words are not cut, unless they are very long."""
    if len(value) <= head + tail:
        return value
    end, start = last_space(value, head), first_space(value, len(value) - tail)
    return f"{value[:end]}\n… {start - end} characters …\n{value[start:]}"


def plain(value: str, head: int = HEAD, tail: int = TAIL) -> str:
    """A terminal's output as a person would have seen it: no colours, overwritten parts of lines gone."""
    seen = window(value, head, tail)
    if "\x1b" in seen:
        # A secret with a colour in it was none before.
        seen = clean(_ANSI.sub("", seen))
    if "\r" in seen:
        seen = seen.replace("\r\n", "\n")
        if "\r" in seen:
            seen = clean("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in seen.split("\n")))
    return seen


def result_of(event: ToolEvent) -> str:
    """The result text, bounded, without the client's error tag."""
    result = plain(text(event.result))
    return _ERROR_TAG.sub("", result) if "tool_use_error>" in result else result


def first_line(value: str, limit: int = 300) -> str:
    """The first line that says something: no rules, fences or bare headings."""
    for line in value[:8_192].split("\n", 200)[:200]:
        line = line.strip()
        if sum(map(str.isalnum, line[:80])) >= 2 and not line.startswith("```"):
            return flat(line, limit)
    return ""


def unique(values: Iterable[str], limit: int) -> list[str]:
    """The first ``limit`` different values, in order."""
    found: dict[str, None] = {}
    for value in values:
        if value and value not in found:
            found[value] = None
            if len(found) >= limit:
                break
    return list(found)


def count(amount: int, noun: str, plural: str = "") -> str:
    """``1 match``, ``3 matches``."""
    return f"{amount} {noun if amount == 1 else plural or noun + 's'}"
