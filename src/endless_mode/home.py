"""The one place that knows where things are.

The home is ``<data dir>/endless``; the rules for the data directory and for the socket are those of the hook
process (``hook/hook.py``), which must find the worker without importing anything and so owns them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from endless_mode.errors import HomeError
from endless_mode.hook import hook


class Home:
    """Our directory in a data directory, and the paths in it. Making one touches no file."""

    def __init__(self, data_dir: Path, environ: Mapping[bytes, bytes] | None = None) -> None:
        self.data_dir = data_dir
        self.root = Path(os.fsdecode(hook.home_dir(os.fsencode(data_dir))))
        bound = hook.socket_path(os.fsencode(self.root), dict(os.environb if environ is None else environ))
        self.socket = Path(os.fsdecode(bound))
        self.database = self.root / "endless.db"
        self.bottles = self.root / "bottles"
        self.archive = self.bottles / "archive"
        self.settings = self.root / "settings.json"
        self.claude_mem_settings = data_dir / "settings.json"
        self.run = self.root / "run"
        self.lock = self.run / "worker.lock"
        self.start_lock = self.run / "start.lock"
        self.failed = self.run / "failed"
        self.spool = self.run / "spool"
        self.logs = self.root / "logs"
        self.log = self.logs / "worker.log"

    def __repr__(self) -> str:
        return f"Home({str(self.data_dir)!r})"

    def create(self) -> None:
        """Make the directories that are missing, all 0700; raise :class:`HomeError` when that cannot be.

        A home that exists but is open to others is closed to them. A socket outside the home gets a directory
        that must belong to this user alone, because it may lie where everybody writes.
        """
        directories = (self.root, self.bottles, self.archive, self.run, self.spool, self.logs)
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            for directory in directories:
                directory.mkdir(mode=0o700, exist_ok=True)
                if stat.S_IMODE(directory.stat().st_mode) & 0o077:
                    directory.chmod(0o700)
            if not self.socket.is_relative_to(self.root):
                self.socket.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise HomeError(
                "home_unusable",
                f"The home {self.root} cannot be used: {error.strerror}.",
                "Check that the directory and its parents belong to you and can be written.",
            ) from error
        if not hook.trusted(os.fsencode(self.socket), os.fsencode(self.root)):
            raise HomeError(
                "runtime_dir_unsafe",
                f"The directory {self.socket.parent} is not yours alone.",
                "Remove it, or choose a shorter data directory with CLAUDE_MEM_DATA_DIR.",
            )


def passed_over() -> str:
    """What ``CLAUDE_MEM_DATA_DIR`` says when it is no absolute path, so that neither hooks nor commands take it."""
    given = os.environ.get("CLAUDE_MEM_DATA_DIR", "")
    return "" if given.startswith("/") else given


def find_home(environ: Mapping[bytes, bytes] | None = None) -> Home:
    """Return the home that the environment names (default: this process's)."""
    known = dict(os.environb if environ is None else environ)
    return Home(Path(os.fsdecode(hook.data_dir(known))), known)
