"""``python -m endless_mode.worker.fallback <client> <Event>``: answer an event without a worker.

The last resort of a hook that must answer. Reads the event from stdin and prints what
``endless_mode.deliver.fallback.answer(event, payload)`` has to say; prints nothing, and exits 1, on any
failure.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys

import msgspec

from endless_mode.errors import BadRequest
from endless_mode.home import find_home
from endless_mode.names import is_session_id
from endless_mode.paths import check_transcript, client_root
from endless_mode.settings import load
from endless_mode.worker.messages import HookInput, decode_hook

PROVIDER = "endless_mode.deliver.fallback"


def checked(client: str, body: bytes) -> HookInput:
    """Return the event, read and checked as the worker would; raise :class:`BadRequest`."""
    payload = decode_hook(body)
    if not is_session_id(payload.session_id):
        raise BadRequest("bad_session_id", "The session id is no safe file name.", "")
    root = client_root(client, os.environ.get("CLAUDE_CONFIG_DIR", ""), os.environ.get("HOME", ""))
    roots = [*load(find_home()).extra_roots, *([root] if root else [])]
    if not payload.transcript_path:
        return payload
    path = check_transcript(payload.transcript_path, roots)
    return msgspec.structs.replace(payload, transcript_path=str(path))


def main(argv: list[str]) -> int:
    """Print the answer to one event; return the exit code."""
    if importlib.util.find_spec(PROVIDER) is None:
        return 1
    provider = importlib.import_module(PROVIDER)
    payload = checked(argv[0], sys.stdin.buffer.read())
    sys.stdout.buffer.write(provider.answer(argv[1], payload))
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    code = 1
    with contextlib.suppress(Exception):
        code = main(sys.argv[1:])
    os._exit(code)
