"""What a reader must remember between two looks at a growing transcript. No text of anybody is in it."""

from __future__ import annotations

import hashlib

from msgspec import Struct, field


class Queued(Struct, gc=False):
    """A queue entry: a typed text (``key`` of its message) or something else (``key`` empty)."""

    key: str = ""
    digest: str = ""
    private: bool = False


class Abandoned(Struct):
    """A rewound branch: the lines it holds and the entries it could grow again from."""

    key: str
    offsets: list[int]
    leaves: list[str]


class OpenCall(Struct, gc=False):
    """A tool use without a result: where its line stands, to read its input again."""

    offset: int
    index: int


class State(Struct):
    """Serialised with the cursor, in the same transaction."""

    leaf: str = ""
    #: Parent of the first entry of a chain that did not hang on the leaf, until an assistant entry follows.
    detached: str = ""
    private: bool = False
    #: Wholly private prompts, by digests of their ids: what subagents did for them stays out too.
    hidden: list[str] = field(default_factory=list)
    queue: list[Queued] = field(default_factory=list)
    #: Queue entries that were taken out and may yet stand in a line of their own.
    awaited: list[Queued] = field(default_factory=list)
    open: dict[str, OpenCall] = field(default_factory=dict)
    abandoned: list[Abandoned] = field(default_factory=list)
    #: Offset of the line of the last ``!`` command whose output has not come.
    bash: int = -1
    #: Digest of the last plan in words, and the key of its message while it is only a draft in a file.
    plan_digest: str = ""
    plan_draft: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    context_tokens: int = 0
    #: Ends of the newest uuids: lines are sometimes written twice, close together.
    recent: list[str] = field(default_factory=list)


#: How many answered-elsewhere queue entries, open calls and abandoned branches are kept in mind.
MAX_AWAITED = 32
MAX_HIDDEN = 4096
MAX_OPEN = 512
MAX_ABANDONED = 32
RECENT = 256


def text_digest(text: str) -> str:
    """A short name for a text, to find it again without keeping it."""
    return hashlib.blake2b(text.strip().encode("utf-8", "replace"), digest_size=9).hexdigest()
