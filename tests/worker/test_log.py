"""The log is bounded, private, and has no room for what was said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from endless_mode.worker.log import KEPT, Log


def test_an_entry_is_one_line_of_json_with_what_was_given(tmp_path: Path) -> None:
    log = Log(tmp_path / "w.log")
    log.write("hook", session="s-1", event="Stop", size=0, ms=1.26)
    entry = json.loads((tmp_path / "w.log").read_text())
    assert {k: v for k, v in entry.items() if k not in ("at", "pid")} == {
        "level": "info", "name": "hook", "session": "s-1", "event": "Stop", "size": 0, "ms": 1.3
    }  # fmt: skip


def test_what_is_no_session_id_is_not_written(tmp_path: Path) -> None:
    Log(tmp_path / "w.log").write("hook", session="please fix\nthe login")
    assert json.loads((tmp_path / "w.log").read_text())["session"] == "?"


def test_an_exception_leaves_its_class_and_place(tmp_path: Path) -> None:
    log = Log(tmp_path / "w.log")
    try:
        raise ValueError("the user's words")
    except ValueError as error:
        log.write("failed", level="error", error=error)
    text = (tmp_path / "w.log").read_text()
    assert "words" not in text
    assert json.loads(text)["error"] == "ValueError" and json.loads(text)["where"].startswith("test_log.py:")


def test_old_entries_make_room(tmp_path: Path) -> None:
    log = Log(tmp_path / "w.log", max_bytes=1000)
    for n in range(200):
        log.write("hook", count=n)
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["w.log", *(f"w.log.{n}" for n in range(1, KEPT + 1))]
    counts = [
        json.loads(line)["count"] for path in [*reversed(files[1:]), files[0]] for line in path.read_text().splitlines()
    ]
    assert counts == list(range(counts[0], 200))
    assert all(path.stat().st_size < 1200 and path.stat().st_mode & 0o777 == 0o600 for path in files)


@pytest.mark.parametrize(("level", "written"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1), ("?", 3)])
def test_the_level_decides_what_is_written(tmp_path: Path, level: str, written: int) -> None:
    log = Log(tmp_path / "w.log", level)
    for name in ("debug", "info", "warning", "error"):
        log.write("x", level=name)
    assert len((tmp_path / "w.log").read_text().splitlines()) == written


def test_a_log_that_cannot_be_written_is_silent(tmp_path: Path) -> None:
    Log(tmp_path / "missing/w.log").write("hook")
    assert list(tmp_path.iterdir()) == []
