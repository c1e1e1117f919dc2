"""Files that were read."""

from __future__ import annotations

import re

from endless_mode.clients.claude_code.digest import symbols, tokens
from endless_mode.clients.claude_code.digest.texts import (
    argument,
    clip,
    count,
    detail_of,
    file_of,
    mapping,
    number,
    result_of,
    text,
    wordset,
)
from endless_mode.model import Digest, ToolEvent

#: How many identifiers of a read text are kept, and in how many of its characters they are sought.
SEEN, _SEEN_IN = 160, 16_000
_NUMBER = re.compile(r"[ ]*(\d+)[→\t]")
_IMAGES = wordset("png jpg jpeg gif webp bmp ico")


def read(event: ToolEvent) -> Digest:
    """A Read: which lines of how many, and what they define."""
    path = argument(event, "file_path", "path", "notebook_path")
    digest = Digest("read", "", target=clip(path, 1_000))
    detail = detail_of(event)
    file = file_of(detail)
    kind = text(detail.type) or text(file.type)
    extension = path.rpartition(".")[2].lower()
    if event.status != "ok":
        digest.lines = _asked(event)
        return digest
    if kind == "image" or extension in _IMAGES:
        digest.outcome = _image(file.dimensions)
        return digest
    if kind in ("pdf", "parts") or extension == "pdf":
        pages = argument(event, "pages") or text(file.count)
        digest.outcome = f"PDF, pages {pages}" if pages else "PDF"
        return digest
    if kind == "notebook" or extension == "ipynb":
        digest.outcome = "notebook"
        return digest
    if kind == "file_unchanged":
        digest.outcome = "unchanged since it was read"
        return digest
    body = result_of(event)
    start, end = _span(body, number(file.start_line), number(file.num_lines))
    total = number(file.total_lines)
    if start and end:
        whole = total is not None and start == 1 and end >= total
        digest.lines = f"{start}–{end}" if end != start else str(start)
        digest.outcome = "whole file" if whole else (f"of {total} lines" if total else "")
    elif not body.strip() or "file exists but" in body[:200]:
        digest.outcome = "empty file"
    else:
        digest.outcome = count(body.count("\n") + 1, "line")
    digest.symbols = symbols.defined(path, body)
    digest.seen = tokens.identifiers(body[:_SEEN_IN], digest.symbols, SEEN)
    if not digest.symbols and symbols.known_source(path):
        digest.names = digest.seen[:8]
    return digest


def _span(body: str, start: int | None, amount: int | None) -> tuple[int, int]:
    """First and last line number: from the structured result, else from the numbers in the text."""
    if start and amount:
        return start, start + amount - 1
    first = _NUMBER.match(body)
    if not first:
        return 0, 0
    for line in reversed(body[-4_000:].split("\n")):
        if last := _NUMBER.match(line):
            return int(first[1][:9]), int(last[1][:9])
    return int(first[1][:9]), int(first[1][:9])


def _asked(event: ToolEvent) -> str:
    arguments = mapping(event.input)
    offset, limit = number(arguments.get("offset")), number(arguments.get("limit"))
    if offset is None and limit is None:
        return ""
    return f"{offset or 1}–{(offset or 1) + limit - 1}" if limit else f"{offset}–"


def _image(dimensions: object) -> str:
    size = mapping(dimensions)
    width, height = number(size.get("originalWidth")), number(size.get("originalHeight"))
    return f"image, {width}×{height}" if width and height else "image"
