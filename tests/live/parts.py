"""A session under a live service: the transcript as the client writes it, the hooks as the client fires them.

``Living`` works with a real worker process and the real hook command; ``Served`` runs the service in this process
behind a real Unix socket, for tests that script the observer or reach into the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from endless_mode import settings
from endless_mode.bottle.entries import Document, Speech
from endless_mode.bottle.parse import parse
from endless_mode.errors import WorkerError
from endless_mode.home import Home
from endless_mode.hook import hook
from endless_mode.hook.slow import listens
from endless_mode.worker.app import Api
from endless_mode.worker.client import WorkerClient
from endless_mode.worker.live import LiveService
from endless_mode.worker.log import Log
from endless_mode.worker.messages import SealAnswer, SealRequest
from tests.live.transcript import HEAD, Transcript
from tests.processes import LONG, Processes, eventually

HOOK = Path(hook.__file__)


class Session:
    """One session of the client: its transcript and the hooks it fires; each returns what it prints."""

    def __init__(self, fire: Callable[[str, bytes], str], transcript: Transcript) -> None:
        self._fire = fire
        self.t = transcript

    def payload(self, event: str, **more: object) -> bytes:
        base = {
            "session_id": self.t.session,
            "transcript_path": str(self.t.path),
            "cwd": self.t.cwd,
            "hook_event_name": event,
        }
        return json.dumps({**base, **more}).encode()

    def fire(self, event: str, **more: object) -> str:
        return self._fire(event, self.payload(event, **more))

    def pre_compact(self, trigger: str = "auto", **more: object) -> str:
        return self.fire("PreCompact", trigger=trigger, custom_instructions=None, **more)

    def compacted(self, **more: object) -> str:
        """SessionStart(compact)."""
        return self.fire("SessionStart", source="compact", model="claude-opus-4-8", **more)

    def post_compact(self) -> str:
        return self.fire("PostCompact", trigger="auto", compact_summary="<summary>…</summary>")

    def prompt_hook(self, text: str = "go on") -> str:
        return self.fire("UserPromptSubmit", prompt=text)

    def resumed(self) -> str:
        return self.fire("SessionStart", source="resume")

    def stop_hook(self) -> str:
        return self.fire("Stop", stop_hook_active=False, last_assistant_message="")

    def ended(self, reason: str = "other") -> str:
        return self.fire("SessionEnd", reason=reason)

    def compaction(self, *, seal: bool = True, start: bool = True, record: bool = True) -> str:
        """A whole compaction in the client's order; returns what SessionStart printed."""
        if seal:
            assert self.pre_compact() == ""
        printed = self.compacted() if start else ""
        self.post_compact()
        self.t.boundary()
        if printed and record:
            self.t.hooked(printed)
        return printed


def seal(client: WorkerClient, root: Path, session: Session, timeout_ms: int) -> SealAnswer:
    """The seal API as any program may call it."""
    body = msgspec.json.encode(SealRequest(session.t.session, str(session.t.path), timeout_ms))
    headers = {"Content-Type": "application/json", "X-Endless-User-Home": str(root)}
    return msgspec.json.decode(client.request("POST", "/api/sessions/seal", body, headers), type=SealAnswer)


def is_handoff(printed: str) -> bool:
    return HEAD in printed


def document(home: Home, session: str = "s-1") -> Document:
    return parse((home.bottles / f"{session}.md").read_text())


def speech(home: Home, session: str = "s-1") -> list[tuple[str, str]]:
    """What a session's bottle says was said, in order."""
    return [(e.role, e.text) for e in document(home, session).entries if isinstance(e, Speech)]


def bottle(home: Home, session: str = "s-1") -> str:
    return (home.bottles / f"{session}.md").read_text()


# -- a real worker -----------------------------------------------------------------------------------------


class Living(Processes):
    """A user's home with the product's own worker; hooks go through the real hook command."""

    def __init__(self, root: Path, **environ: str) -> None:
        self.root = root
        self.data = root / "data"
        self.projects = root / ".claude/projects/p"
        self.projects.mkdir(parents=True, exist_ok=True)
        base = {"HOME": str(root), "PATH": os.environ["PATH"], "CLAUDE_MEM_DATA_DIR": str(self.data)}
        self.environ = {**base, "CLAUDE_MEM_ENDLESS_BACKFILL": "off", **environ}
        self._home = Home(self.data, {b"HOME": os.fsencode(root)})
        self.children: list[subprocess.Popen[bytes]] = []

    def command(self, event: str) -> list[str]:
        return [sys.executable, "-I", "-S", str(HOOK), "claude-code", event]

    def hook(self, event: str, payload: bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.command(event),
            input=payload,
            capture_output=True,
            timeout=60,
            check=False,
            env=self.environ,
            **options,
        )

    @property
    def home(self) -> Home:
        return self._home

    @property
    def client(self) -> WorkerClient:
        return WorkerClient(self.home, LONG)

    def session(self, name: str = "s-1", **more: Any) -> Session:
        return Session(self.print_hook, Transcript(self.projects / f"{name}.jsonl", name, **more))

    def direct(self, session: Session) -> Session:
        """The same session over the socket alone, without a hook process."""
        return Session(self.send, session.t)

    def print_hook(self, event: str, payload: bytes) -> str:
        done = self.hook(event, payload)
        assert done.returncode == 0, done
        assert done.stderr == b"", done.stderr
        return done.stdout.decode()

    def send(self, event: str, payload: bytes) -> str:
        headers = {"X-Endless-User-Home": str(self.root)}
        return self.client.hook("claude-code", event, payload, headers).decode()

    def start(self, **environ: str) -> subprocess.Popen[bytes]:
        """Start the worker and wait until it answers."""
        child = subprocess.Popen(
            [sys.executable, "-I", "-m", "endless_mode.worker", "--foreground"], env={**self.environ, **environ}
        )
        self.children.append(child)
        eventually(lambda: self.answers() or child.poll() is not None)
        return child

    def answers(self) -> bool:
        with contextlib.suppress(WorkerError):
            return bool(self.client.health())
        return False

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True, timeout=10)) as db:
            return db.execute(query, values).fetchall()

    def seal(self, session: Session, timeout_ms: int = 20_000) -> SealAnswer:
        return seal(self.client, self.root, session, timeout_ms)


@contextlib.contextmanager
def living_in(root: Path, **environ: str) -> Iterator[Living]:
    place = Living(root, **environ)
    try:
        yield place
    finally:
        place.close()


# -- the service in this process ---------------------------------------------------------------------------


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Served:
    """A service behind a real Unix socket, its event loop in a thread of this process."""

    def __init__(
        self, root: Path, make: Callable[[Home, settings.Settings], LiveService] = LiveService, **environ: str
    ):
        self.root = root
        self.home = Home(root / "data", {b"HOME": os.fsencode(root)})
        self.projects = root / ".claude/projects/p"
        self.projects.mkdir(parents=True, exist_ok=True)
        self.home.create()
        self.settings = settings.load(self.home, {"CLAUDE_MEM_ENDLESS_BACKFILL": "off", **environ})
        self.service = make(self.home, self.settings)
        self.loop: asyncio.AbstractEventLoop
        self._server: _Server
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._up.wait(LONG)
        eventually(lambda: listens(os.fsencode(self.home.socket)))

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        try:
            await self.service.start()
            api = Api(self.service, self.settings, Log(self.home.log), lambda reason: None)
            config = uvicorn.Config(
                api.app(), uds=os.fspath(self.home.socket), log_config=None, lifespan="off", access_log=False
            )
            self._server = _Server(config)
        finally:
            self._up.set()
        await self._server.serve()
        await self.service.stop()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(LONG)
        assert not self._thread.is_alive()
        self.home.socket.unlink(missing_ok=True)

    @property
    def client(self) -> WorkerClient:
        return WorkerClient(self.home, LONG)

    def session(self, name: str = "s-1", **more: Any) -> Session:
        return Session(self.send, Transcript(self.projects / f"{name}.jsonl", name, **more))

    def send(self, event: str, payload: bytes, **headers: str) -> str:
        known = {"X-Endless-User-Home": str(self.root), **headers}
        return self.client.hook("claude-code", event, payload, known).decode()

    def seal(self, session: Session, timeout_ms: int = 20_000) -> SealAnswer:
        return seal(self.client, self.root, session, timeout_ms)

    def use(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        return self.service.keeper.use(lambda desk: desk.store.write(work))

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.use(lambda db: db.execute(query, values).fetchall())
        return found

    def changed(self, session: str) -> None:
        self.loop.call_soon_threadsafe(self.service.drains.changed, session)


@contextlib.contextmanager
def served_in(root: Path, make: Callable[..., LiveService] = LiveService, **environ: str) -> Iterator[Served]:
    place = Served(root, make, **environ)
    try:
        yield place
    finally:
        place.close()
