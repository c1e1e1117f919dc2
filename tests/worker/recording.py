"""A worker whose service writes down what it is given and does what a prompt tells it.

Run as ``python recording.py [--h11] <arguments of the worker>``. Prompts it obeys: ``say:<text>`` answers the
text, ``hold:<name>`` makes ``<name>.held`` in the home and answers ``released`` once ``<name>`` exists,
``fail:<text>`` raises. A file ``live`` in the home makes a session live; ``refuse-start`` in the data directory
makes the start fail.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Collection

from endless_mode.home import Home
from endless_mode.settings import Settings
from endless_mode.worker.__main__ import main
from endless_mode.worker.messages import (
    DrainStatus,
    HookEnv,
    HookInput,
    RenderAnswer,
    RenderRequest,
    SealAnswer,
    SealRequest,
)


class RecordingService:
    def __init__(self, home: Home, settings: Settings) -> None:
        self.home = home

    def note(self, **what: object) -> None:
        line = json.dumps({"pid": os.getpid(), **what}).encode() + b"\n"
        fd = os.open(self.home.data_dir / "calls.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, line)
        os.close(fd)

    async def start(self) -> None:
        if (self.home.data_dir / "refuse-start").exists():
            raise RuntimeError("told to")
        self.note(call="start")

    async def stop(self) -> None:
        self.note(call="stop")

    async def hook(self, client: str, event: str, payload: HookInput, env: HookEnv) -> bytes:
        prompt = payload.prompt or ""
        known = {field: getattr(env, field) for field in env.__struct_fields__}
        self.note(call="hook", client=client, event=event, prompt=prompt, session=payload.session_id,
                  transcript=payload.transcript_path, env=known)  # fmt: skip
        verb, _, rest = prompt.partition(":")
        if verb == "say":
            return rest.encode()
        if verb == "fail":
            raise RuntimeError(rest)
        if verb == "hold":
            (self.home.root / f"{rest}.held").touch()
            while not (self.home.root / rest).exists():
                await asyncio.sleep(0.01)
            self.note(call="released", prompt=prompt)
            return b"released"
        return b""

    async def seal(self, request: SealRequest) -> SealAnswer:
        self.note(call="seal", timeout=request.timeout_ms, transcript=request.transcript_path)
        return SealAnswer(sealed=True, gap=2, bottle_path="/bottle.md", mode="full")

    async def render_bottle(self, request: RenderRequest) -> RenderAnswer:
        return RenderAnswer(queued=not request.wait, bottle_path="/bottle.md")

    async def drain_status(self, session_id: str) -> DrainStatus:
        return DrainStatus(content_session_id=session_id, drained=False, pending=3)

    def at_work(self) -> bool:
        return False

    def live_sessions(self) -> Collection[str]:
        return ("one",) if (self.home.root / "live").exists() else ()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--h11" in arguments:
        sys.modules["httptools"] = None  # type: ignore[assignment]
    os._exit(main(arguments, RecordingService))
