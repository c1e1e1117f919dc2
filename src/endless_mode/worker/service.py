"""The one door between the process layer and what the worker is for.

The server calls a :class:`Service` from its event loop, several requests at a time. A service that blocks
does so in threads of its own. Whatever it raises is logged by class and place and answered as an error; a
hook then prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol

from endless_mode.deliver.resume import Resumed
from endless_mode.errors import BadRequest
from endless_mode.forgetting import Forgot
from endless_mode.home import Home
from endless_mode.importing import Imported
from endless_mode.settings import Settings
from endless_mode.worker.messages import (
    DrainStatus,
    ForgetRequest,
    HookEnv,
    HookInput,
    ImportStatus,
    RenderAnswer,
    RenderRequest,
    SealAnswer,
    SealRequest,
)


class Service(Protocol):
    """What the worker does with what reaches it.

    Session ids and transcript paths have been checked: ``payload.transcript_path`` is empty, or a real
    path that may be read. A session id is empty or fit for a file name.
    """

    async def start(self) -> None:
        """Get ready; runs before the first request is answered. Raising ends the worker."""

    async def stop(self) -> None:
        """Finish what was begun and drain the writer. No request runs any more; 10 seconds are given."""

    async def hook(self, client: str, event: str, payload: HookInput, env: HookEnv) -> bytes:
        """Take in one hook event; return the bytes its hook prints.

        May be called a second time for the same event (the worker died while answering). With ``env.spooled``
        nobody reads the answer.
        """

    async def seal(self, request: SealRequest) -> SealAnswer:
        """Seal a session; ``request.timeout_ms`` is always set."""

    async def render_bottle(self, request: RenderRequest) -> RenderAnswer:
        """Render a bottle now or soon."""

    async def drain_status(self, session_id: str) -> DrainStatus:
        """Return what is still to be observed."""

    async def import_from(self, root: Path) -> ImportStatus:
        """Begin to import everything under a configuration directory."""

    async def import_status(self) -> ImportStatus:
        """Return how far that import is."""

    async def index(self, seconds: float) -> int:
        """Index for a while; return how many rows are still missing."""

    async def forget(self, request: ForgetRequest) -> Forgot:
        """Forget, or say what would be forgotten."""

    async def resume(self, session_id: str, root: Path | None) -> Resumed:
        """Let a session's handoff wait for a new session."""

    def at_work(self) -> bool:
        """Return whether something runs that the worker should stay for, with no session live."""

    def live_sessions(self) -> Collection[str]:
        """Return the sessions for whose sake the worker stays: keep one only while its transcript still
        grows.
        """


Factory = Callable[[Home, Settings], Service]


class QuietService:
    """A service that takes everything and says nothing."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def hook(self, client: str, event: str, payload: HookInput, env: HookEnv) -> bytes:  # noqa: ARG002
        return b""

    async def seal(self, request: SealRequest) -> SealAnswer:  # noqa: ARG002
        return SealAnswer(sealed=False, gap=0)

    async def render_bottle(self, request: RenderRequest) -> RenderAnswer:  # noqa: ARG002
        return RenderAnswer(queued=False)

    async def drain_status(self, session_id: str) -> DrainStatus:
        return DrainStatus(content_session_id=session_id, drained=True)

    async def import_from(self, root: Path) -> ImportStatus:  # noqa: ARG002
        return ImportStatus(False, Imported())

    async def import_status(self) -> ImportStatus:
        return ImportStatus(False, Imported())

    async def index(self, seconds: float) -> int:  # noqa: ARG002
        return 0

    async def forget(self, request: ForgetRequest) -> Forgot:  # noqa: ARG002
        return Forgot()

    async def resume(self, session_id: str, root: Path | None) -> Resumed:  # noqa: ARG002
        raise BadRequest("no_such_session", "This worker keeps no sessions.", "", status=404)

    def at_work(self) -> bool:
        return False

    def live_sessions(self) -> Collection[str]:
        return ()


def service_factory(home: Home, settings: Settings) -> Service:
    """Return the product's service."""
    from endless_mode.worker.live import LiveService

    return LiveService(home, settings)
