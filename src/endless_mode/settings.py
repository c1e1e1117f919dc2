"""Settings: a flat JSON file of strings; the environment beats the file, the file beats the default.

Names are written short here (``PLAN_TOKENS``); in the file and the environment they carry the prefix
``CLAUDE_MEM_ENDLESS_``. Keys we do not know stay in the file as they are. Two keys are claude-mem's own:
we read them from its file and never write them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from endless_mode.errors import SettingsError
from endless_mode.home import Home

PREFIX = "CLAUDE_MEM_ENDLESS_"
GATE = "CLAUDE_MEM_ENDLESS_MODE_ENABLED"
EXCLUDED = "CLAUDE_MEM_EXCLUDED_PROJECTS"

Source = Literal["environment", "file", "claude-mem", "default"]
Resume = Literal["auto", "always", "never"]


def _number(low: float, high: float) -> Callable[[str], str | None]:
    def check(value: str) -> str | None:
        try:
            fine = low <= float(value) <= high
        except ValueError:
            fine = False
        return None if fine else f"a number from {low:g} to {high:g}"

    return check


def _one_of(*words: str) -> Callable[[str], str | None]:
    def check(value: str) -> str | None:
        return None if value.lower() in words else "one of " + ", ".join(words)

    return check


def _roots(value: str) -> str | None:
    absolute = all(Path(part).is_absolute() for part in value.split(os.pathsep) if part)
    return None if absolute else f"absolute directories, separated by {os.pathsep!r}"


_SWITCH = _one_of("true", "false", "on", "off", "1", "0", "yes", "no")


class Setting(Struct, frozen=True):
    """One setting: its short name, default, meaning, and a check that says what a bad value should have
    been.
    """

    name: str
    default: str
    about: str
    check: Callable[[str], str | None]

    @property
    def key(self) -> str:
        """The name in the file and the environment."""
        return PREFIX + self.name


SETTINGS: tuple[Setting, ...] = (
    Setting("PLAN_TOKENS", "30000", "Most tokens a reading plan may cost.", _number(0, 200_000)),
    Setting(
        "RESUME",
        "auto",
        "Handoff on resume: `auto` (only if the newest compaction got none), `always`, `never`.",
        _one_of("auto", "always", "never"),
    ),
    Setting("TIMELINE", "on", "Show what happened lately in the project when a session starts.", _SWITCH),
    Setting("KEEP_CONVERSATION", "true", "Keep the conversation of transcripts that were deleted since.", _SWITCH),
    Setting("BACKFILL", "on", "Read past sessions in while nothing else is going on.", _SWITCH),
    Setting(
        "MAX_DB_MB",
        "2048",
        "Largest size of the database in megabytes; the oldest excerpts go first, conversation last.",
        _number(16, 1_000_000),
    ),
    Setting("IDLE_MINUTES", "30", "Minutes without work after which the worker ends.", _number(0.001, 10_080)),
    Setting("EXTRA_ROOTS", "", "Further directories that transcripts may be read from.", _roots),
    Setting(
        "LOG_LEVEL",
        "info",
        "What the worker logs: `debug`, `info`, `warning`, `error`.",
        _one_of("debug", "info", "warning", "error"),
    ),
    Setting("SEAL_TIMEOUT_MS", "20000", "Longest wait before a compaction, in milliseconds.", _number(0, 60_000)),
    Setting(
        "ENRICH",
        "auto",
        "Show claude-mem's observations in bottles: `auto` (where its database has the session), `off`.",
        _one_of("auto", "off"),
    ),
    Setting(
        "BESIDE",
        "auto",
        "Where claude-mem hands over by itself: `auto` (say nothing), `always` (hand over too).",
        _one_of("auto", "always"),
    ),
    Setting("PRECOMPACT_LINE", "off", "Ask the summariser, in one line, to keep the bottle's path.", _SWITCH),
)

BY_KEY = {setting.key: setting for setting in SETTINGS}


class Value(Struct, frozen=True):
    """A setting's effective value and where it comes from."""

    key: str
    value: str
    source: Source
    about: str


class Settings:
    """The effective settings at one moment. :attr:`problems` says what was passed over to get them."""

    def __init__(
        self,
        file: Mapping[str, str] | None = None,
        claude_mem: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        problems: list[SettingsError] | None = None,
    ) -> None:
        self._file = dict(file or {})
        self._claude_mem = dict(claude_mem or {})
        self._environ = dict(environ or {})
        self.problems = problems if problems is not None else []

    def get(self, key: str) -> Value:
        """Return one setting by its full or short name; raise :class:`SettingsError` for a name nobody
        knows.
        """
        setting = _known(key)
        for source, values in (("environment", self._environ), ("file", self._file)):
            value = values.get(setting.key)
            if value is not None and self._fits(setting, value):
                return Value(setting.key, value, source, setting.about)  # type: ignore[arg-type]
        return Value(setting.key, setting.default, "default", setting.about)

    def all(self) -> list[Value]:
        """Return every setting in its documented order."""
        return [self.get(setting.key) for setting in SETTINGS]

    def _fits(self, setting: Setting, value: str) -> bool:
        wanted = setting.check(value)
        if wanted and not any(problem.message.startswith(setting.key) for problem in self.problems):
            self.problems.append(_bad_value(setting, value, wanted))
        return not wanted

    def _on(self, name: str) -> bool:
        return self.get(name).value.lower() in ("true", "on", "1", "yes")

    @property
    def enabled(self) -> bool:
        """Claude-mem's master switch for Endless Mode; on unless it says ``false``."""
        value = self._environ.get(GATE, self._claude_mem.get(GATE, "true"))
        return value.strip().lower() not in ("false", "off", "0", "no")

    @property
    def excluded_projects(self) -> list[str]:
        """Globs on a project's path or basename that claude-mem is told to leave alone."""
        value = self._environ.get(EXCLUDED, self._claude_mem.get(EXCLUDED, ""))
        return [part.strip() for part in value.split(",") if part.strip()]

    @property
    def plan_tokens(self) -> int:
        return int(float(self.get("PLAN_TOKENS").value))

    @property
    def resume(self) -> Resume:
        return self.get("RESUME").value.lower()  # type: ignore[return-value]

    @property
    def timeline(self) -> bool:
        return self._on("TIMELINE")

    @property
    def keep_conversation(self) -> bool:
        return self._on("KEEP_CONVERSATION")

    @property
    def backfill(self) -> bool:
        return self._on("BACKFILL")

    @property
    def max_db_bytes(self) -> int:
        return int(float(self.get("MAX_DB_MB").value) * 1_000_000)

    @property
    def idle_seconds(self) -> float:
        return float(self.get("IDLE_MINUTES").value) * 60

    @property
    def extra_roots(self) -> tuple[Path, ...]:
        return tuple(Path(part) for part in self.get("EXTRA_ROOTS").value.split(os.pathsep) if part)

    @property
    def log_level(self) -> str:
        return self.get("LOG_LEVEL").value.lower()

    @property
    def seal_timeout_ms(self) -> int:
        return int(float(self.get("SEAL_TIMEOUT_MS").value))

    @property
    def enrich(self) -> bool:
        return self.get("ENRICH").value.lower() == "auto"

    @property
    def always_beside(self) -> bool:
        return self.get("BESIDE").value.lower() == "always"

    @property
    def precompact_line(self) -> bool:
        return self._on("PRECOMPACT_LINE")


def load(home: Home, environ: Mapping[str, str] | None = None, strict: bool = False) -> Settings:
    """Read the settings in force.

    ``strict`` (the command line) raises :class:`SettingsError` for a broken file of ours; otherwise (the
    worker) defaults are used and the error is in ``problems``. Claude-mem's file is never a reason to fail.
    """
    problems: list[SettingsError] = []
    try:
        file = _strings(read_file(home.settings))
    except SettingsError as error:
        if strict:
            raise
        problems.append(error)
        file = {}
    claude_mem: dict[str, str] = {}
    with contextlib.suppress(SettingsError):
        theirs = read_file(home.claude_mem_settings)
        nested = theirs.get("env")
        claude_mem = _strings({**(nested if isinstance(nested, dict) else {}), **theirs})
    return Settings(file, claude_mem, os.environ if environ is None else environ, problems)


def set_value(home: Home, key: str, value: str | None) -> None:
    """Write one setting to our file, or remove it with ``None``; everything else in the file stays as it is.

    Raises :class:`SettingsError` for an unknown key, a value that does not fit, or a file that cannot be
    read.
    """
    setting = _known(key)
    wanted = setting.check(value) if value is not None else None
    if wanted:
        raise _bad_value(setting, value or "", wanted)
    content = read_file(home.settings)
    content.pop(setting.key, None)
    if value is not None:
        content[setting.key] = value
    home.create()
    draft = home.settings.with_name(f".settings.{os.getpid()}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.rename(home.settings)


def read_file(path: Path) -> dict[str, Any]:
    """Return a settings file's JSON object, empty if there is no file; raise :class:`SettingsError` if it
    is broken.
    """
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise _broken(path, "cannot be read" if isinstance(error, OSError) else "is not valid JSON") from error
    if not isinstance(content, dict):
        raise _broken(path, "does not hold a JSON object")
    return content


def _strings(content: Mapping[str, Any]) -> dict[str, str]:
    """Keep strings, and write numbers and switches that somebody put in bare as the strings they stand
    for.
    """
    plain = {k: v for k, v in content.items() if isinstance(v, str | int | float)}
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in plain.items()}


def _known(key: str) -> Setting:
    setting = BY_KEY.get(key) or BY_KEY.get(PREFIX + key.upper())
    if setting is None:
        raise SettingsError("unknown_setting", f"There is no setting {key[:80]!r}.", "See `endless config list`.")
    return setting


def _bad_value(setting: Setting, value: str, wanted: str) -> SettingsError:
    return SettingsError("bad_setting", f"{setting.key} does not take {value[:80]!r}.", f"It takes {wanted}.")


def _broken(path: Path, what: str) -> SettingsError:
    return SettingsError("settings_broken", f"{path} {what}.", "Correct the file by hand, or remove it.")
