"""A user's machine in a temporary directory, and the command line on it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from endless_mode.cli import main
from endless_mode.home import Home, find_home
from endless_mode.install.apply import stop_worker

CLEARED = ("CLAUDE_CONFIG_DIR", "CLAUDE_MEM_DATA_DIR", "CLAUDE_MEM_INTERNAL", "XDG_RUNTIME_DIR")


class Ran(Struct):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class User:
    """HOME is ``root``; commands run in ``project``."""

    def __init__(self, root: Path, capture: pytest.CaptureFixture[bytes]) -> None:
        self.root, self._capture = root, capture
        self.client = root / ".claude"
        self.settings = self.client / "settings.json"
        self.project = root / "project"
        self.project.mkdir()

    @property
    def home(self) -> Home:
        return find_home()

    def run(self, *words: str) -> Ran:
        """Run ``endless`` in this process."""
        self._capture.readouterr()
        code = main(words)
        out, err = self._capture.readouterr()
        return Ran(code, out.decode(), err.decode())

    def write(self, text: str, path: Path | None = None) -> Path:
        """Write a settings file byte for byte."""
        place = path or self.settings
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
        return place

    def files(self) -> dict[str, tuple[int, bytes]]:
        """Everything below the root: path → (mode, content)."""
        return {
            str(path.relative_to(self.root)): (stat.S_IMODE(path.lstat().st_mode), path.read_bytes())
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }


@contextmanager
def user_in(root: Path, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[bytes]) -> Iterator[User]:
    """A user; a worker that was started for it is asked to stop at the end."""
    for name in [*CLEARED, *(key for key in os.environ if key.startswith("CLAUDE_MEM_ENDLESS_"))]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(root))
    made = User(root, capture)
    monkeypatch.chdir(made.project)
    yield made
    stop_worker(made.home)
