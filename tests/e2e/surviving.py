"""The product installed under the real client, and what must hold of it after every run.

    with surviving(client, api, endless_bin) as us:
        us.client.run("Work until full")

On leaving: no hook of ours failed as far as the client says, the worker logged no error, no summariser read
anything of ours, and no process is left once the worker was asked to stop.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from .answers import Answer
from .client import Client
from .home import Home, wait_until
from .messages_api import MessagesApi
from .plan import HANDOFF_HEADER, FollowPlan, handoffs_in
from .recorded import SUMMARISER_MARK, Request

FAILED = re.compile(r"Hook \S+ \(\w+\) (?:error|cancelled).*")
FAILURES = ("hook_non_blocking_error", "hook_blocking_error", "hook_cancelled", "hook_error_during_execution")

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Watched(Client):
    """A client that writes its debug log into the home: hooks that fail are told there. `before` stands before it."""

    before: tuple[str, ...] = ()

    def words(self, *more: str, **how: Any) -> list[str]:
        """The command line, with a debug file of its own for each start."""
        log = self.home.root / f"debug-{next(_numbers)}.log"
        return [*self.before, *super().words(*more, **how), "--debug-file", str(log)]


def as_plain_user() -> tuple[str, ...]:
    """Words before a command line after which the permissions of files hold for root, too."""
    if os.getuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("runs as root, and setpriv is not installed")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@dataclass
class Plan(FollowPlan):
    """Follows a plan, and keeps each bottle as it was when its handoff arrived."""

    bottles: dict[str, str] = field(default_factory=dict)

    def __call__(self, request: Request) -> Answer | None:
        """See :class:`FollowPlan`."""
        answer = super().__call__(request)
        for tool in self.issued:
            path = tool.input["file_path"]
            if path not in self.bottles:
                self.bottles[path] = Path(path).read_text()
        return answer

    def got(self, request: Request) -> str:
        """What the plan's calls gave, as it stands in a later request: the very lines that were asked for.

        Fails when a call was refused, cut, or answered with anything else.
        """
        assert self.issued, "the handoff named no file"
        results = results_of(request)
        found = []
        for tool in self.issued:
            error, text = results[json.dumps(tool.input, sort_keys=True)]
            assert not error, text
            lines = self.bottles[tool.input["file_path"]].removesuffix("\n").split("\n")
            start = tool.input.get("offset", 1)
            end = start - 1 + tool.input.get("limit", len(lines))
            wanted = "\n".join(f"{n}\t{lines[n - 1]}" for n in range(start, min(end, len(lines)) + 1))
            assert wanted in text, text[:2000]
            found.append(text)
        return "\n".join(found)


def results_of(request: Request) -> dict[str, tuple[bool, str]]:
    """A call's input (as sorted JSON) → whether its result is an error, and its text."""
    calls: dict[str, str] = {}
    found: dict[str, tuple[bool, str]] = {}
    for message in request.body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "tool_use":
                calls[block["id"]] = json.dumps(block["input"], sort_keys=True)
            if block.get("type") == "tool_result":
                content = block.get("content") or ""
                text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
                found[calls[block["tool_use_id"]]] = (bool(block.get("is_error")), text)
    return found


@dataclass
class Surviving:
    """An install in one home; `complaints` are log entries of the worker that a test expects."""

    client: Watched
    api: MessagesApi
    endless: Path
    complaints: set[str] = field(default_factory=set)

    @property
    def home(self) -> Home:
        """The user's home."""
        return self.client.home

    @property
    def root(self) -> Path:
        """The product's own home."""
        data = self.home.env.get("CLAUDE_MEM_DATA_DIR")
        return (Path(data) if data else self.home.home / ".claude-mem") / "endless"

    def install(self, *words: str) -> None:
        """`endless install`."""
        self.home.extra_env.setdefault("PATH", f"{self.endless.parent}{os.pathsep}{os.environ['PATH']}")
        done = self.home.command([self.endless, "install", *words])
        assert done.returncode == 0, done.stderr

    def bottle(self, session_id: str) -> str:
        """A session's bottle as it stands; empty when there is none."""
        path = self.root / "bottles" / f"{session_id}.md"
        return path.read_text() if path.exists() else ""

    def once(self, request: Request, *words: str) -> str:
        """The one handoff of a request; `words` stand in it."""
        found = handoffs_in(request)
        assert len(found) == 1, f"{len(found)} handoffs"
        assert request.count(HANDOFF_HEADER) == 1
        for word in words:
            assert word in found[0], found[0]
        return found[0]

    def worker(self) -> int:
        """The worker's process id; 0 when none lives."""
        try:
            number = int((self.root / "run/worker.lock").read_text())
            os.kill(number, 0)
        except (OSError, ValueError):
            return 0
        return number if number in self.home.processes() else 0

    def kill_worker(self) -> int:
        """SIGKILL to the worker; returns its id."""
        number = int(wait_until(self.worker, 10, "a worker"))
        os.kill(number, signal.SIGKILL)
        wait_until(lambda: number not in self.home.processes(), 5, "the worker's end")
        return number

    def remove_hook(self, event: str) -> None:
        """Take one event of ours out of the settings, as another program might."""
        hooks = {name: entries for name, entries in self.home.settings["hooks"].items() if name != event}
        assert hooks != self.home.settings["hooks"]
        self.home.write_settings(hooks=hooks)

    def log(self) -> list[dict[str, Any]]:
        """The worker's log."""
        path = self.root / "logs/worker.log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def failures(self) -> list[str]:
        """Hooks that failed or were cancelled, by the client's debug logs and transcripts."""
        found = []
        for log in self.home.root.glob("debug-*.log"):
            found += FAILED.findall(log.read_text(errors="replace"))
        for transcript in self.home.transcripts():
            lines = transcript.read_text().splitlines()
            found += [line for line in lines if any(f'"type":"{kind}"' in line for kind in FAILURES)]
        return found

    def check(self) -> None:
        """What must hold after every run; see the module."""
        assert self.failures() == []
        errors = [entry for entry in self.log() if entry["level"] == "error" and entry["name"] not in self.complaints]
        assert errors == []
        for request in self.api.summariser[:1]:
            assert request.count(HANDOFF_HEADER) == 0
        for request in self.api.summariser:
            asked = request.last_user_text.partition(SUMMARISER_MARK)[2]
            assert asked and "endless" not in asked.lower().replace(str(self.home.root).lower(), ""), asked[-2000:]
        self.home.command([self.endless, "worker", "stop"])
        wait_until(lambda: not self.home.processes(), 10, "the end of every process")


@contextmanager
def surviving(
    client: Client, api: MessagesApi, endless: Path, *, home: Home | None = None, install: bool = True
) -> Iterator[Surviving]:
    """An install under `client`, checked on leaving. `home` replaces the client's own."""
    chosen = client if home is None else replace(client, home=home)
    us = Surviving(Watched(chosen.version, chosen.path, chosen.home), api, endless)
    if install:
        us.install()
    yield us
    us.check()
