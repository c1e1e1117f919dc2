"""Two ways to the product: its service in this process, fast and with trouble inside it, and the real hook command
with a real worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from endless_mode import settings
from endless_mode.bottle import prefixes as prefixes_module
from endless_mode.bottle import render as render_module
from endless_mode.bottle import session as bottle_session
from endless_mode.bottle.entries import Speech
from endless_mode.bottle.parse import parse
from endless_mode.deliver import desk as desk_module
from endless_mode.deliver.desk import NothingLeft
from endless_mode.errors import EndlessError
from endless_mode.home import Home
from endless_mode.worker.live import LiveService
from endless_mode.worker.messages import HookEnv, HookInput
from tests.live.parts import Living

BUDGETS = {"SessionStart": 8.0, "UserPromptSubmit": 3.0, "PreCompact": 25.0, "SessionEnd": 1.2}
OTHER_BUDGET = 2.0
ENVIRON = {"CLAUDE_MEM_ENDLESS_BACKFILL": "off"}


def speech_of(path: Path) -> list[str]:
    return [e.text for e in parse(path.read_text()).entries if isinstance(e, Speech)]


class Killed(Exception):
    """What an answer is from a worker that died: none."""


class Inside:
    """The service without its socket. A kill stops the database where it is: nothing of it moves any more."""

    inside = True

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Home(root / "data")
        self.projects = root / ".claude/projects/p"
        self.home.create()
        self._skew = 0.0
        self._names = 0
        self._throws = self._readonly = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._real_write, self._real_time = bottle_session.write, desk_module.time
        # So that the short bottles here are copied in part from the ones before, as long ones are.
        self._real_sizes = prefixes_module.WORTH, render_module.ONE_READ_BYTES
        prefixes_module.WORTH = render_module.ONE_READ_BYTES = 0
        bottle_session.write = self._write  # type: ignore[assignment]
        desk_module.time = _Clock(self)  # type: ignore[assignment]
        self.service: LiveService | None = None
        self.hooks = self.kills = 0
        self.over: list[str] = []
        self.restart()

    def close(self) -> None:
        bottle_session.write, desk_module.time = self._real_write, self._real_time
        prefixes_module.WORTH, render_module.ONE_READ_BYTES = self._real_sizes
        if self.service is not None:
            self._wait(self.service.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    def _wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    # -- hooks ---------------------------------------------------------------------------------------------

    def fire(self, event: str, payloads: list[dict[str, Any]], kill: float | None = None) -> list[str]:
        calls = []
        for payload in payloads:
            self._names += 1
            calls.append((msgspec.convert(payload, HookInput), HookEnv(request=f"1-{self._names}")))
        if self.service is None:
            self.restart()
            if event != "SessionStart":  # the hook keeps the event and starts a worker
                calls = [(p, msgspec.structs.replace(e, spooled=True)) for p, e in calls]
        self.hooks += len(calls)
        died = self._doom(int(kill**3 * 4_000)) if kill is not None else None
        printed = self._all(event, calls)
        if died is None:
            return printed
        answered = not died()
        self.kill()
        if answered:
            return printed  # it came out before the worker died
        if event != "SessionStart":
            return ["" for _ in printed]
        self.restart()
        return self._all(event, calls)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """For as many hooks as were said nothing can be written to the database."""
        if not self._readonly or self.service is None:
            yield
            return
        self._readonly -= 1
        store = self.service.keeper.desk.store

        def refuse(_: Any) -> Any:
            error = sqlite3.OperationalError("attempt to write a readonly database")
            error.sqlite_errorcode = 8
            raise error

        store.write = refuse  # type: ignore[method-assign]
        try:
            yield
        finally:
            del store.write  # type: ignore[method-assign]

    def _all(self, event: str, calls: list[tuple[HookInput, HookEnv]]) -> list[str]:
        async def together() -> list[Any]:
            assert self.service is not None
            hooks = [self.service.hook("claude-code", event, payload, env) for payload, env in calls]
            return await asyncio.gather(*hooks, return_exceptions=True)

        with self._writing():
            answers = self._wait(together())
        return [answer.decode() if isinstance(answer, bytes) else "" for answer in answers]

    def seal_late(self, payload: dict[str, Any]) -> Callable[[], None]:
        assert self.service is not None
        keeper, path = self.service.keeper, Path(payload["transcript_path"])
        at = keeper.use(lambda desk: desk.tail(payload["session_id"], path))
        before = keeper.use(lambda desk: desk.handed(at))

        def arm() -> None:
            with contextlib.suppress(Exception):
                if self.service is not None:
                    self.service.keeper.use(lambda desk: desk.seal(at, before))

        return arm

    # -- life ----------------------------------------------------------------------------------------------

    def up(self) -> bool:
        return self.service is not None

    def _doom(self, steps: int) -> Callable[[], bool]:
        """After so many hundred steps of the database engine nothing in it moves; returns whether that has come."""
        assert self.service is not None
        left = [steps]

        def stop() -> int:
            left[0] -= 1
            return int(left[0] < 0)

        store = self.service.keeper.desk.store
        store._db.set_progress_handler(stop, 100)
        return lambda: left[0] < 0

    def kill(self) -> None:
        if self.service is None:
            return
        self.kills += 1
        service, self.service = self.service, None
        store = service.keeper.desk.store
        store._db.set_progress_handler(lambda: 1, 1)  # nothing more is written
        self._wait(_abandon(service))
        service._pool.shutdown(wait=True)
        store._closed = True
        store._work.put(None)
        store._thread.join(30)
        for reader in store._readers:
            reader.close()
        store._db.set_progress_handler(None, 0)
        with contextlib.suppress(sqlite3.Error):
            store._db.close()
        if store._lock is not None:
            os.close(store._lock)

    def restart(self) -> None:
        if self.service is not None:
            self._wait(self.service.stop())
        self.service = LiveService(self.home, settings.load(self.home, ENVIRON))
        self._wait(self.service.start())

    def delete(self, under: bool) -> None:
        if not under:
            self.kill()
        for part in self.home.root.glob("endless.db*"):
            if not part.name.endswith(".writer"):
                part.unlink()
        if self.service is not None:
            self.service.keeper._tried = 0.0
            self.service.keeper.look_after()

    def clock(self) -> float:
        return time.time() + self._skew

    def skew(self, by: float) -> None:
        self._skew += by

    def installed_at(self) -> float:
        if self.service is None:
            self.restart()
        assert self.service is not None
        return self.service.keeper.desk.installed_at

    # -- trouble -------------------------------------------------------------------------------------------

    def trouble(self, name: str, times: int) -> None:
        if name == "throw":
            self._throws = times
        elif name == "readonly":
            self._readonly = times
        else:
            self._throws = self._readonly = 0

    def troubled(self) -> bool:
        return bool(self._throws or self._readonly)

    def _write(self, *given: Any) -> Any:
        if self._throws:
            self._throws -= 1
            raise RuntimeError("told to")
        return self._real_write(*given)

    def bottle(self, session: str, path: Path) -> list[str] | None:
        if self.service is None:
            self.restart()
        assert self.service is not None
        try:
            bottle = self.service.keeper.use(lambda desk: desk.render(desk.tail(session, path)))
        except NothingLeft:
            return None
        return speech_of(bottle.path)


class _Clock:
    """The module ``time`` with another now."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside

    def time(self) -> float:
        return self._inside.clock()

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


async def _abandon(service: LiveService) -> None:
    for task in service._tasks:
        task.cancel()
    await asyncio.gather(*service._tasks, return_exceptions=True)
    await service._renders.cancel()


class Outside:
    """The real hook command and a real worker, killed with kill -9."""

    inside = False

    def __init__(self, root: Path) -> None:
        self.living = Living(root)
        self.projects = self.living.projects
        self.hooks = self.kills = 0
        self.over: list[str] = []
        self.exits: list[int] = []
        self.living.start()

    def close(self) -> None:
        self.living.close()

    def fire(self, event: str, payloads: list[dict[str, Any]], kill: float | None = None) -> list[str]:
        self.hooks += len(payloads)
        with ThreadPoolExecutor(len(payloads) + 1) as pool:
            jobs = [pool.submit(self._one, event, json.dumps(payload).encode()) for payload in payloads]
            if kill is not None:
                threading.Event().wait(kill * 0.25)
                self.kill()
            return [job.result(60) for job in jobs]

    def _one(self, event: str, payload: bytes) -> str:
        began = time.monotonic()
        done = self.living.hook(event, payload)
        took = time.monotonic() - began
        if done.returncode != 0 or done.stderr:
            self.exits.append(done.returncode)
        if took > BUDGETS.get(event, OTHER_BUDGET) + 0.5:
            self.over.append(f"{event} took {took:.1f} s")
        return done.stdout.decode()

    def seal_late(self, payload: dict[str, Any]) -> Callable[[], None]:
        return lambda: None

    def up(self) -> bool:
        return self.living.answers()

    def kill(self) -> None:
        self.kills += 1
        self.living.kill()

    def restart(self) -> None:
        self.kill()
        self.living.start()

    def delete(self, under: bool) -> None:
        if not under:
            self.kill()
        for part in self.living.home.root.glob("endless.db*"):
            if not part.name.endswith(".writer"):
                part.unlink()
        if under and self.up():
            until = time.monotonic() + 15
            while not self.living.home.database.exists() and time.monotonic() < until:
                threading.Event().wait(0.05)

    def clock(self) -> float:
        return time.time()

    def skew(self, by: float) -> None: ...

    def installed_at(self) -> float:
        return float((self.living.home.root / "installed").read_text())

    def trouble(self, name: str, times: int) -> None: ...

    def troubled(self) -> bool:
        return False

    def bottle(self, session: str, path: Path) -> list[str] | None:
        if not self.up():
            self.living.start()
        body = json.dumps({"contentSessionId": session, "transcriptPath": str(path), "wait": True}).encode()
        headers = {"Content-Type": "application/json", "X-Endless-User-Home": str(self.living.root)}
        try:
            self.living.client.request("POST", "/api/sessions/render-bottle", body, headers)
        except EndlessError as error:
            if error.status == 404:
                return None
            raise
        return speech_of(self.living.home.bottles / f"{session}.md")
