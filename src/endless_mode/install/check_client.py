"""Checks of the client's side: hooks, rules, what silences them, and whether they arrive."""

from __future__ import annotations

import fnmatch
import os
import shlex
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

from endless_mode.install import entries, look
from endless_mode.install.checks import Check, Context, plural
from endless_mode.install.merge import found
from endless_mode.store import open_reader

#: Seconds a transcript may be ahead of the first hook.
PATIENCE = 120


def hooks(at: Context) -> Check:
    """All hooks are in the settings and point to this install."""
    broken = [place for place in at.places if place.problem]
    if broken:
        return Check("hooks", "fail", broken[0].problem, "The client ignores such a file too. Correct it by hand.")
    have = [place for place in at.places if place.events]
    plugin = look.plugin(at.everywhere().values())
    if not have:
        if plugin:
            return Check("hooks", "ok", f"The hooks come from the plugin {plugin}.")
        return Check("hooks", "fail", "No hook of ours is in the client's settings.", "Run `endless install`.")
    strange = [place for place in have if place.strange]
    if strange:
        return Check(
            "hooks",
            "fail",
            f"Hooks in {strange[0].path} belong to another install.",
            "Run `endless install` to replace them.",
        )
    missing = sorted(set(entries.TIMEOUTS) - {event for place in have for event in place.events})
    if missing:
        return Check("hooks", "fail", f"Hooks are missing: {', '.join(missing)}.", "Run `endless install`.")
    if plugin or any(place.doubled for place in have):
        return Check(
            "hooks",
            "warn",
            "The hooks are installed twice; each event is sent twice.",
            f"Run `endless install{' --rules-only' if plugin else ''}`.",
        )
    return Check("hooks", "ok", f"All hooks are in {have[0].path}.")


def programs(at: Context) -> Check:
    """The interpreter and the hook file that the hooks name are there, and run."""
    named = {pair for value in at.client.values() for pair in map(_programs, _commands(value)) if pair}
    if not named:
        return Check("programs", "ok", "No hook names a program.")
    for interpreter, hook in sorted(named):
        gone = next((p for p, right in ((interpreter, os.X_OK), (hook, os.R_OK)) if not os.access(p, right)), None)
        if gone:
            return Check(
                "programs",
                "fail",
                f"{gone} is gone, so the hooks do nothing.",
                "Run `endless install` from the install that is to be used.",
            )
        if not _runs(interpreter, hook):
            return Check(
                "programs",
                "fail",
                f"{interpreter} does not run the hook.",
                "Run `endless install` from an install that works.",
            )
    passing = next((i for i, _ in named if "/uv/archive-v" in i or "/.cache/uv/" in i), None)
    if passing:
        return Check(
            "programs",
            "warn",
            f"{passing} lies in a cache that may be emptied.",
            "Install for good: `uv tool install endless-mode`.",
        )
    return Check("programs", "ok", "The interpreter and the hook file are there and run.")


def rules(at: Context) -> Check:
    """The model may read bottles and call ``endless show``: the rules are there and nothing denies them."""
    bottles = str(at.home.bottles)
    for path, value in at.everywhere().items():
        for kind in ("deny", "ask"):
            hit = next((rule for rule in _list(value, kind) if covers(rule, bottles, _base(path))), None)
            if hit:
                word = "forbids the model to read" if kind == "deny" else "makes the client ask before the model reads"
                return Check(
                    "rules", "warn", f"The rule {hit} in {path} {word} bottles.", "Narrow that rule; it beats ours."
                )
    allowed = {rule for value in at.everywhere().values() for rule in _list(value, "allow")}
    if not allowed & set(entries.read_rules(at.home)) and not any(
        covers(rule, bottles, Path.home()) for rule in allowed
    ):
        return Check(
            "rules",
            "fail",
            "No rule lets the model read bottles; the handoff itself still arrives.",
            "Run `endless install`.",
        )
    if not all(rule in allowed or "Bash" in allowed for rule in entries.COMMAND_RULES):
        return Check("rules", "warn", "No rule lets the model run `endless show`.", "Run `endless install`.")
    return Check("rules", "ok", "The model may read bottles and expand lines.")


def silenced(at: Context) -> Check:
    """Nothing turns hooks or rules off."""
    for path, value in at.everywhere().items():
        if value.get("disableAllHooks") is True:
            return Check("silenced", "fail", f"`disableAllHooks` in {path} turns all hooks off.", "Remove it.")
    for path, value in at.managed.items():
        if value.get("allowManagedHooksOnly") is True:
            return Check(
                "silenced", "fail", f"`allowManagedHooksOnly` in {path} lets only the administrator's hooks run.",
                "Ask the administrator to add the hooks that `endless install --dry-run` prints.",
            )  # fmt: skip
    for path, value in at.managed.items():
        if value.get("allowManagedPermissionRulesOnly") is True:
            return Check(
                "silenced", "warn", f"`allowManagedPermissionRulesOnly` in {path} turns our rules off.",
                "The client asks before a bottle is read; in print mode it refuses, and only the handoff serves.",
            )  # fmt: skip
    return Check("silenced", "ok", "Nothing turns hooks or rules off.")


def arriving(at: Context) -> Check:
    """Sessions that write transcripts are known to us, so their hooks do arrive."""
    if not at.settings.enabled:
        return Check("arriving", "ok", "Switched off by CLAUDE_MEM_ENDLESS_MODE_ENABLED.")
    if at.since is None or not (any(place.events for place in at.places) or look.plugin(at.everywhere().values())):
        return Check("arriving", "ok", "Nothing is installed, so no hook is expected.")
    horizon = at.since / 1000 + PATIENCE
    recent = [(mtime, path) for mtime, path in _transcripts(at) if mtime > horizon][:20]
    known = _known(at)
    unknown = [path for mtime, path in recent if path.stem not in known and time.time() - mtime < 86_400]
    if recent and not any(path.stem in known for _, path in recent):
        return Check(
            "arriving", "fail", f"Transcripts grow, but no hook has arrived: {recent[0][1]}.",
            "Sessions older than the install need a restart. If new ones send nothing either, see the other lines.",
        )  # fmt: skip
    if unknown:
        return Check(
            "arriving", "warn", f"{plural(len(unknown), 'session')} of the last day sent no hook.",
            "Sessions older than the install, or run without settings, and excluded projects send none.",
        )  # fmt: skip
    return Check("arriving", "ok", "Hooks arrive." if recent else "No session has run since the install.")


def covers(rule: object, directory: str, base: Path) -> bool:
    """Whether a permission rule speaks of reading files in a directory. ``base`` is what a relative pattern is of."""
    if not isinstance(rule, str):
        return False
    if rule in ("Read", "Read(*)", "Read(**)", "Read(//**)"):
        return True
    if not (rule.startswith("Read(") and rule.endswith(")")):
        return False
    pattern = rule[5:-1]
    if pattern.startswith("//"):
        pattern = pattern[1:]
    elif pattern.startswith("~/"):
        pattern = str(Path.home() / pattern[2:])
    elif pattern.startswith("/"):
        pattern = str(base) + pattern
    else:
        return False
    plain = pattern.replace("\\", "").replace("**", "*")
    return any(
        fnmatch.fnmatchcase(f"{place}/x.md", plain) or f"{place}/**" == pattern.replace("\\", "")
        for place in _both(directory)
    )


def _both(directory: str) -> set[str]:
    return {directory, os.path.realpath(directory)}


def _base(settings: str) -> Path:
    return Path(settings).parent.parent


def _commands(value: dict[str, Any]) -> list[str]:
    return [str(hook.get("command")) for hooks in found(value).values() for hook in hooks]


def _programs(line: str) -> tuple[str, str] | None:
    """The interpreter and the hook file that a hook's command runs."""
    try:
        words = shlex.split(line)
        start = words.index("-I")
    except ValueError:
        return None
    return (words[start - 1], words[start + 2]) if len(words) > start + 2 else None


def _runs(interpreter: str, hook: str) -> bool:
    """Start a hook that has nothing to do."""
    try:
        done = subprocess.run(
            [interpreter, "-I", "-S", hook, "claude-code", "Stop"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False,
            env={"CLAUDE_MEM_INTERNAL": "1", "HOME": "/"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and not done.stdout + done.stderr


def _transcripts(at: Context) -> list[tuple[float, Path]]:
    """Main transcripts, newest first; another program's observers are no sessions of the user's."""
    known: list[tuple[float, Path]] = []
    for path in (at.client_dir / "projects").glob("*/*.jsonl"):
        if "observer-sessions" not in path.parent.name and not path.name.startswith("agent-"):
            try:
                known.append((path.stat().st_mtime, path))
            except OSError:
                continue
    return sorted(known, reverse=True)


def _known(at: Context) -> dict[str, int]:
    """Session id → bytes of its transcript that the store has read, -1 when it knows the session alone."""
    if not at.home.database.exists():
        return {}
    try:
        db = open_reader(at.home.database)
        try:
            return dict(
                db.execute(
                    "SELECT content_session_id, coalesce(offset, -1) FROM sessions s"
                    " LEFT JOIN transcripts t ON t.session_id = s.id AND t.agent = ''"
                )
            )
        finally:
            db.close()
    except sqlite3.Error:
        return {}


def _list(value: dict[str, Any], kind: str) -> list[Any]:
    rules = _dict(value, "permissions").get(kind)
    return [rule for rule in rules if isinstance(rule, str)] if isinstance(rules, list) else []


def _dict(value: dict[str, Any], key: str) -> dict[str, Any]:
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}
