"""Change a JSON text at one place and leave every other character as it is.

Pure functions on text that is valid JSON (:func:`parse` says so). A path is a tuple of member names and list
positions from the root. Adding something and removing it again gives the text from before.
"""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

Path = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PLAIN = re.compile(r"[^ \t\r\n,\]}]+")
_BOM = "\ufeff"


class Node(Struct):
    """A value's place: ``text[start:end]``. An item of a container begins where its name does."""

    start: int
    end: int
    items: list[Item] | None = None

    def find(self, name: str | int) -> int:
        """Position of an item, -1 if there is none; of members with one name the last one counts."""
        items = self.items or []
        if isinstance(name, int):
            return name if name < len(items) else -1
        return next((n for n in reversed(range(len(items))) if items[n].name == name), -1)


class Item(Struct):
    """An item of a container; ``name`` is None in a list."""

    start: int
    name: str | None
    value: Node


def parse(text: str) -> Any:
    """The value of the text; raise :class:`ValueError` (or :class:`RecursionError`) if it is not JSON."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    return json.loads(text.removeprefix(_BOM), parse_constant=refuse)


def is_blank(text: str) -> bool:
    """Whether there is nothing in the text but white space, which is no JSON but what an empty file has."""
    return not text.removeprefix(_BOM).strip(" \t\r\n")


def scan(text: str) -> Node:
    """Where everything is in a valid JSON text."""
    return _value(text, 1 if text.startswith(_BOM) else 0)


def node(text: str, path: Path) -> Node | None:
    """The value at a path, None if there is none."""
    at = scan(text)
    for name in path:
        found = at.find(name)
        if found < 0:
            return None
        assert at.items is not None
        at = at.items[found].value
    return at


def interior(text: str, path: Path) -> str | None:
    """What stands between the brackets of the empty container at a path; None if it is not empty."""
    at = node(text, path)
    return text[at.start + 1 : at.end - 1] if at is not None and at.items == [] else None


def add(text: str, path: Path, value: Any, name: str | None = None) -> str:
    """Add an item at the end of the container at ``path``, in the manner of what is there already."""
    at = node(text, path)
    assert at is not None and at.items is not None
    unit, newline = _unit(text), "\r\n" if "\r\n" in text else "\n"
    if at.items:
        last, lead = at.items[-1], _lead(text, at)
        broken = "\n" in lead
        indent = lead.rpartition("\n")[2] if broken else ""
        made = _render(value, name, unit if broken else None, indent, newline)
        gap = lead if broken else (lead or ("" if len(at.items) > 1 else " "))
        return text[: last.value.end] + "," + gap + made + text[last.value.end :]
    if unit is None:
        made = _render(value, name, None, "", newline)
        return text[: at.start + 1] + made + text[at.end - 1 :]
    outer = _line_indent(text, at.start)
    made = _render(value, name, unit, outer + unit, newline)
    return text[: at.start + 1] + newline + outer + unit + made + newline + outer + text[at.end - 1 :]


def remove(text: str, path: Path, left: str = "") -> str:
    """Remove the item at ``path``; a container that becomes empty holds ``left`` between its brackets."""
    at = node(text, path[:-1])
    assert at is not None and at.items is not None
    n = at.find(path[-1])
    item = at.items[n]
    if n:
        return text[: at.items[n - 1].value.end] + text[item.value.end :]
    if len(at.items) > 1:
        return text[: item.start] + text[at.items[1].start :]
    return text[: at.start + 1] + left + text[at.end - 1 :]


def _value(text: str, at: int) -> Node:
    at = _skip(text, at)
    if text[at] in "{[":
        return _container(text, at)
    match = (_STRING if text[at] == '"' else _PLAIN).match(text, at)
    assert match is not None
    return Node(at, match.end())


def _container(text: str, start: int) -> Node:
    items: list[Item] = []
    at = _skip(text, start + 1)
    while text[at] not in "}]":
        begin, name = at, None
        if text[start] == "{":
            match = _STRING.match(text, at)
            assert match is not None
            name = json.loads(match[0])
            at = _skip(text, match.end()) + 1
        value = _value(text, at)
        items.append(Item(begin, name, value))
        at = _skip(text, value.end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return Node(start, at + 1, items)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _lead(text: str, at: Node) -> str:
    """The white space before the last item of a container."""
    assert at.items
    start = at.items[-1].start
    before = at.items[-2].value.end if len(at.items) > 1 else at.start
    between = text[before:start]
    return between[len(between.rstrip(" \t\r\n")) :]


def _unit(text: str) -> str | None:
    """One step of indentation; None for a text that is written on one line."""
    root = scan(text)
    if not root.items:
        return "  "
    lead = _lead(text, Node(root.start, root.end, root.items[:1]))
    return lead.rpartition("\n")[2] or "  " if "\n" in lead else None


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at].removeprefix(_BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _render(value: Any, name: str | None, unit: str | None, indent: str, newline: str) -> str:
    made = json.dumps(value, ensure_ascii=False, indent=unit)
    if unit is not None:
        made = made.replace("\n", newline + indent)
    return made if name is None else f"{json.dumps(name, ensure_ascii=False)}: {made}"
