"""The real client as a process: one prompt (`-p`), several prompts in one process, resume, fork, kill."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from .home import Home
from .tui import Tui

DEADLINE = 30.0


@dataclass(frozen=True)
class Result:
    """How one `-p` run ended. `message` is the client's result object ({} if it printed none)."""

    exit: int
    message: dict[str, Any]
    stdout: str
    stderr: str
    seconds: float

    @property
    def session_id(self) -> str:
        """The session the run belonged to (a fork's is the new one)."""
        return str(self.message["session_id"])

    @property
    def text(self) -> str:
        """The model's last words."""
        return str(self.message.get("result", ""))


class Running:
    """A client process with JSON lines on stdout. Kills its whole process group on leaving."""

    def __init__(self, words: list[str], home: Home, *, stdin: bool) -> None:
        self.started = time.monotonic()
        self.process: subprocess.Popen[str] = subprocess.Popen(
            words,
            cwd=home.project,
            env=home.env,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.events: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._changed = threading.Condition()
        assert self.process.stdout is not None and self.process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._read_errors, args=(self.process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            with self._changed:
                self.lines.append(line)
                with contextlib.suppress(json.JSONDecodeError):
                    event = json.loads(line)
                    self.events.append(event)
                self._changed.notify_all()

    def _read_errors(self, stream: IO[str]) -> None:
        for line in stream:
            self.errors.append(line)

    def wait_event(
        self, wanted: Callable[[dict[str, Any]], bool], start: int = 0, seconds: float = DEADLINE
    ) -> dict[str, Any]:
        """The first stdout event from position `start` that is `wanted`; TimeoutError if none comes."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                for event in self.events[start:]:
                    if wanted(event):
                        return event
                left = deadline - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._readers[0].is_alive()):
                    tail = "".join(self.lines[-3:])[-1500:] + "".join(self.errors)[-1500:]
                    raise TimeoutError(f"no such event (exit {self.process.poll()}): {tail}")
                self._changed.wait(min(left, 0.25))

    def wait(self, seconds: float = DEADLINE) -> Result:
        """Wait for the end of the process; it is killed and TimeoutExpired raised past the deadline."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise
        for reader in self._readers:
            reader.join(5)
        results = [event for event in self.events if event.get("type") == "result"]
        return Result(
            self.process.returncode,
            results[-1] if results else {},
            "".join(self.lines),
            "".join(self.errors),
            time.monotonic() - self.started,
        )

    def kill9(self) -> None:
        """SIGKILL to the client and what it started in its process group: no hook runs any more."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(5)

    def terminate(self) -> None:
        """SIGTERM to the client alone: SessionEnd hooks still run."""
        self.process.terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill9()


class Stream(Running):
    """`-p` with stream-json both ways: several prompts in one process."""

    def send(self, prompt: str) -> None:
        """Type a prompt without waiting (while the model works it is queued)."""
        assert self.process.stdin is not None
        content = [{"type": "text", "text": prompt}]
        line = {"type": "user", "message": {"role": "user", "content": content}}
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def ask(self, prompt: str, seconds: float = DEADLINE) -> dict[str, Any]:
        """Send a prompt and return the result object of its turn."""
        start = len(self.events)
        self.send(prompt)
        return self.wait_event(lambda event: event.get("type") == "result", start, seconds)

    @property
    def session_id(self) -> str:
        """The session's id, known from the first prompt on."""
        return str(self.wait_event(lambda event: "session_id" in event)["session_id"])

    def finish(self, seconds: float = DEADLINE) -> Result:
        """End of input: the client leaves by itself, SessionEnd included."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait(seconds)


@dataclass(frozen=True)
class Client:
    """One version of the real client in one home.

    All ways to start it take the same keywords: `resume` (a session id), `fork` (of the resumed
    session), `proceed` (`--continue`), `skip_permissions`, and further command line words.
    """

    version: str
    path: Path
    home: Home

    def words(
        self,
        *more: str,
        resume: str = "",
        fork: bool = False,
        proceed: bool = False,
        skip_permissions: bool = False,
    ) -> list[str]:
        """The command line."""
        words = [str(self.path)]
        words += ["--resume", resume] if resume else []
        words += ["--continue"] if proceed else []
        words += ["--fork-session"] if fork else []
        words += ["--dangerously-skip-permissions"] if skip_permissions else []
        return [*words, *more]

    def start(self, prompt: str, *more: str, **how: Any) -> Running:
        """Start `-p` with one prompt and do not wait for it."""
        output = ["--output-format", "stream-json", "--verbose"]
        return Running(self.words("-p", prompt, *output, *more, **how), self.home, stdin=False)

    def run(self, prompt: str, *more: str, seconds: float = DEADLINE, **how: Any) -> Result:
        """Run `-p` with one prompt to its end."""
        with self.start(prompt, *more, **how) as running:
            return running.wait(seconds)

    def stream(self, *more: str, **how: Any) -> Stream:
        """Start a process that takes several prompts. Use as a context manager."""
        both = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        return Stream(self.words("-p", *both, *more, **how), self.home, stdin=True)

    def tui(self, *more: str, **how: Any) -> Tui:
        """Start the interactive client in a terminal. Use as a context manager."""
        return Tui(self.words(*more, **how), self.home)
