"""A fresh home for each test, with a worker of its own or the service in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.parts import Living, Served, living_in, served_in


@pytest.fixture
def living(tmp_path: Path) -> Iterator[Living]:
    with living_in(tmp_path) as place:
        yield place


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with served_in(tmp_path) as place:
        yield place
