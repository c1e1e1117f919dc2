"""What crosses the worker's socket, as typed messages. They are validated once, here, and trusted inside.

Hook inputs keep the client's own key names and are read with tolerance: a key of an unexpected type in a
newer client must not cost the whole event. The API's bodies are strict and camelCase, as the specification
names them.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Meta, Struct

from endless_mode.errors import BadRequest
from endless_mode.forgetting import Selection
from endless_mode.importing import Imported

#: Version of the socket's surface; raised when a change would break an older hook or command line.
PROTOCOL = 1
MAX_BODY = 8 * 1024 * 1024
MAX_TIMEOUT_MS = 60_000

SessionId = Annotated[str, Meta(pattern=r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,128}$", description="The client's session id")]
TimeoutMs = Annotated[int, Meta(ge=0, le=MAX_TIMEOUT_MS, description="Longest wait for the drain")]
T = TypeVar("T")


class HookInput(Struct, frozen=True):
    """A hook's stdin; keys as the client sends them (clients 2.1.197 and 2.1.332), further ones ignored.

    ``agent_id`` is None unless the event comes from inside a subagent. ``context_tokens`` is what the client
    says a resumed session holds.
    """

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    hook_event_name: str = ""
    prompt_id: str | None = None
    permission_mode: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    source: str | None = None
    trigger: str | None = None
    reason: str | None = None
    model: str | None = None
    prompt: str | None = None
    custom_instructions: str | None = None
    compact_summary: str | None = None
    last_assistant_message: str | None = None
    stop_hook_active: bool | None = None
    context_tokens: int | None = None


class HookEnv(Struct, frozen=True):
    """What the hook process knew beside its stdin.

    ``budget_ms`` is how long it waits for the answer. ``request`` is a name of this one event (empty: none): a hook
    that asks a second time, because the worker died while answering, says the same. ``spooled``: the event was kept in a file because no
    worker answered, the hook is long gone, and nobody reads what is returned: take it in, deliver nothing.
    """

    config_dir: str = ""
    project_dir: str = ""
    entrypoint: str = ""
    user_home: str = ""
    data_dir: str = ""
    version: str = ""
    budget_ms: int = 0
    request: str = ""
    spooled: bool = False

    @classmethod
    def from_headers(cls, headers: dict[str, str], spooled: bool = False) -> HookEnv:
        """Read the ``X-Endless-*`` headers (names in lower case, values percent-encoded)."""

        def text(name: str) -> str:
            raw = unquote_to_bytes(headers.get(f"x-endless-{name}", ""))
            return raw.replace(b"\0", b"").decode("utf-8", "replace")

        budget, request = text("budget-ms"), text("request")
        return cls(
            config_dir=text("config-dir"),
            project_dir=text("project-dir"),
            entrypoint=text("entrypoint"),
            user_home=text("user-home"),
            data_dir=text("data-dir"),
            version=text("version"),
            budget_ms=int(budget) if budget.isascii() and budget.isdigit() and len(budget) < 10 else 0,
            request=request if re.fullmatch(r"[0-9-]{1,40}", request) else "",
            spooled=spooled,
        )


class SealRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Bring the bottle up to date before a compaction. Without ``timeoutMs`` the setting decides."""

    content_session_id: SessionId
    transcript_path: str
    timeout_ms: TimeoutMs | None = None


class SealAnswer(Struct, frozen=True, rename="camel"):
    """``gap`` counts tool events that have no observation yet; ``mode`` is the bottle's."""

    sealed: bool
    gap: int
    bottle_path: str | None = None
    mode: str | None = None


class RenderRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Render a session's bottle; with ``wait`` the answer comes when the file is there."""

    content_session_id: SessionId
    transcript_path: str | None = None
    wait: bool = False


class RenderAnswer(Struct, frozen=True, rename="camel"):
    """``queued`` is true when the answer did not wait for the file."""

    queued: bool
    bottle_path: str | None = None
    mode: str | None = None


class DrainStatus(Struct, frozen=True, rename="camel"):
    """Drained: no tool event of the session is pending or claimed by an observer."""

    content_session_id: str
    drained: bool
    pending: int = 0
    claimed: int = 0
    generating: bool = False


class ImportRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Read past sessions in, from the configuration directory the caller's headers name."""


class ImportStatus(Struct, frozen=True, rename="camel"):
    """How far an import is; ``running`` until everything is in, ``failed`` when it broke off (the log says why)."""

    running: bool
    state: Imported
    failed: bool = False


class IndexRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Bring the full-text index up to date, for at most so many seconds."""

    seconds: Annotated[float, Meta(ge=0, le=60)] = 3.0


class IndexAnswer(Struct, frozen=True, rename="camel"):
    """How many rows the index still lacks."""

    missing: int


class ForgetRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Forget what ``selection`` names; ``dry_run`` only says what that is, ``now`` also drops free pages at once."""

    selection: Selection
    dry_run: bool = True
    now: bool = False


class ResumeRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Let the handoff of a session wait for a new one."""

    content_session_id: SessionId


class Health(Struct, frozen=True, rename="camel"):
    """Who answers at this socket."""

    version: str
    protocol: int
    pid: int
    uptime_ms: int
    requests: int
    live_sessions: int
    status: str = "ok"


class StopRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Why the worker is asked to end; ``version`` is the caller's."""

    version: str = ""


class StopAnswer(Struct, frozen=True, rename="camel"):
    """The worker finishes the requests it has and ends."""

    stopping: bool = True


class ErrorBody(Struct, frozen=True):
    """Every error of the API."""

    code: str
    message: str
    hint: str


def newer(theirs: str, ours: str) -> bool:
    """Whether a version of the form ``1.2.3`` is later than ours; anything else is not."""
    try:
        return [int(part) for part in theirs.split(".")] > [int(part) for part in ours.split(".")]
    except ValueError:
        return False


def decode(body: bytes, kind: type[T]) -> T:
    """Read an API body strictly; raise :class:`BadRequest`."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        # msgspec's text names types and places in the document; it quotes no values.
        raise BadRequest("invalid_body", f"The body does not fit: {error}.", "See /api/openapi.json.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest("malformed_json", "The body is not valid JSON.", "Send one JSON object.") from error


_HOOK = msgspec.json.Decoder(HookInput)


def decode_hook(body: bytes) -> HookInput:
    """Read a hook's stdin: the fast strict way, else value by value, dropping what does not fit its key."""
    try:
        return _HOOK.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _salvage(body)


def _salvage(body: bytes) -> HookInput:
    try:
        content = json.loads(body.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError) as error:
        raise BadRequest("malformed_json", "The hook's input is not valid JSON.", "") from error
    if not isinstance(content, dict):
        raise BadRequest("invalid_body", "The hook's input is not a JSON object.", "")
    fitting: dict[str, Any] = {}
    for field in msgspec.structs.fields(HookInput):
        value = content.get(field.name)
        if isinstance(value, str):
            value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        try:
            fitting[field.name] = msgspec.convert(value, field.type)
        except msgspec.ValidationError:
            continue
    return HookInput(**fitting)
