"""Rewound branches: found by the parent chain, only when a typed entry does not hang on the leaf.

A rewind shows as a typed entry whose parent is an earlier entry that already has a typed entry below it. The
line that is left behind is everything below that older typed entry. A parent without such a child is no rewind:
two terminals on one session, or a tool use dropped after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable

from endless_mode.clients.base import Source
from endless_mode.clients.claude_code.entry import Link, decode_link, iter_blocks
from endless_mode.clients.claude_code.state import Abandoned
from endless_mode.mentions import mentions

#: Entries a typed prompt may hang on without anybody having said anything in between.
_QUIET = ("attachment", "system", "progress")


def find_abandoned(source: Source, parent: str, before: int, key: str, own: str) -> Abandoned | None:
    """The branch below ``parent`` that a typed entry at byte ``before`` leaves behind, if there is one.

    ``own`` is the typed entry's uuid: the second copy of a line leaves nothing behind.
    """
    below: dict[str, str] = {parent: "quiet"}
    offsets: list[int] = []
    has_child: set[str] = set()
    seen_parent = False
    for offset, link in _links(source, before, parent):
        if not isinstance(link.uuid, str) or link.isSidechain:
            continue
        if link.uuid == own:
            return None
        if link.uuid == parent:
            seen_parent = True
            continue
        above = _above(link)
        if not seen_parent or above not in below or link.uuid in below:
            continue
        state = _place(link, below[above])
        if state == "kept":
            continue
        below[link.uuid] = state
        has_child.add(above)
        if state == "left":
            offsets.append(offset)
    left = [uuid for uuid, state in below.items() if state == "left"]
    if not left:
        return None
    return Abandoned(key=key, offsets=offsets, leaves=[u for u in left if u not in has_child])


def _place(link: Link, above: str) -> str:
    """``left`` = on the branch left behind, ``quiet`` = between parent and prompt, ``kept`` = neither."""
    if above == "left" or _typed(link):
        return "left"
    quiet = link.type in _QUIET or (link.type == "user" and bool(link.isMeta))
    return "quiet" if quiet else "kept"


def _typed(link: Link) -> bool:
    return link.type == "user" and not link.isMeta and next(iter_blocks(link.message, "tool_result"), None) is None


def _above(link: Link) -> str:
    for candidate in (link.parentUuid, link.logicalParentUuid):
        if isinstance(candidate, str):
            return candidate
    segment = link.compactMetadata.preservedSegment if link.compactMetadata else None
    return segment.tailUuid if segment and isinstance(segment.tailUuid, str) else ""


def _links(source: Source, before: int, parent: str) -> Iterable[tuple[int, Link]]:
    """The links from the first line on that names ``parent``: no line above it can be the parent or below it."""
    with source.open(0) as stream:
        offset, _ = next(mentions(stream, parent.encode("utf-8", "surrogatepass")), (before, b""))
    with source.open(offset) as stream:
        for data in stream:
            if offset >= before:
                return
            for link in decode_link(data):
                yield offset, link
            offset += len(data)
