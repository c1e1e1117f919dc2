"""The OpenAPI 3.1 document, made from the same types that validate the bodies."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import msgspec

from endless_mode import __version__
from endless_mode.deliver.resume import Resumed
from endless_mode.forgetting import Forgot
from endless_mode.worker import messages

Json = dict[str, Any]


class Operation(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    about: str
    body: type | None = None
    answer: type | None = None
    status: int = 200


_OPERATIONS = (
    Operation(
        "post",
        "/api/sessions/seal",
        "Bring a session's bottle up to date before a compaction.",
        messages.SealRequest,
        messages.SealAnswer,
    ),
    Operation(
        "post",
        "/api/sessions/render-bottle",
        "Render a session's bottle; 202 when it is only queued.",
        messages.RenderRequest,
        messages.RenderAnswer,
    ),
    Operation(
        "get",
        "/api/sessions/drain-status",
        "Say what is still to be observed.",
        answer=messages.DrainStatus,
    ),
    Operation(
        "post",
        "/api/import",
        "Read past sessions in, as a task of the worker's. The body may be left out.",
        messages.ImportRequest,
        messages.ImportStatus,
        202,
    ),
    Operation("get", "/api/import", "Say how far the import is.", answer=messages.ImportStatus),
    Operation(
        "post",
        "/api/search/index",
        "Bring the full-text index up to date. The body may be left out.",
        messages.IndexRequest,
        messages.IndexAnswer,
    ),
    Operation("post", "/api/forget", "Forget, or say what would be forgotten.", messages.ForgetRequest, Forgot),
    Operation(
        "post",
        "/api/sessions/resume",
        "Let a session's handoff wait for a new session.",
        messages.ResumeRequest,
        Resumed,
    ),
    Operation("get", "/api/health", "Say who answers.", answer=messages.Health),
    Operation(
        "post",
        "/api/worker/stop",
        "Finish what runs, then end. The body may be left out.",
        messages.StopRequest,
        messages.StopAnswer,
        202,
    ),
    Operation(
        "post",
        "/hooks/{client}/{event}",
        "Take a hook's stdin; the answer is what the hook prints.",
        messages.HookInput,
    ),
    Operation("get", "/api/openapi.json", "This document."),
)
#: Bodies that may be left out.
_OPTIONAL = (messages.StopRequest, messages.ImportRequest, messages.IndexRequest)
_PARAMETERS: dict[str, list[tuple[str, str, Json]]] = {
    "/api/sessions/drain-status": [
        ("contentSessionId", "query", {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"})
    ],
    "/hooks/{client}/{event}": [
        ("client", "path", {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,31}$"}),
        ("event", "path", {"type": "string", "pattern": "^[A-Z][A-Za-z]{0,39}$"}),
    ],
}


@functools.cache
def document() -> bytes:
    """Return the document as JSON."""
    kinds = {kind for op in _OPERATIONS for kind in (op.body, op.answer) if kind} | {messages.ErrorBody}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    refs = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, Json] = {}
    for op in _OPERATIONS:
        paths.setdefault(op.path, {})[op.method] = _operation(op, refs)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Endless Mode worker", "version": __version__},
            "paths": paths,
            "components": {"schemas": components},
        }
    )


def _operation(op: Operation, refs: dict[type, Any]) -> Json:
    answers: Json = {str(op.status): {"description": op.about}}
    if op.answer is not None:
        answers[str(op.status)]["content"] = {"application/json": {"schema": refs[op.answer]}}
    elif op.path.startswith("/hooks/"):
        answers[str(op.status)]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    if op.answer is messages.RenderAnswer:
        answers["202"] = answers["200"]
    error = {"application/json": {"schema": refs[messages.ErrorBody]}}
    answers["default"] = {"description": "What went wrong, and what to do about it.", "content": error}
    operation: Json = {"summary": op.about, "responses": answers}
    if op.body is not None:
        operation["requestBody"] = {
            "required": op.body not in _OPTIONAL,
            "content": {"application/json": {"schema": refs[op.body]}},
        }
    parameters = [
        {"name": name, "in": where, "required": True, "schema": schema}
        for name, where, schema in _PARAMETERS.get(op.path, [])
    ]
    return {**operation, "parameters": parameters} if parameters else operation
