"""What lines say of the session as a whole: its directory, branch, title, the client's version, the context's size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from endless_mode.clients.claude_code.entry import Entry, count_of
from endless_mode.clients.claude_code.state import State, text_digest
from endless_mode.model import Fact, Item
from endless_mode.privacy import clean


class Facts:
    """Tells each fact once, when it is new."""

    def __init__(self, at: State) -> None:
        self._at = at
        self._told: dict[str, str] = {}
        self._stated: tuple[Any, ...] = ()

    def stated(self, entry: Entry) -> Iterator[Item]:
        """Directory, version and branch as the line has them."""
        stated = (entry.cwd, entry.version, entry.gitBranch)
        if stated == self._stated:
            return
        self._stated = stated
        for name, value in (("cwd", entry.cwd), ("version", entry.version), ("branch", entry.gitBranch)):
            if isinstance(value, str) and value:
                yield from self._fact(name, value)

    def title(self, entry: Entry) -> Iterator[Item]:
        """The session's title, by whoever gave it."""
        for value in (entry.customTitle, entry.aiTitle, entry.summary):
            if isinstance(value, str) and value.strip():
                yield from self._fact("title", value)
                return

    def _fact(self, name: str, value: str) -> Iterator[Item]:
        if self._told.get(name) == value:
            return
        self._told[name] = value
        cleaned = clean(value)
        kept = text_digest(cleaned) if name == "title" else cleaned
        if self._at.facts.get(name) != kept:
            self._at.facts[name] = kept
            yield Fact(name, cleaned)

    def usage(self, entry: Entry) -> None:
        """Tokens in the context, by what an answer states."""
        body = entry.message
        usage = body.usage if body else None
        if usage is None:
            return
        parts = (
            usage.input_tokens,
            usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens,
            usage.output_tokens,
        )
        total = sum([n for n in map(count_of, parts) if n])
        if total > 0:
            self._at.context_tokens = total
