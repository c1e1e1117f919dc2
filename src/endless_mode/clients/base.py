"""What a client adapter is: everything the core needs to know of one coding client.

An adapter finds transcripts, reads them into neutral items, and says how its hooks and its answers look.
The core never looks into a client's own formats. Shaped to fit clients whose session file is appended to,
whose history may be re-stated, and whose injection point is an answer to a hook.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from msgspec import Struct

from endless_mode.model import Item


class Line(Struct, frozen=True, gc=False):
    """A complete line (or a complete object at the end of the file), where it begins and where the next one does."""

    offset: int
    data: bytes
    end: int


class Source(Protocol):
    """Re-opens the bytes that are being read, for the rare look back."""

    def open(self, offset: int = 0) -> BinaryIO: ...


class Counts(Struct):
    """What a reader met, beside the items: for reports, never fatal."""

    lines: int = 0
    objects: int = 0
    skipped: int = 0
    unknown: dict[str, int] = {}


class Reader(Protocol):
    """Reads one session's transcript, line after line, in order.

    ``feed`` may be called any number of times; a reader made from ``state()`` of another goes on where that
    one stopped, and the cutting of the lines into calls changes nothing.
    """

    counts: Counts

    def feed(self, lines: Iterable[Line]) -> Iterator[Item]: ...

    def state(self) -> bytes: ...


class Known(Protocol):
    """What the store already holds of this session, asked for when a line might be a second copy."""

    def has_message(self, key: str, before: int) -> bool: ...


class Adapter(Protocol):
    """One coding client."""

    #: Name in URLs, rows and settings, e.g. ``claude-code``.
    name: str

    def reader(self, source: Source, state: bytes | None, known: Known, *, agent: str = "") -> Reader:
        """A reader that begins at the start (``state`` None) or goes on; ``agent`` names the subagent whose file it is."""
        ...

    def session_id(self, path: Path, source: Source) -> str:
        """The content session id of a transcript file.

        Raises:
            NotATranscript: the file is not one of this client's transcripts.
        """
        ...

    def find_transcript(self, session_id: str, config_dir: Path) -> Path | None:
        """The transcript of a session below the client's configuration directory, newest first."""
        ...

    def subagent_files(self, transcript: Path) -> list[tuple[str, Path]]:
        """Files of the session's subagents, ``(agent id, path)``, without the client's own side calls."""
        ...
