"""Events that hooks kept in files because no worker answered; taken in when there is one again.

A file holds the request a hook would have sent, head and body, under a name that sorts by time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from endless_mode.errors import BadRequest, EndlessError
from endless_mode.worker.log import Log
from endless_mode.worker.messages import HookEnv

Take = Callable[[str, str, bytes, HookEnv], Awaitable[bytes]]


def waiting(spool: Path) -> list[Path]:
    """Return the kept events, oldest first."""
    try:
        return sorted(path for path in spool.iterdir() if path.suffix == ".http")
    except OSError:
        return []


def parse(message: bytes) -> tuple[str, str, bytes, HookEnv]:
    """Return (client, event, body, environment) of a kept request; raise :class:`BadRequest` if it is
    none.
    """
    head, mark, body = message.partition(b"\r\n\r\n")
    request, *lines = head.decode("latin-1").split("\r\n")
    parts = request.split(" ")[1].split("/") if request.startswith("POST /hooks/") else []
    if not mark or len(parts) != 4:
        raise BadRequest("bad_spool_file", "A kept event cannot be read.", "")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if headers.get("content-length") != str(len(body)):
        raise BadRequest("bad_spool_file", "A kept event is not whole.", "")
    return parts[2], parts[3], body, HookEnv.from_headers(headers, spooled=True)


async def take_one(path: Path, take: Take, log: Log) -> None:
    """Hand one kept event over and remove its file, also when it is refused; it would be refused again."""
    try:
        client, event, body, env = parse(path.read_bytes())
        await take(client, event, body, env)
    except EndlessError as error:  # a failure of the service has been logged where it happened
        log.write("spool_refused", level="warning", code=error.code)
    except Exception as error:
        log.write("spool_failed", level="error", code="internal_error", error=error)
    path.unlink(missing_ok=True)
