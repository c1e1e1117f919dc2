"""Which entries hold nothing private: found out for many at once, because most hold nothing.

Looked at is what makes up nearly all of a transcript: what the model said, its calls, and their results. Only strings
exactly as they stand in an entry are cleared; what is put together from several, or cut out of one, can read as something
that none of them is, and is cleaned like anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from endless_mode.clients.claude_code.entry import Entry
from endless_mode.privacy import clean
from endless_mode.privacy.cleaning import gather
from endless_mode.privacy.screening import suspects


class Screen:
    """Knows of the entry that is being read whether cleaning its strings would change any."""

    def __init__(self) -> None:
        #: Whether the texts, names, inputs and results of the present entry's blocks, its ``toolUseResult`` and its
        #: ``cwd`` are known to be clean.
        self.cleared = False

    def clean(self, text: str) -> str:
        """The text of one of the present entry's blocks, as it stands there, cleaned."""
        return text if self.cleared else clean(text)


def cleared(entries: Sequence[Entry]) -> list[bool]:
    """For each entry whether it is known that cleaning what is named in :class:`Screen` would change nothing."""
    verdicts = [False] * len(entries)
    texts: list[bytes] = []
    places: list[int] = []
    for place, entry in enumerate(entries):
        strings: list[str] = []
        if entry.message is None or not _gather(entry, strings):
            continue
        try:
            texts.append("\n".join(strings).encode())
        except UnicodeEncodeError:
            continue
        places.append(place)
    if texts:
        found = suspects(texts)
        for n, place in enumerate(places):
            verdicts[place] = n not in found
    return verdicts


def _gather(entry: Entry, strings: list[str]) -> bool:
    """Add what is named in :class:`Screen`; False when the strings alone do not tell whether they are clean."""
    content = entry.message.content if entry.message else None
    deeper: list[Any] = [entry.cwd, entry.toolUseResult]
    if isinstance(content, str):
        strings.append(content)
    for block in content if isinstance(content, list) else ():
        for value in (block.text, block.name, block.content, block.input):
            if type(value) is str:
                strings.append(value)
            elif value:
                deeper.append(value)
    return gather(deeper, strings)
