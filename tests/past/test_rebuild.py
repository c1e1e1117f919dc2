"""``endless rebuild``, beside a worker and without one."""

from __future__ import annotations

import fcntl
import json
from typing import Any

import pytest

from endless_mode.cli.rebuild import _worker_away
from tests.live.parts import Living
from tests.past.parts import endless, talk


def worker(living: Living) -> Any:
    return json.loads(endless(living.environ, "worker", "status", "--json").stdout)


def test_beside_a_worker_that_is_stopped_for_it_and_started_again(living: Living) -> None:
    talk(living.root, "s-123456", "count the herons")
    assert endless(living.environ, "import").returncode == 0
    before = worker(living)
    assert before["running"] is True
    done = endless(living.environ, "rebuild", "--json")
    assert (done.returncode, json.loads(done.stdout)["rebuilt"]) == (0, ["s-123456"]), done.stderr
    after = worker(living)
    assert after["running"] is True and after["pid"] != before["pid"]
    assert living.rows("SELECT gen > 1 FROM transcripts") == [(1,)]


def test_without_a_worker_none_is_started(living: Living) -> None:
    talk(living.root, "s-123456", "count the herons")
    assert endless(living.environ, "import").returncode == 0
    assert endless(living.environ, "worker", "stop").returncode == 0
    done = endless(living.environ, "rebuild", "--json")
    assert (done.returncode, json.loads(done.stdout)["rebuilt"]) == (0, ["s-123456"]), done.stderr
    assert worker(living)["running"] is False


def test_a_worker_cannot_start_meanwhile(living: Living) -> None:
    """Whoever starts one needs the lock that a rebuild holds."""
    living.home.create()
    with _worker_away(living.home), living.home.start_lock.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with living.home.start_lock.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_transcript_that_cannot_be_read_stops_none_of_the_others(living: Living) -> None:
    for name in ("s-111111", "s-222222", "s-333333"):
        talk(living.root, name, "count the herons")
    assert endless(living.environ, "import").returncode == 0
    (broken,) = living.root.glob(".claude/projects/*/s-111111.jsonl")
    broken.write_bytes(b"")
    done = endless(living.environ, "rebuild", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["unreadable"]) == (1, ["s-111111"])
    assert sorted(told["rebuilt"]) == ["s-222222", "s-333333"]
