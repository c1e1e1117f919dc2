"""Fixtures of the laboratory: every test that asks for `client` runs once per pinned client version."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.get_client import clients

from .client import Client
from .home import Home
from .messages_api import MessagesApi
from .tui import MISSING


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    """A running scripted API; give it a script with `api.script([...])`."""
    with MessagesApi() as running:
        yield running


@pytest.fixture
def home(api: MessagesApi) -> Iterator[Home]:
    """A fresh home that talks to `api`."""
    fresh = Home(api.url)
    yield fresh
    fresh.close()


@pytest.fixture(params=clients(), ids=lambda pinned: pinned.version)
def client(request: pytest.FixtureRequest, home: Home) -> Client:
    """The real client in `home`; skips when this version is not installed."""
    pinned = request.param
    path = pinned.path()
    if path is None:
        pytest.skip(f"client {pinned.version} is not installed: run tools/get_client.py {pinned.source}")
    return Client(pinned.version, path, home)


@pytest.fixture
def terminal() -> None:
    """Asked for by tests of the interactive client; skips without tmux."""
    if MISSING:
        pytest.skip(MISSING)


@pytest.fixture
def endless_bin() -> Path:
    """The console script under test: `$ENDLESS_BIN`, else beside the interpreter, else on PATH."""
    beside = Path(sys.executable).with_name("endless")
    chosen = os.environ.get("ENDLESS_BIN") or (beside if beside.exists() else shutil.which("endless"))
    if chosen is None:
        pytest.skip("the console script `endless` is not installed")
    return Path(chosen)
