"""A home of its own for one test: HOME, project directory, settings, and shell hooks that keep notes."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .answers import COMPACT_WINDOW

API_KEY = "sk-ant-api03-laboratory-0123456789abcdefghij"

QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",
}
"""Keeps the client off the network and lets it run as root without asking."""

NOTE_SCRIPT = """#!/bin/sh
# Keeps a hook's input as a file named by the time of the call, then prints what it was told to say.
name="$1/$(date +%s%N).$$"
cat > "$name.part" && mv "$name.part" "$name.json"
[ -z "$2" ] || cat "$2"
"""


@dataclass(frozen=True)
class HookNote:
    """One call of a recording hook: when (nanoseconds), which event, and the input it got."""

    at: int
    payload: dict[str, Any]

    @property
    def event(self) -> str:
        """The event's name, with the source, trigger or reason where there is one."""
        name = str(self.payload["hook_event_name"])
        for key in ("source", "trigger", "reason"):
            if key in self.payload:
                return f"{name}:{self.payload[key]}"
        return name


class Home:
    """A fresh user: nothing of the machine's own user reaches the client.

    The directory's name is short, so that sockets below it keep under the 108 bytes of a path.
    With `config_elsewhere` the client's files are not in `~/.claude` but in CLAUDE_CONFIG_DIR.
    """

    def __init__(self, api_url: str, *, config_elsewhere: bool = False) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="em-")).resolve()
        self.home = self.root / "home"
        self.project = self.root / "project"
        self.config = self.root / "config" if config_elsewhere else self.home / ".claude"
        self.notes = self.root / "notes"
        for directory in (self.home, self.project, self.config, self.notes):
            directory.mkdir()
        self.api_url = api_url
        self.extra_env: dict[str, str] = {}
        if config_elsewhere:
            self.extra_env["CLAUDE_CONFIG_DIR"] = str(self.config)
        self._trust()

    def _trust(self) -> None:
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True}},
        }
        place = self.config if "CLAUDE_CONFIG_DIR" in self.extra_env else self.home
        (place / ".claude.json").write_text(json.dumps(state))

    @property
    def env(self) -> dict[str, str]:
        """The whole environment of the client; compaction on demand is armed (`Answer.full`)."""
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/sh",
            "ANTHROPIC_BASE_URL": self.api_url,
            "ANTHROPIC_API_KEY": API_KEY,
            "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(COMPACT_WINDOW),
            **QUIET,
            **self.extra_env,
        }

    # --- settings and hooks -----------------------------------------------------------------

    @property
    def settings(self) -> dict[str, Any]:
        """The user's settings.json as it stands; {} when there is none."""
        path = self.config / "settings.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def write_settings(self, **changes: Any) -> None:
        """Set top-level keys of settings.json, leaving the others."""
        (self.config / "settings.json").write_text(json.dumps({**self.settings, **changes}, indent=2))

    def allow(self, *rules: str) -> None:
        """Add permission rules, e.g. `Bash` or `Read(~/.endless/**)`."""
        permissions = dict(self.settings.get("permissions", {}))
        permissions["allow"] = [*permissions.get("allow", []), *rules]
        self.write_settings(permissions=permissions)

    def add_hook(self, event: str, command: str, matcher: str = "", **fields: Any) -> None:
        """Append one command hook; `fields` are further keys such as timeout."""
        hooks = dict(self.settings.get("hooks", {}))
        entry = {"matcher": matcher, "hooks": [{"type": "command", "command": command, **fields}]}
        hooks[event] = [*hooks.get(event, []), entry]
        self.write_settings(hooks=hooks)

    def note_hooks(self, *events: str, says: Mapping[str, str] | None = None) -> None:
        """Hooks that record their input. An event may carry a matcher (`SessionStart:compact`).

        `says` gives what an event's hook prints to stdout, keyed like `events`.
        """
        script = self.root / "note.sh"
        script.write_text(NOTE_SCRIPT)
        for number, name in enumerate(events):
            event, _, matcher = name.partition(":")
            words = ["sh", str(script), str(self.notes)]
            if says and name in says:
                said = self.root / f"says-{number}-{event}"
                said.write_text(says[name])
                words.append(str(said))
            self.add_hook(event, shlex.join(words), matcher)

    def hook_notes(self, *events: str) -> list[HookNote]:
        """What the recording hooks got so far, in order of time; `events` filters by plain name."""
        notes = [
            HookNote(int(path.name.split(".")[0]), json.loads(path.read_text()))
            for path in sorted(self.notes.glob("*.json"))
        ]
        return [n for n in notes if not events or n.payload["hook_event_name"] in events]

    # --- what the client writes -------------------------------------------------------------

    def transcripts(self) -> list[Path]:
        """The main transcripts of all projects, oldest change first."""
        found = (self.config / "projects").glob("*/*.jsonl")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def transcript(self, session_id: str) -> Path:
        """The main transcript of one session; FileNotFoundError when there is none."""
        for path in self.transcripts():
            if path.stem == session_id:
                return path
        raise FileNotFoundError(f"no transcript of session {session_id}")

    # --- programs ---------------------------------------------------------------------------

    def command(
        self, words: Iterable[str | Path], *, seconds: float = 20.0, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run any program as this user in the project (e.g. `[endless_bin, "install"]`)."""
        return subprocess.run(
            [str(word) for word in words],
            cwd=self.project,
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def processes(self) -> list[int]:
        """Ids of the living processes that run in this home (Linux; elsewhere always empty)."""
        mark = f"HOME={self.home}".encode()
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (directory / "environ").read_bytes().split(b"\0"):
                    found.append(int(directory.name))
        return found

    def close(self, seconds: float = 3.0) -> None:
        """End what still runs in this home, then remove it (kept if ENDLESS_KEEP_HOMES is set)."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)
            with contextlib.suppress(TimeoutError):
                wait_until(lambda: not self.processes(), seconds)
                break
        if not os.environ.get("ENDLESS_KEEP_HOMES"):
            shutil.rmtree(self.root, ignore_errors=True)


def wait_until(ready: Callable[[], Any], seconds: float = 10.0, what: str = "") -> Any:
    """Ask `ready` again and again until it is truthy, and return that; TimeoutError past the deadline.

    For states of other processes which announce nothing (a file, a screen).
    """
    deadline = time.monotonic() + seconds
    pause = 0.01
    while not (found := ready()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what or ready}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    return found
