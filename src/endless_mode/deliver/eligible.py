"""What is to be handed over at all: since the install, and not where the user wants none of it."""

from __future__ import annotations

import fnmatch
import time
from pathlib import Path

from endless_mode.home import Home
from endless_mode.settings import Settings


def installed_at(home: Home) -> int:
    """When this home was made, in milliseconds: no boundary from before gets a handoff.

    A time in the future was written by a clock that has been put right since: then it is now.
    """
    file, now = home.root / "installed", int(time.time() * 1000)
    try:
        found = int(file.read_text())
        if found <= now:
            return found
    except (OSError, ValueError):
        pass
    try:
        file.write_text(f"{now}\n")
        file.chmod(0o600)
    except OSError:
        pass
    return now


def is_excluded(settings: Settings, cwd: str) -> bool:
    """Whether a directory's sessions are none of ours, by its path or its name."""
    name = Path(cwd).name
    return any(fnmatch.fnmatch(cwd, p) or fnmatch.fnmatch(name, p) for p in settings.excluded_projects)
