"""What a check of ``endless doctor`` gets and gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from endless_mode.home import Home
from endless_mode.install import look
from endless_mode.install.look import Place
from endless_mode.settings import Settings, load

Status = Literal["ok", "warn", "fail"]


class Check(Struct):
    """A finding. ``fixed`` says what ``--fix`` did about it; ``details`` are lines to stand below."""

    name: str
    status: Status
    message: str
    hint: str = ""
    fixed: str = ""
    details: list[str] = field(default_factory=list)


class Context(Struct):
    """What all checks look at: read once. ``client`` holds the settings of each file by its path."""

    home: Home
    settings: Settings
    places: list[Place]
    client: dict[str, dict[str, Any]]
    managed: dict[str, dict[str, Any]]
    since: int | None

    @property
    def client_dir(self) -> Path:
        """The client's configuration directory."""
        return look.client_dir()

    def everywhere(self) -> dict[str, dict[str, Any]]:
        """All settings a client would merge here, by their file."""
        return {**self.client, **self.managed}


Looker = Callable[[Context], Check]


def context(home: Home) -> Context:
    """Read everything the checks need."""
    places = look.places(home)
    remote = look.client_dir() / "remote-settings.json"
    managed = [*look.managed(), *([remote] if remote.exists() else [])]
    return Context(
        home=home,
        settings=load(home),
        places=places,
        client={place.path: look.settings_of(Path(place.path)) for place in places},
        managed={str(path): look.settings_of(path) for path in managed},
        since=look.installed_since(home),
    )


def plural(count: int, thing: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
