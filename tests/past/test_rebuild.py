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
