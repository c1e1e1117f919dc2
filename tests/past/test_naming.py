"""Sessions go by the beginning of their id."""

from __future__ import annotations

from pathlib import Path

import pytest

from endless_mode.cli.naming import whole_id
from endless_mode.errors import EndlessError
from endless_mode.home import Home
from endless_mode.store import Store
from tests.past.parts import imported, talk


def test_a_beginning_names_the_one_session_that_begins_so(tmp_path: Path) -> None:
    for name in ("abcdef-1", "abcdef-2", "abcdef-2x", "ghijkl-1"):
        talk(tmp_path, name, "hello")
    home = Home(tmp_path / "data")
    assert whole_id(home, "ghijkl") == "ghijkl", "no database yet"
    home.create()
    with Store.open(home.database) as store:
        imported(store, tmp_path / ".claude")
    assert whole_id(home, "ghijkl") == "ghijkl-1"
    assert whole_id(home, "abcdef-2") == "abcdef-2", "an id itself, though others begin with it"
    assert whole_id(home, "ghij") == "ghij", "too short to mean one"
    assert whole_id(home, "nothing-like-it") == "nothing-like-it"
    with pytest.raises(EndlessError, match="Several"):
        whole_id(home, "abcdef")
