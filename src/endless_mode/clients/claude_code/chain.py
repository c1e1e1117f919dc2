"""The chain of entries: which line follows which, and where a branch is left behind or taken up again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from endless_mode.clients.base import Source
from endless_mode.clients.claude_code.branches import find_abandoned
from endless_mode.clients.claude_code.entry import Entry, text_of
from endless_mode.clients.claude_code.state import MAX_ABANDONED, RECENT, State
from endless_mode.model import Branch, Item

#: Last characters of a uuid by which a second copy is known.
_MARK = 12


class Chain:
    """Follows the entries of one transcript; what it must remember is in the reader's state."""

    def __init__(self, source: Source, at: State) -> None:
        self._source = source
        self._at = at
        self._recent = deque(at.recent, RECENT)
        self._seen = set(self._recent)

    def keep(self) -> None:
        """Bring the state up to date."""
        self._at.recent = list(self._recent)

    def follow(self, entry: Entry, uuid: str) -> Branch | None:
        """Follow the parent chain: the leaf, loose beginnings, and the abandoned branch that grows again, if one does."""
        at, parent = self._at, entry.parentUuid
        if self._is_copy(uuid):
            return None
        grown: Branch | None = None
        if isinstance(parent, str) and parent != at.leaf:
            for branch in at.abandoned:
                if parent not in branch.leaves:
                    continue
                if entry.type not in ("user", "assistant"):
                    branch.leaves.append(uuid)
                    return None
                at.abandoned.remove(branch)
                grown = Branch(branch.key, branch.offsets, live=True)
                break
            if entry.type in ("attachment", "system") or entry.isMeta:
                at.detached = parent
        if entry.type == "assistant":
            at.detached = ""
        at.leaf = uuid
        return grown

    def _is_copy(self, uuid: str) -> bool:
        """Whether this is the second copy of a line of late: then the leaf is where it was."""
        mark = uuid[-_MARK:]
        if mark in self._seen:
            return True
        if len(self._recent) == RECENT:
            self._seen.discard(self._recent.popleft())
        self._recent.append(mark)
        self._seen.add(mark)
        return False

    def typed(self, entry: Entry, offset: int) -> Iterator[Item]:
        """A typed entry: does it leave a branch behind?"""
        at, parent = self._at, entry.parentUuid
        root = parent if isinstance(parent, str) and parent != at.leaf else at.detached
        at.detached = ""
        if not root or not at.leaf or any(root in b.leaves for b in at.abandoned):
            return
        branch = find_abandoned(self._source, root, offset, key=f"@{offset}", own=text_of(entry.uuid))
        if branch is not None:
            at.abandoned = [*at.abandoned, branch][-MAX_ABANDONED:]
            yield Branch(branch.key, branch.offsets, live=False)
