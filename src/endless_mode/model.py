"""The neutral things every part speaks of: transcript items, tool events, digests, observations.

A client adapter turns its transcript into :data:`Item` values; everything behind it (store, observers,
bottle, delivery) knows these shapes alone. All texts in them have been through ``privacy.clean``.
Times are milliseconds since the epoch, ``None`` where the transcript gives none. ``offset`` is the byte
offset of the transcript line (of the uncompressed text), ``index`` the place of the item within the line:
the pair is the order of everything.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Role = Literal["user", "assistant"]

#: What a message is. User: ``prompt`` (typed), ``queued`` (typed while the model worked), ``command``
#: (slash command, one line as typed), ``shell`` (``! cmd``), ``answer`` (to the model's question),
#: ``approval`` / ``refusal`` (of a plan or a tool, with the words given), ``plan`` (a plan the client sent as a
#: prompt). Assistant: ``text``, ``plan`` (offered for approval), ``question``.
#: Either: ``interrupt`` and ``private`` are marks without text of anybody.
MessageKind = Literal[
    "prompt",
    "queued",
    "command",
    "shell",
    "answer",
    "approval",
    "refusal",
    "plan",
    "text",
    "question",
    "interrupt",
    "private",
]

#: How a tool use ended. ``open``: no result in the transcript yet. ``background``: started, reports later.
Status = Literal["ok", "failed", "denied", "interrupted", "open", "background"]


class Message(Struct, frozen=True, gc=False):
    """Something a person or the model said. ``key`` is unique in its session and stable over re-reads."""

    key: str
    offset: int
    index: int
    role: Role
    kind: MessageKind
    text: str
    at: int | None = None
    message_id: str = ""


class ToolEvent(Struct, gc=False):
    """One tool use, with its result when it has come.

    ``input`` and ``detail`` are JSON values: the call's arguments, and the client's structured result
    reduced to the keys worth having. ``result`` is what the model saw, images left out. ``words`` are the
    user's own when a use was refused with words. ``agent_id`` names the subagent that made the call
    (then it is no part of the main line).
    """

    tool_use_id: str
    name: str
    offset: int
    index: int
    input: dict[str, Any]
    at: int | None = None
    result: str = ""
    detail: Any = None
    status: Status = "open"
    words: str = ""
    result_offset: int = -1
    ended_at: int | None = None
    agent_id: str = ""
    cwd: str = ""


#: The kinds of work a tool does, whatever the client calls the tool.
DigestKind = Literal[
    "shell",
    "read",
    "edit",
    "write",
    "search",
    "list",
    "fetch",
    "websearch",
    "agent",
    "todo",
    "skill",
    "plan",
    "question",
    "mcp",
    "other",
]


class Todo(Struct, frozen=True, gc=False):
    """One line of a todo list; ``status`` is ``pending``, ``in_progress``, ``completed`` or ``deleted``."""

    text: str
    status: str
    id: str = ""


#: Kinds of user messages that ask for something.
ASKING: tuple[MessageKind, ...] = ("prompt", "queued", "command", "plan")


class Digest(Struct, omit_defaults=True):
    """What is kept of a tool event: bounded, neutral, clean. Observers and the closing part read this.

    Every text is bounded where it is made; the whole stays under about 12 KB, median well under 1 KB.
    """

    kind: DigestKind
    tool: str
    status: Status = "ok"
    #: Path, pattern, URL, query, skill or task description: the one argument that names the use.
    target: str = ""
    #: Whole shell command (bounded to 4,000 characters).
    command: str = ""
    #: Lines read, as ``10–60``.
    lines: str = ""
    #: Where a search looked, or which filter it used.
    scope: str = ""
    exit_code: int | None = None
    #: First meaningful line of the error.
    error: str = ""
    #: What came of it in a few words: ``3 failed, 41 passed``, ``12 matches in 4 files``, ``created, 80 lines``.
    outcome: str = ""
    #: True when the command ran tests, a type check, a linter or a build.
    check: bool = False
    added: int = 0
    removed: int = 0
    #: Names an edit defined or touched, or that a read file defines.
    symbols: list[str] = []
    #: Paths the result brought up, most telling first.
    paths: list[str] = []
    #: Other specific tokens the result brought up (identifiers, hashes, ports, versions, URLs).
    names: list[str] = []
    #: Identifiers that a read file showed, for the working set alone: no line has them.
    seen: list[str] = []
    #: New text of an edit or write, bounded, for the working set.
    hunks: list[str] = []
    #: Bounded head and tail of the output.
    excerpt: str = ""
    #: Whole todo list after the use, for tools that state it, else the items touched.
    todos: list[Todo] = []
    #: True when ``todos`` is the whole list.
    todos_whole: bool = False
    #: Background task or subagent id a later notification will name.
    task_id: str = ""
    #: The user's own words with a refusal, or answers, one per line.
    words: str = ""


ObservationType = Literal["change", "discovery", "command", "decision", "task", "other"]


class Observation(Struct, frozen=True):
    """What an observer has to say of one or several tool events.

    ``title`` is one line and carries what a successor needs to act; the first line of ``narrative`` is its
    outcome and stands behind the title in the bottle; the rest of ``narrative`` is shown on expansion.
    For collapsible observations (``run`` not empty) the title is ``run + " " + subtitle`` and neighbours with the
    same ``run`` may be drawn as one line, their subtitles joined.
    """

    type: ObservationType
    title: str
    subtitle: str = ""
    narrative: str = ""
    facts: list[str] = []
    concepts: list[str] = []
    files_read: list[str] = []
    files_modified: list[str] = []
    run: str = ""


class Boundary(Struct, frozen=True, gc=False):
    """The client compacted here. ``summary`` is what its model wrote (generated, not verbatim)."""

    key: str
    offset: int
    index: int
    trigger: str = ""
    pre_tokens: int | None = None
    at: int | None = None


class Summary(Struct, frozen=True, gc=False):
    """Generated text standing for what was before ``boundary_key``."""

    key: str
    offset: int
    index: int
    text: str
    at: int | None = None


class TaskReport(Struct, frozen=True, gc=False):
    """A background task or subagent reports: completes the tool event with this ``task_id`` or ``tool_use_id``."""

    offset: int
    index: int
    task_id: str
    tool_use_id: str
    status: str
    summary: str
    result: str
    at: int | None = None


class Withdrawn(Struct, frozen=True, gc=False):
    """The message with this key is none after all: taken back, or it stands elsewhere as a line of its own."""

    key: str
    reason: Literal["taken back", "stands elsewhere"]


class Branch(Struct, frozen=True, gc=False):
    """Items of ``start <= offset < end`` whose line is among ``offsets`` left the main line (``live`` False) or came back."""

    key: str
    offsets: list[int]
    live: bool


class Proof(Struct, frozen=True, gc=False):
    """A hook of ours put a handoff into the session at this place, by the transcript's own record."""

    offset: int
    index: int
    event: str
    marker: str
    at: int | None = None


class Fact(Struct, frozen=True, gc=False):
    """Something about the session as a whole: ``cwd``, ``version``, ``branch``, ``title``, ``context_tokens``, ``model``."""

    name: str
    value: str


Item = Message | ToolEvent | Boundary | Summary | TaskReport | Withdrawn | Branch | Proof | Fact
