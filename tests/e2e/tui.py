"""The interactive client in a terminal of its own (tmux on a private socket)."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from types import TracebackType

from .home import Home, wait_until

DEADLINE = 15.0
MISSING = "" if shutil.which("tmux") else "tmux is not installed"
"""Why no terminal can be had; empty when it can."""


class Tui:
    """One interactive client, 160 by 50. Use as a context manager; leaving kills it."""

    def __init__(self, words: list[str], home: Home) -> None:
        self.home = home
        self._socket = str(home.root / "tmux")
        command = f"cd {shlex.quote(str(home.project))} && exec {shlex.join(words)}"
        assignments = [word for name, value in home.env.items() for word in ("-e", f"{name}={value}")]
        self._tmux(
            *["-f", "/dev/null", "new-session", "-d", "-s", "client", "-x", "160", "-y", "50"],
            *assignments,
            command,
        )
        self.pid = int(self._tmux("display-message", "-p", "-t", "client", "#{pane_pid}"))
        self._turns = self._turns_over()

    def _tmux(self, *words: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home.home), "LANG": "C.UTF-8"}
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words],
            env=env,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        return done.stdout

    @property
    def screen(self) -> str:
        """What the terminal shows now; empty once the client is gone."""
        try:
            return self._tmux("capture-pane", "-p", "-t", "client")
        except subprocess.CalledProcessError:
            return ""

    @property
    def alive(self) -> bool:
        """The client's process still runs."""
        try:
            self._tmux("has-session", "-t", "client")
        except subprocess.CalledProcessError:
            return False
        return True

    def wait_for(self, text: str, seconds: float = DEADLINE) -> str:
        """The screen, once it shows `text`; TimeoutError with the last screen otherwise."""
        screen = ""

        def shown() -> bool:
            nonlocal screen
            screen = self.screen
            return text in screen

        try:
            wait_until(shown, seconds)
        except TimeoutError:
            raise TimeoutError(f"{text!r} not on screen within {seconds} s:\n{screen}") from None
        return screen

    def answered(self, text: str, seconds: float = DEADLINE) -> str:
        """The screen, once it shows an answer and the turn is over: its Stop hooks have ended and the client is at rest.

        What is typed before that is queued or interrupts the turn.
        """
        screen = self.wait_for(text, seconds)
        self._turns += 1
        wait_until(lambda: self._turns_over() >= self._turns, seconds, f"the end of the turn that said {text!r}")
        return screen

    def _turns_over(self) -> int:
        return sum(path.read_bytes().count(b'"subtype":"turn_duration"') for path in self.home.transcripts())

    def ready(self, seconds: float = DEADLINE) -> Tui:
        """Wait until the client takes input."""
        self.wait_for("❯", seconds)
        return self

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names: Enter, Escape, C-c, Up ..."""
        self._tmux("send-keys", "-t", "client", *names)

    def write(self, text: str) -> None:
        """Type text into the prompt and wait until it stands there. No Enter."""
        self._tmux("send-keys", "-t", "client", "-l", text)
        self.wait_for(text[-40:].splitlines()[-1])

    def enter(self, text: str) -> None:
        """Type a line and press Enter."""
        self.write(text)
        self.keys("Enter")

    def kill9(self) -> None:
        """SIGKILL to the client."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        wait_until(lambda: not self.alive, 5, "the client's end")

    def leave(self, seconds: float = DEADLINE) -> None:
        """/exit, and wait for the client's end (SessionEnd included)."""
        self.enter("/exit")
        wait_until(lambda: not self.alive, seconds, "the client's end")

    def __enter__(self) -> Tui:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
            self._tmux("kill-server")
