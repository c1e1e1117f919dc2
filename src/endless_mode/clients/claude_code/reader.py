"""Reads a Claude Code transcript into neutral items.

A state machine over complete lines: what it must remember lies in :class:`State`, so reading may stop anywhere and go
on in another process with the same outcome. File order is the spine; the parent chain serves only to find rewound
branches (``branches.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from endless_mode.clients.base import Counts, Known, Line, Source
from endless_mode.clients.claude_code import wording
from endless_mode.clients.claude_code.calls import clean_event
from endless_mode.clients.claude_code.chain import Chain
from endless_mode.clients.claude_code.entry import (
    Block,
    Entry,
    count_of,
    decode,
    entries_at,
    iter_blocks,
    key_of,
    ms_of,
    text_of,
)
from endless_mode.clients.claude_code.facts import Facts
from endless_mode.clients.claude_code.queued import Queue
from endless_mode.clients.claude_code.reports import task_reports
from endless_mode.clients.claude_code.screen import Screen, cleared
from endless_mode.clients.claude_code.state import (
    MAX_HIDDEN,
    State,
    text_digest,
)
from endless_mode.clients.claude_code.tool_uses import ToolUses
from endless_mode.model import (
    Boundary,
    Item,
    Message,
    MessageKind,
    Proof,
    Summary,
    ToolEvent,
)
from endless_mode.privacy import clean, is_wholly_private

#: First line of every handoff; also that of another program's, so the marker below decides.
HANDOFF_HEAD = "# [claude-mem] Endless Mode"
#: A handoff as a whole, alone or as the context in a hook's JSON. What merely holds one, as a hook that shows a prompt or
#: a log does, is none.
_HANDED = re.compile(
    rf'(?s)\A\s*(?:\{{.{{0,200}}?"additionalContext"\s*:\s*")?{re.escape(HANDOFF_HEAD)}.*'
    r'\(Endless Mode handoff ([0-9a-f]{8})\)(?:\\n)*\s*(?:"\s*\}.{0,200})?\Z'
)

_SKIPPED = frozenset(
    "progress file-history-snapshot last-prompt mode permission-mode api-request api-request-blob "
    "api-request-shape atis-latch cost-state tools-used".split()
)
_KNOWN = _SKIPPED | {
    *("user", "assistant", "system", "attachment", "queue-operation", "summary", "ai-title", "custom-title")
}
#: Bytes of transcript that are decoded and screened in one go; the processor's cache holds them.
_GROUP = 1 << 17
_state = msgspec.json.Decoder(State)


class ClaudeCodeReader:
    """See :class:`endless_mode.clients.base.Reader`."""

    def __init__(
        self,
        source: Source,
        state: bytes | None,
        known: Known,
        agent: str = "",
        *,
        flat: bool = False,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self.counts = Counts()
        self._source = source
        self._known = known
        self._agent = agent
        self._flat = flat
        self._at = _state.decode(state) if state else State()
        self._facts = Facts(self._at)
        self._chain = Chain(source, self._at)
        self._screen = Screen()
        self._tools = ToolUses(source, self._at, self._screen, hidden)
        self._queue = Queue(self._at)
        self._handlers: dict[str, Callable[[Entry, int], Iterator[Item]]] = {
            "user": self._user,
            "assistant": self._assistant,
            "system": self._system,
            "attachment": self._attachment,
            "queue-operation": self._queue.operation,
            "summary": self._title,
            "ai-title": self._title,
            "custom-title": self._title,
        }

    def state(self) -> bytes:
        """The state after the last line fed, as JSON."""
        self._chain.keep()
        return msgspec.json.encode(self._at)

    def feed(self, lines: Iterable[Line]) -> Iterator[Item]:
        """The items of the next lines, in order."""
        for group in _groups(lines):
            entries = self._decoded(group)
            for (offset, entry), verdict in zip(entries, cleared([e for _, e in entries]), strict=True):
                self._screen.cleared = verdict
                yield from self._entry(entry, offset)
        self._screen.cleared = False

    def _decoded(self, lines: list[Line]) -> list[tuple[int, Entry]]:
        counts = self.counts
        found: list[tuple[int, Entry]] = []
        for line in lines:
            entries = decode(line.data, line.offset)
            if entries is not None:
                counts.lines += 1
                counts.objects += len(entries)
                found += entries
            elif line.data.strip():
                counts.lines += 1
                counts.skipped += 1
        return found

    def _entry(self, entry: Entry, offset: int) -> Iterator[Item]:
        kind = entry.type if isinstance(entry.type, str) else ""
        if self._agent or (entry.isSidechain and not self._flat):
            yield from self._tools.subagent(entry, offset, self._agent or text_of(entry.agentId) or "sidechain")
            return
        if kind == "progress":
            if entry.data is not None and entry.data.type == "agent_progress":
                yield from self._tools.progress(entry, offset)
        elif kind not in _SKIPPED:
            handler = self._handlers.get(kind)
            if handler is None:
                name = kind[:40]
                self.counts.unknown[name] = self.counts.unknown.get(name, 0) + 1
                return
            yield from self._facts.stated(entry)
            yield from handler(entry, offset)
        if isinstance(entry.uuid, str):
            grown = self._chain.follow(entry, entry.uuid)
            if grown is not None:
                yield grown

    # -- user lines ----------------------------------------------------------------------------------------

    def _user(self, entry: Entry, offset: int) -> Iterator[Item]:
        content = entry.message.content if entry.message else None
        if entry.isCompactSummary:
            text = clean("\n".join(wording.texts(content)))
            yield Summary(key_of(entry, offset, 0), offset, 0, text, ms_of(entry.timestamp))
            return
        if isinstance(content, list) and any(block.type == "tool_result" for block in content):
            for index, block in iter_blocks(entry.message, "tool_result"):
                yield from self._tools.result(entry, block, offset, index)
            return
        if entry.isMeta:
            return
        if entry.origin and entry.origin.kind not in (None, "human"):
            yield from task_reports(self._at, wording.texts(content), entry, offset)
            return
        yield from self._user_text(entry, content, offset)

    def _user_text(self, entry: Entry, content: Any, offset: int) -> Iterator[Item]:
        first = next(iter(wording.texts(content)), "")
        command = wording.slash_command(first)
        shell = wording.bash_input(first)
        if command is not None:
            yield from self._chain.typed(entry, offset)
            yield from self._command(entry, command, offset)
        elif shell is not None:
            yield from self._chain.typed(entry, offset)
            self._at.bash = offset
            yield from self._said(entry, offset, "shell", f"! {shell}", own=shell)
        elif (printed := wording.bash_output(first)) is not None:
            yield from self._bash_result(entry, printed, offset)
        elif first.lstrip().startswith(wording.INTERRUPTED):
            if not self._at.private:
                yield Message(key_of(entry, offset, 0), offset, 0, "user", "interrupt", "", ms_of(entry.timestamp))
        elif (text := wording.prompt_text(content)) is not None:
            yield from self._chain.typed(entry, offset)
            own = wording.typed_text(content)
            yield from self._said(entry, offset, "plan" if entry.planContent else "prompt", text, own=own)
        else:
            yield from task_reports(self._at, wording.texts(content), entry, offset)

    def _said(self, entry: Entry, offset: int, kind: MessageKind, text: str, own: str | None = None) -> Iterator[Item]:
        """A typed message, unless it is a second copy; settles the queue entry it came from.

        ``own`` is what the user typed of ``text`` where that has marks in it: it decides what is wholly private.
        """
        key, at = key_of(entry, offset, 0), ms_of(entry.timestamp)
        if self._known.has_message(key, offset):
            return
        yield from self._queue.leaves(text)
        cleaned = clean(text)
        if cleaned is not text and is_wholly_private(text if own is None else own):
            self._at.private = True
            if isinstance(entry.promptId, str):
                self._at.hidden = [*self._at.hidden, text_digest(entry.promptId)][-MAX_HIDDEN:]
            yield Message(key, offset, 0, "user", "private", "", at)
        elif cleaned.strip():
            # What is typed while the model works ends no turn.
            self._at.private = self._at.private and kind == "queued"
            yield Message(key, offset, 0, "user", kind, cleaned, at)

    def _command(self, entry: Entry, command: tuple[str, str], offset: int) -> Iterator[Item]:
        name, args = command
        text = f"{name} {args}" if args.strip() else name
        if wording.is_steering(name):
            yield from self._queue.leaves(text)
            return
        yield from self._said(entry, offset, "command", text)

    def _bash_result(self, entry: Entry, printed: str, offset: int) -> Iterator[Item]:
        start, self._at.bash = self._at.bash, -1
        if self._at.private or start < 0:
            return
        command = self._bash_command(start)
        event = ToolEvent(
            tool_use_id=f"!{key_of(entry, offset, 0)}",
            name="!",
            offset=offset,
            index=0,
            input={"command": command},
            at=ms_of(entry.timestamp),
            result=printed,
            status="ok",
            result_offset=offset,
            ended_at=ms_of(entry.timestamp),
            cwd=text_of(entry.cwd),
        )
        yield clean_event(event)

    def _bash_command(self, offset: int) -> str:
        for entry in entries_at(self._source, offset):
            content = entry.message.content if entry.message else None
            if (typed := wording.bash_input(next(iter(wording.texts(content)), ""))) is not None:
                return typed
        return ""

    # -- attachments ---------------------------------------------------------------------------------------

    def _attachment(self, entry: Entry, offset: int) -> Iterator[Item]:
        att = entry.attachment
        if att is None:
            return
        if att.type == "queued_command":
            human = att.origin is None or att.origin.kind in (None, "human")
            prompt = wording.joined_text(att.prompt)
            if att.commandMode in (None, "prompt") and human and not prompt.lstrip().startswith(wording.ENVELOPES):
                yield from self._said(entry, offset, "queued", prompt)
            else:
                yield from task_reports(self._at, [prompt], entry, offset)
        elif att.hookEvent in ("SessionStart", "UserPromptSubmit"):
            yield from self._proof(entry, offset)

    def _proof(self, entry: Entry, offset: int) -> Iterator[Item]:
        att = entry.attachment
        assert att is not None
        for text in (att.content, att.stdout, *(att.content if isinstance(att.content, list) else ())):
            found = _HANDED.search(text) if isinstance(text, str) and HANDOFF_HEAD in text else None
            if found:
                yield Proof(offset, 0, str(att.hookEvent), found[1], ms_of(entry.timestamp))
                return

    # -- assistant lines -----------------------------------------------------------------------------------

    def _assistant(self, entry: Entry, offset: int) -> Iterator[Item]:
        body = entry.message
        if body is None or body.model == "<synthetic>":
            return
        self._facts.usage(entry)
        if self._at.private:
            return
        at, message_id = ms_of(entry.timestamp), text_of(body.id)
        blocks = body.content if isinstance(body.content, list) else [Block(type="text", text=body.content)]
        for index, block in enumerate(blocks):
            if block.type == "text" and isinstance(block.text, str):
                text = self._screen.clean(block.text)
                if text.strip():
                    key = key_of(entry, offset, index)
                    yield Message(key, offset, index, "assistant", "text", text, at, message_id)
            elif block.type == "tool_use" and isinstance(block.id, str):
                yield from self._tools.call(entry, block, offset, index)

    # -- the rest ------------------------------------------------------------------------------------------

    def _system(self, entry: Entry, offset: int) -> Iterator[Item]:
        if entry.subtype == "compact_boundary":
            meta = entry.compactMetadata
            yield Boundary(
                key_of(entry, offset, 0),
                offset,
                0,
                text_of(meta.trigger) if meta else "",
                count_of(meta.preTokens) if meta else None,
                ms_of(entry.timestamp),
            )

    def _title(self, entry: Entry, _: int) -> Iterator[Item]:
        if not self._at.private:
            yield from self._facts.title(entry)

    @property
    def context_tokens(self) -> int:
        """Tokens in the context by the last main-line usage; 0 when no answer stated any."""
        return self._at.context_tokens

    @property
    def cwd(self) -> str:
        """The working directory by the last line that stated one."""
        return self._at.facts.get("cwd", "")


def _groups(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines in groups that are decoded and screened together."""
    group: list[Line] = []
    size = 0
    for line in lines:
        group.append(line)
        size += len(line.data)
        if size >= _GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def is_known_type(kind: Any) -> bool:
    """Whether an entry of this type is one of the client's."""
    return isinstance(kind, str) and kind in _KNOWN
