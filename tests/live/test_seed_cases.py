"""The specification's test plan, case by case, against a real worker process and the real hook command.

Cases 2, 3 and 5 need an observer that is slow on command; they run the service in this process behind a real
socket. Case 11 (no transcript any more) is with the tests of claude-mem's database.
"""

from __future__ import annotations

import fcntl
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.synthetic import append, generate

from endless_mode.bottle.entries import Happened
from endless_mode.bottle.parse import parse
from endless_mode.worker.messages import SealAnswer
from tests.live.observer import Scripted, claim, confirm
from tests.live.parts import Living, Served, Session, bottle, document, is_handoff, served_in, speech
from tests.live.transcript import marker_of
from tests.processes import eventually

MARATHON_MB = float(os.environ.get("ENDLESS_MARATHON_MB", "50"))


def pending(home_text: str) -> list[str]:
    """The honest tail in the conversation part."""
    return [line for line in home_text.splitlines() if line.startswith("- ⏳") and "observation pending" in line]


def test_case_01_mid_turn_compaction_keeps_the_tail_verbatim_with_stubs(living: Living) -> None:
    living.start()
    s = living.session()
    s.t.turn("the parser")
    s.t.prompt("Now the lexer.")
    s.t.say("I run the tests,\n\nthen I edit.")
    s.t.call("Bash", command="npm test")
    s.t.call("Edit", file_path="/tmp/src/lexer.py", old_string="a", new_string="b")
    sealed = living.seal(s)
    assert sealed.sealed and sealed.gap == 0
    assert speech(living.home) == s.t.said
    stubs = pending(bottle(living.home))
    assert any("Bash — `npm test`" in stub and "observation pending" in stub for stub in stubs)
    assert any("Edit — /tmp/src/lexer.py" in stub or "Edit — src/lexer.py" in stub for stub in stubs)
    assert is_handoff(s.compacted())


# -- a slow observer ---------------------------------------------------------------------------------------


def with_events(served: Served, count: int) -> Session:
    s = served.session()
    s.t.prompt("Build it.")
    for n in range(count):
        s.t.bash(f"make step{n}")
    s.stop_hook()
    eventually(lambda: served.rows("SELECT count(*) FROM tool_events WHERE state = 'pending'") == [(count,)])
    return s


def sealing(served: Served, s: Session, timeout_ms: int = 60_000) -> tuple[threading.Thread, list[SealAnswer]]:
    """A seal on its way; its wait is longer than the test's client would bear."""
    answers: list[SealAnswer] = []
    thread = threading.Thread(target=lambda: answers.append(served.seal(s, timeout_ms)), daemon=True)
    thread.start()
    return thread, answers


def test_case_02_drain_race_seals_with_gap_zero(tmp_path: Path) -> None:
    observer = Scripted(False)
    with served_in(tmp_path, observer.service) as served:
        s = with_events(served, 5)
        in_flight = claim(served, 3)
        thread, answers = sealing(served, s)
        eventually(lambda: observer.asked > 0)
        confirm(served, in_flight)
        assert not answers
        confirm(served, claim(served, 5))
        thread.join(30)
        assert answers and answers[0].sealed and answers[0].gap == 0
        assert "Seen make step4" in bottle(served.home)
        assert pending(bottle(served.home)) == []
        assert observer.other == []


def test_case_02_a_paused_observer_ends_the_wait_early_with_a_gap(tmp_path: Path) -> None:
    observer = Scripted(True)
    with served_in(tmp_path, observer.service) as served:
        s = with_events(served, 4)
        confirm(served, claim(served, 1))
        sealed = served.seal(s, 60_000)  # the client would have given up after 30 seconds
        assert sealed.sealed and sealed.gap == 3
        assert observer.asked == 3 and observer.other == []
        assert len(pending(bottle(served.home))) == 3
        printed = s.compacted()
        assert "The last 3 tool events have observations still being written" in printed


def test_case_02_a_deadline_ends_the_wait_with_a_gap(tmp_path: Path) -> None:
    with served_in(tmp_path, Scripted(False).service) as served:
        s = with_events(served, 2)
        sealed = served.seal(s, 300)
        assert sealed.sealed and sealed.gap == 2


def test_case_03_a_fresh_event_is_no_dead_observer(tmp_path: Path) -> None:
    observer = Scripted(True, True, False)
    with served_in(tmp_path, observer.service) as served:
        s = with_events(served, 2)
        thread, answers = sealing(served, s)
        eventually(lambda: observer.asked >= 3)
        assert not answers
        confirm(served, claim(served, 2))
        thread.join(30)
        assert answers and answers[0].gap == 0


def test_case_03_many_wakes_in_a_moment_are_no_proof_of_death(tmp_path: Path) -> None:
    observer = Scripted(*[True] * 6, False)
    with served_in(tmp_path, observer.service) as served:
        s = with_events(served, 2)
        thread, answers = sealing(served, s)
        eventually(lambda: observer.asked >= 1)
        for n in range(2, 7):
            served.changed("s-1")
            eventually(lambda n=n: observer.asked >= n or answers)
        eventually(lambda: observer.asked >= 7 or answers)
        assert not answers
        confirm(served, claim(served, 2))
        thread.join(30)
        assert answers and answers[0].gap == 0


def test_case_05_after_a_restart_the_bottle_holds_all_earlier_observations(tmp_path: Path) -> None:
    with served_in(tmp_path, Scripted(False).service) as served:
        s = with_events(served, 3)
        confirm(served, claim(served, 2))
        served.use(lambda db: db.execute("UPDATE sessions SET memory_session_id = 'first'"))
        in_flight = claim(served, 1)
        assert in_flight
    with served_in(tmp_path, Scripted(True).service) as again:
        assert again.rows("SELECT count(*) FROM tool_events WHERE state = 'pending'") == [(1,)]
        again.use(lambda db: db.execute("UPDATE sessions SET memory_session_id = 'second'"))
        s = Session(again.send, s.t)
        s.t.bash("make more")
        assert again.seal(s, 60_000).gap == 2
        text = bottle(again.home)
        assert "Seen make step0" in text and "Seen make step1" in text
        stubs = [line.partition(" (")[0] for line in pending(text)]
        assert stubs == ["- ⏳ Bash — `make step2`", "- ⏳ Bash — `make more`"]
        confirm(again, claim(again, 5))
        again.seal(s)
        assert pending(bottle(again.home)) == []


# -- a real worker -----------------------------------------------------------------------------------------


def test_case_04_of_two_session_starts_at_once_one_hands_over(living: Living) -> None:
    living.start()
    s = living.session()
    s.t.turn("the parser")
    for _ in range(3):
        assert s.pre_compact() == ""
        hooks = [living.hook_process("SessionStart", s.payload("SessionStart", source="compact")) for _ in range(2)]
        printed = [hook.communicate(timeout=30)[0].decode() for hook in hooks]
        assert [hook.returncode for hook in hooks] == [0, 0]
        assert sorted(map(is_handoff, printed)) == [False, True]
        s.t.boundary()
        s.t.turn("more")


def test_case_06_worker_down_at_pre_compact_is_rendered_at_session_start(living: Living) -> None:
    s = living.session()
    s.t.turn("the parser")
    living.start()
    assert s.prompt_hook() == ""
    living.kill()
    assert s.pre_compact() == ""
    printed = s.compacted()
    assert is_handoff(printed)
    assert speech(living.home) == s.t.said
    assert s.compacted() == ""


def test_case_06_without_any_worker_a_process_of_its_own_renders(living: Living) -> None:
    living.home.create()
    s = living.session()
    s.t.turn("the parser")
    holder = os.open(living.home.lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(holder, fcntl.LOCK_EX)  # every worker that starts waits for this lock
    try:
        assert s.pre_compact() == ""
        printed = s.compacted()
        assert is_handoff(printed)
        assert speech(living.home) == s.t.said
    finally:
        os.close(holder)


def test_case_07_renders_of_one_session_never_tear_or_go_back(living: Living) -> None:
    living.start()
    s = living.direct(living.session())
    s.t.turn("the first thing")
    living.seal(s)
    stop = threading.Event()
    lengths: list[int] = []

    def watch() -> None:
        while not stop.is_set():
            lengths.append(len(parse(bottle(living.home)).entries))

    watcher = ThreadPoolExecutor(1).submit(watch)
    with ThreadPoolExecutor(4) as pool:
        for n in range(12):
            s.t.turn(f"thing {n}")
            jobs = [pool.submit(s.stop_hook), pool.submit(living.seal, s), pool.submit(s.pre_compact)]
            for job in jobs:
                job.result(30)
    eventually(lambda: speech(living.home) == s.t.said)
    stop.set()
    watcher.result(30)  # every look at the file was a whole bottle
    assert lengths == sorted(lengths)


SECRETS = ("the launch is on Monday", "my own address", "the salary table")


def test_case_08_private_text_is_in_no_bottle_by_seal_stop_or_demand(living: Living) -> None:
    living.start()
    s = living.direct(living.session())
    s.t.prompt(f"Plan it. <private>{SECRETS[0]}</private> Then build.")
    s.t.say(f"Planned. <private>{SECRETS[1]}</private> Building.")
    s.t.bash(f"echo '<private>{SECRETS[2]}</private>'", f"<private>{SECRETS[2]}</private>")
    s.t.say("Built.")
    living.seal(s)
    by_seal = bottle(living.home)
    (living.home.bottles / "s-1.md").unlink()
    s.stop_hook()
    eventually((living.home.bottles / "s-1.md").exists)
    by_stop = bottle(living.home)
    (living.home.bottles / "s-1.md").unlink()
    printed = s.compacted()
    for text in (by_seal, by_stop, bottle(living.home), printed):
        assert "Plan it." in text or text is printed
        assert not any(secret in text for secret in SECRETS)
    rows = living.rows("SELECT text FROM messages UNION ALL SELECT digest FROM tool_events")
    assert not any(secret in str(row) for row in rows for secret in SECRETS)


def test_case_09_a_torn_line_waits_for_its_end(living: Living) -> None:
    living.start()
    s = living.direct(living.session())
    s.t.turn("the parser")
    s.t.prompt("and now")
    whole = s.t.path.read_bytes()
    cut = len(whole) - 40
    s.t.path.write_bytes(whole[:cut])
    assert living.seal(s).sealed
    assert speech(living.home) == s.t.said[:-1]
    with s.t.path.open("ab") as file:
        file.write(whole[cut:])
    assert living.seal(s).sealed
    assert speech(living.home) == s.t.said


def test_case_10_clear_archives_and_hands_over_nothing(living: Living) -> None:
    living.start()
    s = living.session()
    s.t.turn("the parser")
    living.seal(s)
    s.stop_hook()
    assert s.ended("clear") == ""
    after = living.session("s-2")
    assert after.fire("SessionStart", source="clear") == ""
    after.t.prompt("something new")
    assert after.prompt_hook() == ""
    eventually(lambda: not (living.home.bottles / "s-1.md").exists())
    archived = list(living.home.archive.glob("*-s-1.md"))
    assert len(archived) == 1
    assert [e.text for e in parse(archived[0].read_text()).entries if hasattr(e, "role")][:1] == ["the parser"]


def bytes_read(pid: int) -> int:
    """Bytes a process has read so far; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/io").read_text().split()[1])
    except OSError:
        return 0


def test_case_12_a_marathon_is_read_on_from_the_cursor_and_from_zero_alike(living: Living) -> None:
    s = living.session("marathon")
    generate(s.t.path, MARATHON_MB, seed=7)
    living.start()
    s = living.direct(s)
    assert living.seal(s, 60_000).sealed
    state = "SELECT gen, offset, lines FROM transcripts WHERE agent = ''"
    (first,) = living.rows(state)
    assert first[:2] == (1, s.t.path.stat().st_size)
    read = bytes_read(living.worker_pid())
    append(s.t.path, 30)
    assert living.seal(s).sealed
    assert bytes_read(living.worker_pid()) - read < first[1] / 2  # nobody went through the file again
    ((gen, offset, lines),) = living.rows(state)
    assert (gen, offset) == (1, s.t.path.stat().st_size)
    assert lines == s.t.path.read_bytes().count(b"\n")
    grown = document(living.home, "marathon")
    assert any(isinstance(entry, Happened) for entry in grown.entries)
    living.kill()
    for part in living.home.root.glob("endless.db*"):
        part.unlink()
    living.start()
    assert living.seal(s, 60_000).sealed
    again = document(living.home, "marathon")
    assert again.entries == grown.entries and again.closing == grown.closing


def test_the_worker_restarts_while_a_seal_waits(living: Living) -> None:
    living.start()
    s = living.session()
    s.t.turn("the parser")
    s.t.prompt("next")
    s.t.call("Bash", command="npm test")
    hook = living.hook_process("PreCompact", s.payload("PreCompact", trigger="auto"))
    living.kill()
    assert hook.communicate(timeout=30)[0] == b"" and hook.returncode == 0
    printed = s.compacted()
    assert is_handoff(printed) and marker_of(printed)
    assert any("npm test" in stub for stub in pending(bottle(living.home)))
