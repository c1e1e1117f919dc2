"""A transcript that grows as the client writes it; line shapes as recorded from client 2.1.197."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

HEAD = "# [claude-mem] Endless Mode — session continuation"


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{int(at * 1000) % 1000:03d}Z"


class Transcript:
    """Appends lines; remembers what was said, as (role, text), and the boundaries' uuids."""

    def __init__(
        self,
        path: Path,
        session: str = "s-1",
        cwd: str = "/tmp",
        clock: Callable[[], float] = time.time,
        uuids: Callable[[], str] | None = None,
    ) -> None:
        self.path = path
        self.session = session
        self.cwd = cwd
        self.clock = clock
        self.said: list[tuple[str, str]] = []
        self.boundaries: list[str] = []
        self.leaf: str | None = None
        self.context = 100_000
        self._uuids = uuids or _counted(session)
        path.parent.mkdir(parents=True, exist_ok=True)

    # -- lines ---------------------------------------------------------------------------------------------

    def raw(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def line(self, value: dict[str, Any]) -> None:
        self.raw(encoded(value))

    def chained(self, kind: str, **more: Any) -> str:
        """One entry of the chain; returns its uuid."""
        entry = self.entry(kind, **more)
        self.line(entry)
        return str(entry["uuid"])

    def entry(self, kind: str, **more: Any) -> dict[str, Any]:
        uuid = self._uuids()
        entry = {
            "parentUuid": self.leaf,
            "isSidechain": False,
            **more,
            "type": kind,
            "uuid": uuid,
            "timestamp": iso(self.clock()),
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.197",
            "gitBranch": "main",
        }
        self.leaf = uuid
        return entry

    # -- what happens --------------------------------------------------------------------------------------

    def prompt(self, text: str) -> str:
        self.said.append(("user", text))
        return self.chained("user", message={"role": "user", "content": text}, promptSource="typed")

    def say(self, text: str) -> str:
        self.said.append(("assistant", text))
        return self._assistant({"type": "text", "text": text})

    def call(self, name: str, **given: Any) -> str:
        """A tool use; returns its id."""
        use = "toolu_" + self._uuids().replace("-", "")[-20:]
        self._assistant({"type": "tool_use", "id": use, "name": name, "input": given})
        return use

    def result(self, use: str, text: str = "done", error: bool = False) -> str:
        block = {"tool_use_id": use, "type": "tool_result", "content": text, "is_error": error}
        detail = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        return self.chained("user", message={"role": "user", "content": [block]}, toolUseResult=detail)

    def bash(self, command: str, output: str = "ok") -> str:
        """A whole tool use; returns its id."""
        use = self.call("Bash", command=command)
        self.result(use, output)
        return use

    def stopped(self) -> str:
        return self.chained("system", subtype="stop_hook_summary", hookCount=1)

    def turn(self, text: str, answer: str = "", work: int = 1) -> None:
        """A prompt, some work, the answer."""
        self.prompt(text)
        for n in range(work):
            self.bash(f"step {n} of {text}")
        self.say(answer or f"Done with {text}.")
        self.stopped()

    def boundary(self, trigger: str = "auto", summary: str = "What happened before.") -> str:
        """The client compacted: boundary and summary, as they come after the hooks; returns the boundary's uuid."""
        before, self.leaf = self.leaf, None
        meta = {"trigger": trigger, "preTokens": self.context, "postTokens": 600, "durationMs": 151}
        key = self.chained(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            logicalParentUuid=before,
            isMeta=False,
            compactMetadata=meta,
        )
        self.boundaries.append(key)
        self.chained(
            "user",
            isCompactSummary=True,
            isVisibleInTranscriptOnly=True,
            message={"role": "user", "content": f"This session is being continued from a previous one. {summary}"},
        )
        return key

    def hooked(self, printed: str, event: str = "SessionStart", source: str = "compact") -> str:
        """The client's record of a hook that exited well."""
        name = f"{event}:{source}" if event == "SessionStart" else event
        shown = {"type": "hook_success", "hookName": name, "toolUseID": self._uuids(), "hookEvent": event}
        more = {"content": printed.strip(), "stdout": printed, "stderr": "", "exitCode": 0, "command": "hook"}
        return self.chained("attachment", attachment={**shown, **more, "durationMs": 50})

    def agent(self, prompt: str = "look around") -> str:
        """A foreground subagent's call, unanswered."""
        return self.call("Agent", description="Look", prompt=prompt, subagent_type="general-purpose")

    def _assistant(self, block: dict[str, Any]) -> str:
        usage = {"input_tokens": self.context, "output_tokens": 20, "cache_read_input_tokens": 0}
        message = {
            "id": f"msg_{self._uuids()[-12:]}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-4-8",
            "content": [block],
            "stop_reason": None,
            "usage": {**usage, "cache_creation_input_tokens": 0},
        }
        return self.chained("assistant", message=message, requestId="req_1")


def encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def marker_of(handoff: str) -> str:
    """The name at the foot of a handoff; empty when it is none."""
    if HEAD not in handoff:
        return ""
    return handoff.rpartition("(Endless Mode handoff ")[2].rstrip(")\n")


def _counted(session: str) -> Callable[[], str]:
    count = 0

    def uuid() -> str:
        nonlocal count
        count += 1
        return str(UUID(int=(sum(session.encode()) << 64) + count, version=4))

    return uuid
