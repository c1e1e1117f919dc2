"""Messages API shapes as bytes on the wire: a message, its SSE events, an error, a token estimate."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from .answers import Answer

_numbers = itertools.count(1)


def tokens_of(body: dict[str, Any]) -> int:
    """A token estimate for a request: a quarter of its characters, tools left out."""
    seen = {"system": body.get("system"), "messages": body.get("messages")}
    return len(json.dumps(seen, ensure_ascii=False)) // 4


def error_body(kind: str, message: str) -> dict[str, Any]:
    """The API's error shape."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def message_body(request: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """The whole message object that answers `request`."""
    number = next(_numbers)
    blocks: list[dict[str, Any]] = []
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for position, tool in enumerate(answer.tools):
        blocks.append(
            {
                "type": "tool_use",
                "id": tool.id or f"toolu_lab{number:06d}{position:03d}",
                "name": tool.name,
                "input": tool.input,
            }
        )
    asked = tokens_of(request) if answer.input_tokens is None else answer.input_tokens
    said = sum(len(json.dumps(block)) for block in blocks) // 4
    return {
        "id": f"msg_lab{number:06d}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "unknown"),
        "content": blocks,
        "stop_reason": answer.stop_reason or ("tool_use" if answer.tools else "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": asked,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": said,
        },
    }


def sse_events(message: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The stream of one message: (event name, data) pairs."""
    start = {**message, "content": [], "stop_reason": None}
    start["usage"] = {**message["usage"], "output_tokens": 1}
    yield "message_start", {"type": "message_start", "message": start}
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield "message_stop", {"type": "message_stop"}


def _block_events(index: int, block: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if block["type"] == "text":
        empty: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield (
        "content_block_start",
        {"type": "content_block_start", "index": index, "content_block": empty},
    )
    yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": index}
