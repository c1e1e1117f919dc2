"""A session as claude-mem has it. All texts are clean; times are milliseconds since the epoch, ``None`` if unknown."""

from __future__ import annotations

from msgspec import Struct

from endless_mode.claude_mem.values import PROMPT_UNITS
from endless_mode.model import MessageKind

#: What a bottle says of this source.
CLAUDE_MEM = "from claude-mem's database; entirely private prompts and repeated ones are not in it"


class MemPrompt(Struct, frozen=True):
    """A stored prompt. Of a ``truncated`` one 3,999 UTF-16 units survive, and a ``…`` that is not the user's.

    A ``private`` one was nothing but private text; its ``text`` is empty. A ``typed`` one is not claude-mem's but comes
    from the client's record of what was typed; of it ``kept`` characters survive when it is ``truncated``.
    """

    number: int | None
    text: str
    at: int | None = None
    truncated: bool = False
    private: bool = False
    typed: bool = False
    kind: MessageKind | None = None
    kept: int = PROMPT_UNITS


class MemObservation(Struct, frozen=True):
    """What claude-mem's observer noted. ``number`` is that of the prompt it came after, as far as claude-mem knew."""

    id: int
    type: str = ""
    title: str = ""
    subtitle: str = ""
    narrative: str = ""
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    number: int | None = None
    at: int | None = None
    agent: str = ""


class MemSummary(Struct, frozen=True):
    """A summary by claude-mem's model of the work for one prompt: generated, nobody's words."""

    id: int
    request: str = ""
    investigated: str = ""
    learned: str = ""
    completed: str = ""
    next_steps: str = ""
    notes: str = ""
    number: int | None = None
    at: int | None = None


class MemHead(Struct, frozen=True):
    """A session in a list."""

    content_session_id: str
    platform: str
    project: str
    title: str
    started: int | None
    first_prompt: str


class MemSession(Struct, frozen=True):
    """A session with everything claude-mem has of it, each list in order.

    ``project`` is a name (the base of the working tree), which is all that is stored; ``problems`` says in plain words
    what of the session could not be read. ``opens_private``: it began with private text that no prompt shows.
    ``sources`` says where all this is from, one sentence each.
    """

    content_session_id: str
    platform: str
    project: str
    title: str = ""
    started: int | None = None
    prompts: tuple[MemPrompt, ...] = ()
    observations: tuple[MemObservation, ...] = ()
    summaries: tuple[MemSummary, ...] = ()
    problems: tuple[str, ...] = ()
    opens_private: bool = False
    sources: tuple[str, ...] = (CLAUDE_MEM,)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.prompts or self.observations or self.summaries)
