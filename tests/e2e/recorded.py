"""A recorded request: which of the client's purposes it serves, and every text the model sees in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .answers import Answer

Kind = Literal["main", "summariser", "side", "subagent"]

SUMMARISER_MARK = "CRITICAL: Respond with TEXT ONLY"


@dataclass(frozen=True)
class Seen:
    """One text the model sees. `where`: system, text, tool_use, tool_result or thinking."""

    role: str
    where: str
    text: str


@dataclass
class Request:
    """One POST /v1/messages, as parsed. `number` counts all requests from 0."""

    number: int
    kind: Kind
    body: dict[str, Any]
    headers: dict[str, str]
    answer: Answer | None = None

    @property
    def seen(self) -> list[Seen]:
        """Every text of the request but the tools' descriptions, in order."""
        return list(texts_of(self.body))

    @property
    def text(self) -> str:
        """All of `seen` as one string."""
        return "\n".join(part.text for part in self.seen)

    @property
    def conversation(self) -> str:
        """The messages alone, without the system prompt."""
        return "\n".join(part.text for part in texts_of({"messages": self.body["messages"]}))

    def count(self, text: str) -> int:
        """How often the model sees `text`."""
        return self.text.count(text)

    def tool_results(self) -> list[Seen]:
        """What the tools answered, as far as it is still in the conversation."""
        return [part for part in self.seen if part.where == "tool_result"]

    @property
    def last_user_text(self) -> str:
        """The text of the newest user message."""
        for message in reversed(self.body["messages"]):
            if message["role"] == "user":
                return "\n".join(part.text for part in texts_of({"messages": [message]}))
        return ""


def texts_of(body: dict[str, Any]) -> Iterator[Seen]:
    """Every text the model sees in a request body, in order, tools' descriptions left out."""
    if body.get("system"):
        yield from _content(body["system"], "system", "system")
    for message in body.get("messages", ()):
        yield from _content(message["content"], message["role"], "text")


def _content(content: Any, role: str, where: str) -> Iterator[Seen]:
    if isinstance(content, str):
        yield Seen(role, where, content)
        return
    for block in content or ():
        match block.get("type"):
            case "text":
                yield Seen(role, where, block["text"])
            case "tool_result":
                yield from _content(block.get("content"), role, "tool_result")
            case "tool_use":
                yield Seen(role, "tool_use", json.dumps(block["input"], ensure_ascii=False))
            case "thinking":
                yield Seen(role, "thinking", block.get("thinking", ""))
            case _:
                pass


def classify(body: dict[str, Any], headers: dict[str, str]) -> Kind:
    """Which purpose of the client a request serves."""
    messages = body.get("messages") or []
    # Newer clients may put a reminder of their own behind the question.
    last = "".join(part.text for part in texts_of({"messages": messages[-2:]}))
    if SUMMARISER_MARK in last:
        return "summariser"
    if not body.get("tools") or body.get("max_tokens") == 1:
        return "side"
    return "subagent" if "x-claude-code-agent-id" in headers else "main"
