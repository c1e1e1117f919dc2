"""The words of a script: what the model says, which tools it calls, how the API fails.

A *step* is an `Answer`, or a callable that gets the `Request` and returns an `Answer`, or None for
"not for me, ask the next step". A step is used once unless its answer has `stay`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .recorded import Request

COMPACT_WINDOW = 200_000
"""The window to configure (CLAUDE_CODE_AUTO_COMPACT_WINDOW) so that `FULL` means a compaction."""

FULL = 198_000
"""Reported input tokens which make the client compact before its next request."""


@dataclass(frozen=True)
class Tool:
    """One tool call of the model. Without an id one is made up."""

    name: str
    input: dict[str, Any]
    id: str = ""


@dataclass(frozen=True)
class Answer:
    """One answer of the API.

    `input_tokens` is the usage to report (None: an estimate from the request). `delay` is in
    seconds; `hold` blocks the answer until the event is set. `error` is (status, type, message).
    `stay` keeps the step in the script.
    """

    text: str = ""
    tools: tuple[Tool, ...] = ()
    input_tokens: int | None = None
    stop_reason: str | None = None
    delay: float = 0.0
    hold: threading.Event | None = None
    error: tuple[int, str, str] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    stay: bool = False

    def full(self, tokens: int = FULL) -> Answer:
        """The same answer, reporting a context so full that the client compacts next."""
        return replace(self, input_tokens=tokens)

    def after(self, seconds: float) -> Answer:
        """The same answer, late."""
        return replace(self, delay=seconds)

    def held(self, event: threading.Event) -> Answer:
        """The same answer, once `event` is set."""
        return replace(self, hold=event)


Step = Answer | Callable[["Request"], Answer | None]


def say(text: str) -> Answer:
    """The model answers with words and ends its turn."""
    return Answer(text=text)


def call(*tools: Tool, text: str = "") -> Answer:
    """The model calls tools (in parallel if several), with words before them if given."""
    return Answer(text=text, tools=tools)


def bash(command: str, **more: Any) -> Tool:
    """A Bash call."""
    return Tool("Bash", {"command": command, "description": "Run a command", **more})


def read(path: str | Path, offset: int | None = None, limit: int | None = None) -> Tool:
    """A Read call."""
    given = {"file_path": str(path), "offset": offset, "limit": limit}
    return Tool("Read", {key: value for key, value in given.items() if value is not None})


def write(path: str | Path, content: str) -> Tool:
    """A Write call."""
    return Tool("Write", {"file_path": str(path), "content": content})


def edit(path: str | Path, old: str, new: str) -> Tool:
    """An Edit call (the client wants the file read before)."""
    return Tool("Edit", {"file_path": str(path), "old_string": old, "new_string": new})


def agent(prompt: str, description: str = "Look around", kind: str = "general-purpose") -> Tool:
    """A subagent."""
    return Tool("Agent", {"prompt": prompt, "description": description, "subagent_type": kind})


def rate_limited(retry_after: int | None = 1) -> Answer:
    """429; the client waits `retry_after` seconds and asks again."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return Answer(error=(429, "rate_limit_error", "Too many requests."), headers=headers)


def overloaded() -> Answer:
    """529; the client asks again."""
    return Answer(error=(529, "overloaded_error", "Overloaded"))


def prompt_too_long(tokens: int = 213_423, maximum: int = 200_000) -> Answer:
    """400; the client compacts and asks again (reactive compaction)."""
    message = f"prompt is too long: {tokens} tokens > {maximum} maximum"
    return Answer(error=(400, "invalid_request_error", message))


def unauthorized() -> Answer:
    """401; the client must not ask again."""
    return Answer(
        error=(401, "authentication_error", "invalid x-api-key"),
        headers={"x-should-retry": "false"},
    )
