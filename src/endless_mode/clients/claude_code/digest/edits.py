"""Files that were changed: Edit, MultiEdit, Write, NotebookEdit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from endless_mode.clients.claude_code.digest import symbols, tokens
from endless_mode.clients.claude_code.digest.texts import (
    argument,
    clip,
    count,
    detail_of,
    entries,
    mapping,
    number,
    text,
    unique,
    window,
    wordset,
)
from endless_mode.model import Digest, ToolEvent

HUNK, HUNKS = 1_500, 4_000
#: How much changed text names are looked for in.
_NAMES = 12_000
_SNIPPET = re.compile(r"^[ ]*\d+[→\t]", re.MULTILINE)
_COMMON = wordset(
    "True False None self this return import from export const function async await class interface type "
    "string number boolean "
    "else elif raise raises with while break continue pass lambda yield static public private protected "
    "void null undefined "
    "struct func default case switch struct impl pub match enum trait where print printf println error "
    "errors nil true false "
    "range package require include extends implements readonly override typeof instanceof"
)


class Change:
    """Changed lines gathered from a patch or from pairs of old and new text."""

    __slots__ = ("added", "context", "places", "removed")

    def __init__(self) -> None:
        self.added: list[str] = []
        self.removed: list[str] = []
        self.context: list[str] = []
        self.places: list[str] = []


def edit(event: ToolEvent) -> Digest:
    """One replacement."""
    arguments = mapping(event.input)
    pair = (text(arguments.get("old_string")), text(arguments.get("new_string")))
    return _edited(event, [pair], everywhere=arguments.get("replace_all") is True)


def multi_edit(event: ToolEvent) -> Digest:
    pairs = [mapping(e) for e in entries(mapping(event.input).get("edits"))[:60]]
    return _edited(event, [(text(p.get("old_string")), text(p.get("new_string"))) for p in pairs])


def write(event: ToolEvent) -> Digest:
    """A whole file. New files count their lines; rewritten ones the patch's."""
    path, content = argument(event, "file_path", "path"), argument(event, "content", "contents")
    digest = Digest("write", "", target=clip(path, 1_000))
    detail = detail_of(event)
    lines = content.count("\n") + (not content.endswith("\n")) if content else 0
    change = _patched(detail.structured_patch)
    source = window(content, 48_000, 16_000)
    if text(detail.type) == "update" and change:
        digest.added, digest.removed = len(change.added), len(change.removed)
        digest.outcome = f"rewritten, {count(lines, 'line')}"
        _names(digest, path, change)
    else:
        digest.added = lines
        created = text(detail.type) != "update" and "updated" not in text(event.result)[:200]
        digest.outcome = f"{'created' if created else 'rewritten'}, {count(lines, 'line')}"
        digest.symbols = symbols.defined(path, source, 16)
        digest.names = _new_names(source[:_NAMES], "", digest.symbols)
    digest.hunks = [window(content, 2_000, 500)] if content else []
    return _ended(digest, event)


def notebook(event: ToolEvent) -> Digest:
    """One cell of a notebook replaced, inserted or deleted."""
    path, source = argument(event, "notebook_path", "file_path"), argument(event, "new_source")
    mode = argument(event, "edit_mode") or text(detail_of(event).edit_mode) or "replace"
    cell = argument(event, "cell_id", "cell_number") or text(detail_of(event).cell_id)
    digest = Digest("edit", "", target=clip(path, 1_000), scope=f"cell {clip(cell, 60)}" if cell else "cell")
    digest.outcome = {"insert": "cell inserted", "delete": "cell deleted"}.get(mode, "cell replaced")
    if mode != "delete" and source:
        digest.added = source.count("\n") + 1
        language = "x.md" if argument(event, "cell_type") == "markdown" else "x.py"
        digest.symbols = symbols.defined(language, window(source, 16_000, 4_000), 16)
        digest.names = _new_names(source[:_NAMES], "", digest.symbols)
        digest.hunks = [clip(source, HUNK)]
    return _ended(digest, event)


def _edited(event: ToolEvent, pairs: Sequence[tuple[str, str]], everywhere: bool = False) -> Digest:
    path = argument(event, "file_path", "path") or text(detail_of(event).file_path)
    digest = Digest("edit", "", target=clip(path, 1_000))
    change = _patched(detail_of(event).structured_patch) or _compared(pairs)
    digest.added, digest.removed = len(change.added), len(change.removed)
    digest.lines = ", ".join(change.places[:6])
    if not digest.lines and event.status == "ok":
        digest.lines = _snippet_place(text(event.result)[:2_000])
    _names(digest, path, change)
    digest.excerpt = _difference(change)
    if pairs and pairs[0][0] == "" and len(pairs) == 1 and event.status == "ok" and not digest.removed:
        digest.outcome = "created" if "created" in text(event.result)[:200] else ""
    if everywhere:
        digest.outcome = "every occurrence"
    budget = HUNKS
    for _, new in pairs:
        if new and budget > 200:
            digest.hunks.append(clip(new, min(HUNK, budget)))
            budget -= len(digest.hunks[-1])
    return _ended(digest, event)


def _ended(digest: Digest, event: ToolEvent) -> Digest:
    """What did not happen leaves counts of what was wanted, and no new names."""
    if event.status not in ("ok", "open"):
        digest.outcome, digest.names = "", []
    elif detail_of(event).user_modified is True:
        digest.outcome = "; ".join(p for p in (digest.outcome, "changed by the user before it was accepted") if p)
    return digest


def _patched(patch: Any) -> Change | None:
    """The change as the client's own patch has it (context lines included)."""
    hunks = entries(patch)
    if not hunks:
        return None
    change = Change()
    budget = 6_000
    for hunk in map(mapping, hunks[:200]):
        lines = entries(hunk.get("lines"))[:budget]
        budget -= len(lines)
        place = number(hunk.get("newStart")) or 0
        first = last = 0
        for line in lines:
            if not isinstance(line, str) or not line:
                continue
            mark = line[0]
            if mark == " ":
                if not first:
                    change.context.append(line[1:])
                place += 1
            elif mark == "+":
                change.added.append(line[1:])
                first, last = first or place, place
                place += 1
            elif mark == "-":
                change.removed.append(line[1:])
                first, last = first or place, max(last, place)
        if first and len(change.places) < 6:
            change.places.append(str(first) if last <= first else f"{first}–{last}")
    return change if change.added or change.removed else None


def _compared(pairs: Sequence[tuple[str, str]]) -> Change:
    """Without a patch: what is left of each pair when like lines at both ends are taken off."""
    change = Change()
    for old, new in pairs:
        before, after = window(old).split("\n") if old else [], window(new).split("\n") if new else []
        start = 0
        while start < min(len(before), len(after)) and before[start] == after[start]:
            start += 1
        stop = 0
        while stop < min(len(before), len(after)) - start and before[-1 - stop] == after[-1 - stop]:
            stop += 1
        change.context += after[:start]
        change.removed += before[start : len(before) - stop]
        change.added += after[start : len(after) - stop]
    return change


def _difference(change: Change) -> str:
    """The changed lines with their marks, bounded; what was added first."""
    lines = [f"+ {bare}" for line in change.added[:12] if (bare := line.strip())]
    lines += [f"− {bare}" for line in change.removed[:6] if (bare := line.strip())]
    return clip("\n".join([clip(line, 200) for line in lines]), 900)


def _names(digest: Digest, path: str, change: Change) -> None:
    """Symbols: defined in the changed lines, else what encloses them; names: identifiers that are new."""
    added, removed = "\n".join(change.added)[: _NAMES * 2], "\n".join(change.removed)[: _NAMES * 2]
    found = symbols.defined(path, f"{added}\n{removed}", 12)
    context = "\n".join(change.context[-400:])
    enclosing = symbols.defined(path, context, 200)[-1:] if context else []
    digest.symbols = unique([*enclosing, *found], 12) if enclosing else found
    digest.names = _new_names(added[:_NAMES], f"{removed}\n{context}", digest.symbols)


def _new_names(new: str, old: str, known: Sequence[str]) -> list[str]:
    """Identifiers of the new text that the old does not have; the most specific kinds first."""
    special = _identifiers(new)
    if not special:
        return []
    before = {*known, *_identifiers(old)}
    return [word for word in special if word not in before][:16]


def _is_named(word: str) -> bool:
    return word not in _COMMON and tokens.is_identifier(word)


_identifiers = tokens.Names(r"[A-Za-z_$][\w$]*+", "_$", "a-z0-9$", _is_named)


def _snippet_place(result: str) -> str:
    """Old clients show the changed region with numbers, four lines of context on either side."""
    numbers = _SNIPPET.findall(result)
    if not numbers:
        return ""
    shown: str = numbers[min(3, len(numbers) - 1)]
    return "~" + shown.strip(" →\t")
