"""claude-mem at work beside us: what of it is there, and whether it hands sessions over by itself.

A branch of claude-mem has an Endless Mode of its own: it writes ``<data dir>/bottles/`` and prints a block with the
same heading as our handoff. Two of them in one session would contradict each other, so ours stands down, unless the
setting ``BESIDE`` says otherwise. Otherwise its hooks and ours do not mind each other. Only files are looked at: its
worker is not asked anything (it answers without authentication, and some routes show keys).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from endless_mode.claude_mem.reader import FILE
from endless_mode.deliver.handoff import MARK
from endless_mode.mentions import mentions
from endless_mode.settings import GATE, Settings

#: How the heading begins that both programs put over a handoff.
HEADING = b"# [claude-mem] Endless Mode"

_NAME = "claude-mem"
_OURS = "endless_mode/hook/"
_MOST = 4 << 20
_RESUME = re.compile(r"\bresume\b")


class Beside(Struct, frozen=True):
    """What was found of claude-mem.

    ``how`` names the places its hooks come from, ``events`` what they are for, ``worker`` the process id of a running
    worker. ``hands_over`` gives in plain words the sign that it has an Endless Mode of its own in use, else empty.
    """

    how: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    version: str = ""
    database: Path | None = None
    worker: int | None = None
    hands_over: str = ""

    @property
    def installed(self) -> bool:
        """Whether its hooks run in this client."""
        return bool(self.how)


def beside(config_dir: Path, data_dir: Path) -> Beside:
    """Look for claude-mem in a client's configuration directory and a data directory. Never fails, changes nothing."""
    settings = [(name, _json(config_dir / name)) for name in ("settings.json", "settings.local.json")]
    hooks = {name: found for name, content in settings if (found := _theirs(content.get("hooks")))}
    plugin, version = _plugin(config_dir, [content for _, content in settings])
    if plugin is not None:
        groups = _json(plugin / "hooks" / "hooks.json").get("hooks")
        hooks[f"plugin in {plugin}"] = groups if isinstance(groups, dict) else {}
    database = data_dir / FILE
    return Beside(
        how=tuple(hooks),
        events=tuple(sorted({event for found in hooks.values() for event in found})),
        version=version,
        database=database if database.is_file() else None,
        worker=_worker(data_dir),
        hands_over=_hands_over(list(hooks.values()), data_dir),
    )


def stands_down(found: Beside, settings: Settings) -> str:
    """Why we hand nothing over beside what was found, in plain words; empty when we do."""
    if not found.hands_over or settings.always_beside:
        return ""
    return f"claude-mem hands over by itself ({found.hands_over})"


def foreign_handoff(transcript: Path, offset: int = 0) -> bool:
    """Whether a hook of the other program has put a handoff into a session, from a byte offset of its transcript on."""
    try:
        with transcript.open("rb") as file:
            file.seek(offset)
            return any(
                MARK.encode() not in line and b'"attachment"' in line and b'"hookEvent"' in line
                for _, line in mentions(file, HEADING)
            )
    except OSError:
        return False


def _theirs(hooks: Any) -> dict[str, list[Any]]:
    """The groups of a settings file's hooks that run claude-mem, by event."""
    found: dict[str, list[Any]] = {}
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        theirs = [g for g in groups if _runs_it(g)] if isinstance(groups, list) else []
        if theirs:
            found[str(event)] = theirs
    return found


def _runs_it(group: Any) -> bool:
    commands = group.get("hooks") if isinstance(group, dict) else None
    texts = [json.dumps(command) for command in commands] if isinstance(commands, list) else []
    return any(_NAME in text and _OURS not in text for text in texts)


def _plugin(config_dir: Path, settings: list[dict[str, Any]]) -> tuple[Path | None, str]:
    """The directory and version of claude-mem's plugin when it is switched on."""
    enabled: set[str] = set()
    for content in settings:
        switches = content.get("enabledPlugins")
        for name, on in switches.items() if isinstance(switches, dict) else ():
            if on is True and name.split("@")[0] == _NAME:
                enabled.add(name)
    if not enabled:
        return None, ""
    for name, place in _installs(_json(config_dir / "plugins" / "installed_plugins.json").get("plugins")):
        if name in enabled:
            return Path(str(place["installPath"])), str(place.get("version", ""))[:40]
    for manifest in sorted(config_dir.glob(f"plugins/cache/*/{_NAME}/*/.claude-plugin/plugin.json"), reverse=True):
        return manifest.parents[1], str(_json(manifest).get("version", ""))[:40]
    return config_dir / "plugins", ""


def _installs(plugins: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Installed plugins with their places; one place or a list of them, by the client's version."""
    for name, places in plugins.items() if isinstance(plugins, dict) else ():
        for place in places if isinstance(places, list) else [places]:
            if isinstance(place, dict) and isinstance(place.get("installPath"), str):
                yield str(name), place


def _hands_over(hooks: list[dict[str, Any]], data_dir: Path) -> str:
    if not hooks or str(_json(data_dir / "settings.json").get(GATE, "true")).lower() == "false":
        return ""
    for found in hooks:
        if "render-bottle" in json.dumps(found):
            return "its hooks render bottles"
        starts = found.get("SessionStart")
        groups = [g for g in starts if isinstance(g, dict)] if isinstance(starts, list) else []
        if any(_RESUME.search(str(group.get("matcher", ""))) for group in groups):
            return "its hooks answer when a session is resumed"
    if any(data_dir.glob("bottles/*.md")):
        return f"there are bottles of its own in {data_dir / 'bottles'}"
    return ""


def _worker(data_dir: Path) -> int | None:
    pid = _json(data_dir / "worker.pid").get("pid")
    if not isinstance(pid, int) or pid <= 1:
        return None
    try:
        os.kill(pid, 0)
    except PermissionError:
        return pid
    except (OSError, OverflowError):
        return None
    return pid


def _json(path: Path) -> dict[str, Any]:
    """A small file's JSON object, empty for anything else."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST:
            return {}
        content = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
