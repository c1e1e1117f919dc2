"""What is installed: hooks and rules of ours in the settings that a client would read. Only reads."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from endless_mode.errors import EndlessError
from endless_mode.home import Home
from endless_mode.install import file
from endless_mode.install.entries import TIMEOUTS, hook_entries, rules
from endless_mode.install.merge import checked, found


class Place(Struct):
    """One settings file: what of ours is in it.

    ``events`` are those with a hook of ours, ``strange`` those whose hook is not the one this install would write
    (another interpreter, another version's place), ``rules`` our permission rules in it. ``problem`` says why the file
    could not be read.
    """

    path: str
    scope: str
    exists: bool = False
    events: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def complete(self) -> bool:
        """All our hooks are here and point to this install."""
        return set(self.events) == set(TIMEOUTS) and not self.strange


def client_dir() -> Path:
    """The client's configuration directory."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def places(home: Home) -> list[Place]:
    """The settings files that count here: the user's, then the project's two."""
    project = Path.cwd() / ".claude"
    scopes = [
        ("user", client_dir() / "settings.json"),
        ("project", project / "settings.json"),
        ("local", project / "settings.local.json"),
    ]
    real: dict[str, Place] = {}
    for scope, path in scopes:
        real.setdefault(os.path.realpath(path), look(path, scope, home))
    return list(real.values())


def look(path: Path, scope: str, home: Home) -> Place:
    """Look into one settings file."""
    place = Place(str(path), scope)
    try:
        text = file.read(path).text
        value = {} if text is None else checked(text, str(path))
    except EndlessError as error:
        place.exists, place.problem = True, error.message
        return place
    place.exists = text is not None
    ours = found(value)
    wanted = [
        {event: entry["hooks"][0]["command"] for event, entry in hook_entries(data).items()} for data in _data(home)
    ]
    place.events = sorted(ours)
    place.doubled = sorted(event for event, hooks in ours.items() if len(hooks) > 1)
    place.strange = sorted(
        event
        for event, hooks in ours.items()
        if any(hook.get("command") not in [line.get(event) for line in wanted] for hook in hooks)
    )
    allow = value.get("permissions", {}).get("allow", [])
    place.rules = [rule for rule in rules(home) if rule in allow]
    return place


def installed_since(home: Home) -> int | None:
    """When this home was installed, in milliseconds; None when it was not."""
    try:
        return int((home.root / "installed").read_text())
    except (OSError, ValueError):
        return None


def settings_of(path: Path) -> dict[str, Any]:
    """A settings file's values; empty when there is none or it cannot be read."""
    try:
        text = file.read(path).text
        return {} if text is None else checked(text, str(path))
    except EndlessError:
        return {}


def plugin(settings: Iterable[dict[str, Any]]) -> str:
    """The name of our plugin where it is enabled in one of these settings; empty where it is not."""
    for value in settings:
        enabled = value.get("enabledPlugins")
        for name, on in enabled.items() if isinstance(enabled, dict) else ():
            if on and name.partition("@")[0] == "endless-mode":
                return str(name)
    return ""


def managed(system: str = "", root: Path = Path("/")) -> list[Path]:
    """The settings files that an administrator may have laid down, those that exist (client 2.1.332).

    Not among them: what macOS keeps as managed preferences, and what the client got from its server.
    """
    directory = {
        "Darwin": root / "Library/Application Support/ClaudeCode",
    }.get(system or platform.system(), root / "etc/claude-code")
    found = [directory / "managed-settings.json"]
    drops = directory / "managed-settings.d"
    with contextlib.suppress(OSError):
        found += sorted(path for path in drops.iterdir() if path.suffix == ".json" and not path.name.startswith("."))
    return [path for path in found if path.exists()]


def _data(home: Home) -> list[str]:
    """The data directory may be written into the hooks or left to the default; both name this home."""
    return ["", str(home.data_dir)]
