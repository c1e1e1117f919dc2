"""Plausible answers to what the client asks for its own purposes: titles, JSON output, probes."""

from __future__ import annotations

import json
from typing import Any

from .answers import Answer, say
from .recorded import Request


def answer_side(request: Request) -> Answer:
    """Fill the JSON schema if one is asked for, else say a title."""
    schema = _schema_of(request.body)
    return say(json.dumps(fill(schema)) if schema else "Laboratory work")


def _schema_of(body: dict[str, Any]) -> dict[str, Any] | None:
    wanted = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    schema = wanted.get("schema")
    return schema if isinstance(schema, dict) else None


def fill(schema: dict[str, Any]) -> Any:
    """The smallest value that satisfies a JSON schema of the kind the client sends."""
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return fill(schema[choice][0])
    match schema.get("type"):
        case "object":
            return {name: fill(part) for name, part in (schema.get("properties") or {}).items()}
        case "array":
            return []
        case "boolean":
            return False
        case "integer" | "number":
            return 0
        case "null":
            return None
        case _:
            return "Laboratory work"
