"""An independent reading of a transcript: who said what, in which order. Shares no code with the package."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DECODER = json.JSONDecoder(strict=False)
ENVELOPES = (
    '{"task_id"', "<agent-notification>", "<task-notification>", "<teammate-message", "<local-command-stdout>",
    "<local-command-stderr>", "<local-command-caveat>", "<command-name>", "<command-message>", "<bash-input>",
    "<bash-stdout>", "<bash-stderr>", "<context_guidance>", "[Request interrupted by user",
    "Caveat: The messages below", "This session is being continued from a previous conversation",
)  # fmt: skip
ONE_NOTE = r"<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics)>(?:(?!</\{}>).)*</\{}>"
NOTES = re.compile(r"\s*(?:" + ONE_NOTE.format(1, 1) + r"\s*)+", re.S)
#: Built-in commands met in the transcripts here that only steer the client.
STEERING = {
    "/add-dir", "/agents", "/clear", "/compact", "/config", "/context", "/cost", "/doctor", "/exit", "/export", "/help",
    "/hooks", "/ide", "/login", "/logout", "/mcp", "/memory", "/model", "/permissions", "/plugin", "/quit", "/rename",
    "/resume", "/rewind", "/skills", "/status", "/statusline", "/tasks", "/theme", "/todos", "/usage", "/vim",
}  # fmt: skip
REFUSED = "The user doesn't want to proceed with this tool use."
SAID = "the user said:\n"
DISMISSED = "The user wants to clarify these questions."


@dataclass
class Want:
    """One message that must stand in the bottle. ``parts`` must occur in it when ``text`` is not given."""

    role: str
    kind: str
    text: str | None = None
    parts: list[str] = field(default_factory=list)
    place: tuple[int, int] = (0, 0)
    uuid: str = ""
    typed: bool = False


@dataclass
class Reading:
    """What the file says: the wanted messages in order, prompts taken back, and what was left out."""

    wants: list[Want]
    taken_back: list[str]
    rewound: list[Want]
    steering: int
    boundaries: int


def read_bytes(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()


def objects(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """(running number, object) of everything that can be read."""
    n = 0
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        at, line = 0, line.strip()
        while at < len(line):
            try:
                value, at = DECODER.raw_decode(line, at)
            except ValueError:
                break
            if isinstance(value, dict):
                yield n, value
                n += 1
            while at < len(line) and line[at].isspace():
                at += 1


def texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [b["text"] for b in blocks(content, "text") if isinstance(b.get("text"), str)]


def blocks(content: Any, kind: str) -> list[dict[str, Any]]:
    return [b for b in content if isinstance(b, dict) and b.get("type") == kind] if isinstance(content, list) else []


def human(holder: dict[str, Any]) -> bool:
    return (holder.get("origin") or {}).get("kind") in (None, "human")


def prompt_of(content: Any) -> str | None:
    """A typed prompt as one text without IDE notes, ``None`` when nobody typed it."""
    own = [t for t in texts(content) if t.strip() and not NOTES.fullmatch(t)]
    images = blocks(content, "image") + blocks(content, "document")
    if not own and (not images or texts(content)):
        return None
    if own and own[0].lstrip().startswith(ENVELOPES):
        return None
    if isinstance(content, str):
        return content
    parts = []
    for block in content:
        if block.get("type") == "text" and block["text"] in own:
            parts.append(block["text"])
        elif block.get("type") == "image":
            parts.append("[image]")
        elif block.get("type") == "document":
            parts.append(f"[document: {block['title']}]" if block.get("title") else "[document]")
    return "\n".join(parts)


def command_of(text: str) -> str | None:
    """A slash command as one line as typed."""
    if not text.lstrip().startswith(("<command-name>", "<command-message>")):
        return None
    name = re.search(r"<command-name>\s*/?(.*?)\s*</command-name>", text, re.S)
    args = re.search(r"<command-args>(.*?)</command-args>", text, re.S)
    if name is None:
        return None
    return f"/{name[1]} {args[1]}" if args and args[1].strip() else f"/{name[1]}"


class Reader:
    """Goes through the objects once; rewound branches and queued second copies are settled at the end."""

    def __init__(self, data: bytes, agent: bool = False) -> None:
        self.agent = agent
        self.wants: list[Want] = []
        self.queued: list[Want] = []
        self.queue: list[Want | None] = []
        self.lines: list[Want] = []
        self.taken: list[Want] = []
        self.calls: dict[str, dict[str, Any]] = {}
        self.entries: list[tuple[int, dict[str, Any]]] = []
        self.steering = self.boundaries = 0
        seen: set[str] = set()
        for n, entry in objects(data):
            if entry.get("isSidechain") and not agent:
                continue
            uuid = entry.get("uuid")
            if uuid and uuid in seen:
                continue
            if uuid:
                seen.add(uuid)
                self.entries.append((n, entry))
            self.take(n, entry)

    def take(self, n: int, entry: dict[str, Any]) -> None:
        kind, uuid = entry.get("type"), entry.get("uuid") or ""
        if kind == "user":
            self.user(n, entry, uuid)
        elif kind == "assistant":
            self.assistant(n, entry, uuid)
        elif kind == "attachment":
            att = entry["attachment"]
            prompt = "\n".join(texts(att.get("prompt")))
            typed = att.get("type") == "queued_command" and att.get("commandMode", "prompt") == "prompt" and human(att)
            if typed and not prompt.lstrip().startswith(ENVELOPES):
                self.say(Want("user", "queued", prompt, place=(n, 0), uuid=uuid), line=True)
        elif kind == "queue-operation":
            self.operate(n, entry)
        elif kind == "system" and entry.get("subtype") == "compact_boundary":
            self.boundaries += 1

    def say(self, want: Want, line: bool = False) -> None:
        self.wants.append(want)
        if line:
            self.lines.append(want)

    def user(self, n: int, entry: dict[str, Any], uuid: str) -> None:
        content = (entry.get("message") or {}).get("content")
        if entry.get("isCompactSummary"):
            return
        results = blocks(content, "tool_result")
        for i, result in enumerate(results):
            self.result(n, i, entry, result, uuid)
        if results or entry.get("isMeta") or not human(entry):
            return
        first = (texts(content) or [""])[0]
        command, shell = command_of(first), re.match(r"\s*<bash-input>(.*?)</bash-input>", first, re.S)
        if command is not None:
            if command.split()[0].lower() in STEERING:
                self.steering += 1
                self.lines.append(Want("user", "steering", command, place=(n, 0)))
            else:
                self.say(Want("user", "command", command, place=(n, 0), uuid=uuid, typed=True), line=True)
        elif shell:
            self.say(Want("user", "shell", f"! {shell[1]}", place=(n, 0), uuid=uuid, typed=True), line=True)
        elif (prompt := prompt_of(content)) is not None:
            kind = "plan" if entry.get("planContent") else "prompt"
            self.say(Want("user", kind, prompt, place=(n, 0), uuid=uuid, typed=True), line=True)

    def assistant(self, n: int, entry: dict[str, Any], uuid: str) -> None:
        message = entry.get("message") or {}
        if message.get("model") == "<synthetic>":
            return
        content = message.get("content")
        content = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        for i, block in enumerate(content):
            if block.get("type") == "text" and block["text"].strip():
                self.say(Want("assistant", "text", block["text"], place=(n, i), uuid=uuid))
            elif block.get("type") == "tool_use" and block["id"] not in self.calls:
                self.calls[block["id"]] = block
                asked = block["input"].get("questions") or []
                if block["name"] == "ExitPlanMode" and (block["input"].get("plan") or "").strip():
                    self.say(Want("assistant", "plan", block["input"]["plan"], place=(n, i), uuid=uuid))
                elif block["name"] == "AskUserQuestion" and asked:
                    parts = [q["question"] for q in asked]
                    parts += [o["label"] for q in asked for o in q.get("options", [])]
                    self.say(Want("assistant", "question", None, parts, place=(n, i), uuid=uuid))

    def result(self, n: int, i: int, entry: dict[str, Any], result: dict[str, Any], uuid: str) -> None:
        call = self.calls.get(result.get("tool_use_id", ""))
        if call is None or call.pop("answered", None):
            return
        call["answered"] = True
        said = result.get("content")
        text = said if isinstance(said, str) else "\n".join(texts(said))
        base = Want("user", "refusal", place=(n, i), uuid=uuid)
        if text.lstrip().startswith(REFUSED):
            words = text.partition(SAID)[2]
            if words.strip() and not words.startswith(DISMISSED):
                base.text = words
                self.say(base)
            elif call["name"] == "ExitPlanMode":
                base.text = "(plan refused)"
                self.say(base)
        elif result.get("is_error"):
            return
        elif call["name"] == "ExitPlanMode":
            base.kind, base.text = "approval", "(plan approved)"
            self.say(base)
        elif call["name"] == "AskUserQuestion":
            detail = entry.get("toolUseResult")
            answers = detail.get("answers") if isinstance(detail, dict) else None
            base.kind, base.parts = (
                "answer",
                [a for v in (answers or {}).values() for a in (v if isinstance(v, list) else [v])],
            )
            if base.parts:
                self.say(base)

    def operate(self, n: int, entry: dict[str, Any]) -> None:
        text = "\n".join(texts(entry.get("content")))
        operation = entry.get("operation")
        if operation == "enqueue":
            typed = bool(text.strip()) and not text.lstrip().startswith(ENVELOPES)
            if typed and text.startswith("/") and text.split()[0].lower() in STEERING:
                typed = False
            want = Want("user", "queued", text, place=(n, 0))
            self.queue.append(want if typed else None)
            if typed:
                self.queued.append(want)
        elif operation in ("dequeue", "remove") and self.queue:
            same = [i for i, w in enumerate(self.queue) if text and w and (w.text or "").strip() == text.strip()]
            if same or not text or not text.lstrip().startswith(ENVELOPES):
                del self.queue[same[0] if same else 0]
            elif None in self.queue:
                self.queue.remove(None)
        elif operation == "popAll":
            gone = [w for w in self.queue if w and (not text or (w.text or "").strip() == text.strip())]
            self.taken += gone
            self.queue = [w for w in self.queue if not any(w is g for g in gone)]

    def reading(self) -> Reading:
        """Queued texts that stand in no line of their own take part; branches left behind do not."""
        alone = []
        lines = list(self.lines)
        for want in self.queued:
            own = next(
                (w for w in lines if w.place > want.place and (w.text or "").strip() == (want.text or "").strip()),
                None,
            )
            if own is not None:
                lines.remove(own)
            elif not any(want is t for t in self.taken):
                alone.append(want)
        left = self.left_behind()
        kept = [w for w in self.wants if w.uuid not in left]
        return Reading(
            wants=sorted(kept + alone, key=lambda w: w.place),
            taken_back=[w.text or "" for w in self.taken],
            rewound=[w for w in self.wants if w.uuid in left],
            steering=self.steering,
            boundaries=self.boundaries,
        )

    def left_behind(self) -> set[str]:
        """Uuids on branches that a later typed line left, and that did not grow again."""
        by_uuid = {e["uuid"]: e for _, e in self.entries}
        typed = {w.uuid for w in self.lines if w.typed}
        typed |= {
            e["uuid"]
            for _, e in self.entries
            if e["type"] == "user" and command_of((texts((e.get("message") or {}).get("content")) or [""])[0])
        }

        def anchor(entry: dict[str, Any]) -> str | None:
            above = by_uuid.get(entry.get("parentUuid") or "")
            while above is not None and self.quiet(above):
                above = by_uuid.get(above.get("parentUuid") or "")
            return above["uuid"] if above else None

        def root_typed(entry: dict[str, Any]) -> list[str]:
            """A compaction does not end a branch: its boundary names what it follows."""
            chain, at = [], entry
            while at is not None and at["uuid"] not in chain:
                chain.append(at["uuid"])
                at = by_uuid.get(at.get("parentUuid") or at.get("logicalParentUuid") or "")  # type: ignore[assignment]
            return chain

        chains = {e["uuid"]: root_typed(e) for _, e in self.entries}
        first: dict[str, list[str]] = {}
        left: set[str] = set()
        seen: list[dict[str, Any]] = []
        branches: list[tuple[set[str], set[str]]] = []
        for _, entry in self.entries:
            uuid = entry["uuid"]
            if entry["type"] in ("user", "assistant"):
                for heads, members in branches:
                    if heads & set(chains[uuid][1:]) and not heads & {uuid}:
                        left -= members
                        heads.clear()
            if uuid in typed and (hangs := anchor(entry)) is not None:
                siblings = first.setdefault(hangs, [])
                heads = {s for s in siblings if s not in left and s not in chains[uuid][1:]}
                if heads:
                    members = {e["uuid"] for e in seen if heads & set(chains[e["uuid"]])}
                    left |= members
                    branches.append((heads, members))
                siblings.append(uuid)
            seen.append(entry)
        return left

    def quiet(self, entry: dict[str, Any]) -> bool:
        if entry["type"] == "system":
            return entry.get("subtype") != "compact_boundary"
        return entry["type"] in ("attachment", "progress") or (entry["type"] == "user" and bool(entry.get("isMeta")))


def read(path: Path) -> Reading:
    """The reading of a transcript file; files named ``agent-*`` are read as conversations of their own."""
    return Reader(read_bytes(path), agent=path.name.startswith("agent-")).reading()
