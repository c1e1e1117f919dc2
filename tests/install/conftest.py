"""A user of its own per test: HOME, the client's directory, a project to stand in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .user import User, user_in


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Iterator[User]:
    with user_in(tmp_path, monkeypatch, capsysbinary) as made:
        yield made
