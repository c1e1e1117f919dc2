"""Uninstalling under a worker that still has something to write."""

from __future__ import annotations

from pathlib import Path

from endless_mode.install.apply import purge, stop_worker
from tests.live.parts import living_in


def test_a_worker_that_was_stopped_writes_nothing_more(tmp_path: Path) -> None:
    with living_in(tmp_path) as living:
        living.start()
        s = living.session()
        for number in range(400):
            s.t.turn(f"the parser of part {number} " + "word " * 200)
        living.direct(s).stop_hook()
        assert stop_worker(living.home)
        assert not living.locked()
        assert (living.home.bottles / "s-1.md").exists(), "what was queued is done first"
        assert purge(living.home)
        assert not living.home.root.exists()


def test_stopping_where_no_worker_is_says_so(tmp_path: Path) -> None:
    with living_in(tmp_path) as living:
        assert not stop_worker(living.home)
        assert not living.home.root.exists()
