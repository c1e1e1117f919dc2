"""What was typed in sessions of which nothing else is left: the client's own record of it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import tracemalloc
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endless_mode.bottle.entries import MODE_FULL, MODE_RECONSTRUCTED, Happened, Mark, Speech
from endless_mode.bottle.parse import parse
from endless_mode.bottle.render import render
from endless_mode.claude_mem.reconstruct import reconstructed
from endless_mode.claude_mem.session import MemObservation, MemPrompt, MemSession, MemSummary
from endless_mode.cli import main
from endless_mode.clients.claude_code import history
from endless_mode.clients.claude_code.history import Record, Typed, overview, record
from endless_mode.deliver.ladder import best_document
from endless_mode.deliver.remembered import HISTORY, remembered
from endless_mode.home import Home
from endless_mode.ingest import ingest_file
from endless_mode.store import Store
from tests.claude_mem.files import checked, checked_text, fingerprint, in_child
from tests.live.parts import Served
from tests.past.parts import talk

RECORDED = Path(__file__).parents[1] / "fixtures" / "history"
VERSIONS = ("2.1.197", "2.1.332")
BIG = "\n".join(f"big {n} " + "x" * 80 for n in range(200))
NOW = 1_796_000_000_000


def sessions_of(version: str) -> list[str]:
    """The recorded session ids in the order in which they begin."""
    lines = (RECORDED / version / "history.jsonl").read_text().splitlines()
    return list(dict.fromkeys(json.loads(line)["sessionId"] for line in lines))


def written(config: Path, *entries: Any) -> Path:
    """A record with these entries; bytes are lines as they are."""
    config.mkdir(parents=True, exist_ok=True)
    data = b"".join(one + b"\n" if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in entries)
    (config / "history.jsonl").write_bytes(data)
    return config


def typed(display: str, at: int = NOW, session: str = "s-1", **more: Any) -> dict[str, Any]:
    base = {"display": display, "pastedContents": {}, "timestamp": at, "project": "/p", "sessionId": session}
    return {**base, **more}


@pytest.fixture
def for_all() -> Iterator[Path]:
    """A directory that every user can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


# -- the file


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_prompts_come_out_as_they_were_typed(version: str) -> None:
    first = sessions_of(version)[0]
    found = [(one.kind, one.text) for one in record(RECORDED / version, first).prompts]
    assert found == [
        ("prompt", "count the herons"),
        ("prompt", "second with  in it"),
        ("prompt", "one pasted line"),
        ("prompt", "line a\nline b\nline c\nline d\nline e and after"),
        ("prompt", f"{BIG} look at it"),
        ("shell", "echo shell"),
        ("prompt", "# remember this"),
        ("command", "/nosuch with args"),
        ("prompt", "use @src/a.py please ultrathink"),
        ("prompt", "slow one"),
        ("prompt", "queued while working"),
        ("prompt", "interrupted one"),
        ("prompt", "line one\nline two"),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_clear_a_resume_and_a_fork_stand_under_the_session_they_were_typed_in(version: str) -> None:
    said = [[one.text for one in record(RECORDED / version, name).prompts] for name in sessions_of(version)]
    assert said[1:] == [["after clear", "in the resumed"], ["in the fork"], ["prompt as an argument"]]
    listed = overview(RECORDED / version)
    assert [one.session_id for one in listed.sessions] == list(reversed(sessions_of(version)))
    assert (listed.nameless, listed.unreadable) == (0, 0)
    first = listed.sessions[-1]
    assert (first.project, first.prompts, first.begins) == ("/home/dev/herons", 13, "count the herons")


def test_a_paste_the_client_has_not_kept_leaves_its_mark_and_is_counted(tmp_path: Path) -> None:
    old = record(RECORDED / "2.0.30", sessions_of("2.0.30")[0]).prompts
    assert [(one.text, one.lost) for one in old] == [("count the herons", 0), ("[Pasted text #1 +5 lines]", 1)]
    shutil.copytree(RECORDED / "2.1.332", tmp_path / "c")
    (next((tmp_path / "c/paste-cache").iterdir())).unlink()
    found = record(tmp_path / "c", sessions_of("2.1.332")[0]).prompts
    assert [one.text for one in found if one.lost] == ["[Pasted text #2 +199 lines] look at it"]
    whole = remembered(None, Record(found), "s")
    assert whole is not None and any("has not kept 1 pasted text" in note for note in whole.problems)


def test_a_paste_is_looked_up_nowhere_but_in_its_directory(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("elsewhere")
    names = ["../secret", str(tmp_path / "secret"), "", "ABCDEF0123456789", 7, None]
    entries = [
        typed("[Pasted text #1]", NOW + n, pastedContents={"1": {"contentHash": name}}) for n, name in enumerate(names)
    ]
    found = record(written(tmp_path / "c", *entries), "s-1").prompts
    assert [(one.text, one.lost) for one in found] == [("[Pasted text #1]", 1)] * len(names)


def test_a_very_long_paste_is_cut_and_the_bottle_says_so(tmp_path: Path) -> None:
    config = written(tmp_path / "c", typed("[Pasted text #1] see", pastedContents={"1": {"content": "y" * 300_000}}))
    (one,) = record(config, "s-1").prompts
    assert (len(one.text), one.cut_at) == (history.LONGEST, history.LONGEST)
    made = remembered(None, Record((one,)), "s-1")
    assert made is not None
    assert f"\n[truncated at {history.LONGEST} chars]\n" in render(reconstructed(made, 0)).text


def test_a_secret_at_the_cut_is_no_half_secret(tmp_path: Path) -> None:
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    for before in range(0, 40, 3):
        pasted = "y" * (history.LONGEST - before - 1) + " " + secret + " and more" * 20
        config = written(tmp_path / "c", typed("[Pasted text #1]", pastedContents={"1": {"content": pasted}}))
        (one,) = record(config, "s-1").prompts
        assert "ghp_" not in one.text and one.cut_at == history.LONGEST


def test_a_paste_beyond_all_measure_leaves_its_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_PASTE", 1_000)
    config = written(
        tmp_path / "c", typed("[Pasted text #1]", pastedContents={"1": {"contentHash": "0123456789abcdef"}})
    )
    (config / "paste-cache").mkdir()
    for size, lost in ((1_000, 0), (1_001, 1)):
        (config / "paste-cache" / "0123456789abcdef.txt").write_text("z" * size)
        assert [one.lost for one in record(config, "s-1").prompts] == [lost]


def test_private_text_stays_out_whether_typed_or_pasted(tmp_path: Path) -> None:
    config = written(
        tmp_path / "c",
        typed("a <private>hidden-1</private> b"),
        typed("<private>hidden-2</private>", NOW + 1),
        typed("see [Pasted text #1]", NOW + 2, pastedContents={"1": {"content": "x <private>hidden-3</private> y"}}),
        typed("<private>[Pasted text #1]</private> after", NOW + 3, pastedContents={"1": {"content": "hidden-4"}}),
        typed("never closed <private>hidden-5", NOW + 4),
        typed("password: AKIAIOSFODNN7EXAMPLE", NOW + 5),
    )
    found = record(config, "s-1").prompts
    assert "hidden" not in str(found) and "AKIAIOSFODNN7EXAMPLE" not in str(found)
    assert [one.private for one in found] == [False, True, False, False, False, False]
    assert "hidden" not in str(overview(config))
    made = remembered(None, Record(found), "s-1")
    assert made is not None
    bottle = parse(render(reconstructed(made, 0)).text)
    assert [entry.kind for entry in bottle.entries if isinstance(entry, Mark)] == ["private"]


def test_broken_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    config = written(
        tmp_path / "c",
        b"",
        b"not json",
        b'{"display": "torn',
        b"[1, 2]",
        b"null",
        b'{"display": 7, "sessionId": "s-1"}',
        b'{"sessionId": "s-1"}',
        b"[" * 100_000 + b'"s-1"',
        {"display": "of an older client", "timestamp": NOW, "project": "/p"},
        typed("other", session="../../etc"),
        typed("of another", session="s-10"),
        typed(" \n "),
        b'{"display": "half \\ud83d bird", "timestamp": NaN, "sessionId": "s-1", "extra": {"s": 1}}',
        b'{"display": "bad \xff byte", "timestamp": "soon", "project": 5, "sessionId": "s-1"}',
        typed("twice", NOW + 5),
        typed("twice", NOW + 5),
        typed("twice", NOW + 6),
    )
    with (config / "history.jsonl").open("ab") as file:
        file.write(b'{"display": "no newline", "timestamp": 1796000000009, "sessionId": "s-1"}')
    found = record(config, "s-1").prompts
    assert [(one.text, one.at) for one in found] == [
        ("half � bird", None),
        ("bad � byte", None),
        ("twice", NOW + 5),
        ("twice", NOW + 6),
        ("no newline", NOW + 9),
    ]
    seen = overview(config)
    assert {one.session_id: one.prompts for one in seen.sessions} == {"s-1": 6, "s-10": 1}
    assert (seen.nameless, seen.unreadable) == (2, 7)


@pytest.mark.parametrize("thing", ["missing", "directory", "closed"])
def test_a_record_that_cannot_be_read_is_none(for_all: Path, thing: str) -> None:
    if thing == "directory":
        (for_all / "history.jsonl").mkdir()
    if thing == "closed":
        (written(for_all, typed("hello")) / "history.jsonl").chmod(0)

    def look() -> None:
        assert record(for_all, "s-1") == Record()
        assert overview(for_all).sessions == ()

    look() if thing != "closed" else in_child(look, unprivileged=True)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_entries = st.fixed_dictionaries(
    {},
    optional={
        "display": st.text(max_size=30)
        | st.sampled_from(["[Pasted text #1]", "/model", "! ls", "<private>x"])
        | _values,
        "pastedContents": st.just({"1": {"content": "p"}}) | st.dictionaries(st.just("1"), _values) | _values,
        "timestamp": st.integers() | _values,
        "project": st.text(max_size=9) | _values,
        "sessionId": st.just("s-1") | _values,
    },
)


@given(st.lists(_entries | _values | st.binary(max_size=30).map(lambda data: data.replace(b"\n", b" ")), max_size=8))
def test_whatever_stands_in_the_record_it_is_read_or_passed_over(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Any]
) -> None:
    config = written(tmp_path_factory.mktemp("c"), *entries)
    found = record(config, "s-1")
    listed = {one.session_id: one.prompts for one in overview(config).sessions}
    assert len(found.prompts) <= listed.get("s-1", 0)
    whole = remembered(None, found, "s-1")
    assert (whole is None) == (not found.prompts)
    if whole is not None:
        checked(whole)


def test_a_large_record_is_read_in_little_memory(tmp_path: Path) -> None:
    config = tmp_path / "c"
    config.mkdir()
    other = json.dumps(typed("words of another session " * 200, session="s-2")).encode() + b"\n"
    with (config / "history.jsonl").open("wb") as file:
        for _ in range(2_000):
            file.write(other * 4)
        file.write(b"x" * (20 << 20) + b"\n")
        file.write(json.dumps(typed("mine", NOW + 1)).encode() + b"\n")
    tracemalloc.start()
    try:
        assert [one.text for one in record(config, "s-1").prompts] == ["mine"]
        assert [one.session_id for one in overview(config).sessions] == ["s-1", "s-2"]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (config / "history.jsonl").stat().st_size > 50 << 20
    assert peak < 24 << 20


def test_of_too_many_prompts_the_newest_stay_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = written(tmp_path / "c", *(typed(f"prompt {n}", NOW + n) for n in range(30)))
    monkeypatch.setattr(history, "MOST_PROMPTS", 10)
    found = record(config, "s-1")
    assert [one.text for one in found.prompts] == [f"prompt {n}" for n in range(20, 30)]
    assert found.left_out == 20
    monkeypatch.setattr(history, "MOST_CHARS", 27)
    assert [one.text for one in record(config, "s-1").prompts] == ["prompt 27", "prompt 28", "prompt 29"]
    whole = remembered(None, found, "s-1")
    assert whole is not None and "20 older prompts are left out for size" in whole.problems


# -- beside claude-mem


def told(*prompts: MemPrompt, **more: Any) -> MemSession:
    return MemSession("s-1", "claude", "p", prompts=prompts, **more)


def one(text: str, at: int | None = NOW, **more: Any) -> Typed:
    return Typed(text, more.pop("kind", "prompt"), at, "/home/dev/p", **more)


def spoken(session: MemSession | None) -> list[str]:
    assert session is not None
    return [entry.text for entry in checked(session).entries if isinstance(entry, Speech)]


def test_a_prompt_that_both_have_stands_once() -> None:
    both = told(MemPrompt(1, "first", NOW + 900), MemPrompt(2, "second  line", NOW + 60_900))
    found = remembered(both, Record((one("first"), one("second line", NOW + 60_000))), "s-1")
    assert spoken(found) == ["first", "second  line"]
    assert found is not None and found.project == "/home/dev/p"
    assert found.sources[-1] == HISTORY


def test_a_paste_that_a_newer_client_wraps_when_it_sends_it_is_known_again() -> None:
    wrapped = MemPrompt(1, 'see\n<pasted_content id="1c05">\na\nb\n</pasted_content id="1c05">\nnow', NOW + 300)
    assert len(spoken(remembered(told(wrapped), Record((one("see a\nb now"),)), "s-1"))) == 1
    long = "see " + "x" * 5_000
    for end in (f'see <pasted_content id="1c05">\n{"x" * 3_900}…', "see <pasted_con…"):
        cut = MemPrompt(1, end, NOW, truncated=True)
        assert spoken(remembered(told(cut), Record((one(long),)), "s-1")) == [long]


def test_the_same_words_typed_again_later_stand_twice() -> None:
    found = remembered(
        told(MemPrompt(1, "go on", NOW)), Record((one("go on", NOW - 9), one("go on", NOW + 5_000))), "s-1"
    )
    assert spoken(found) == ["go on", "go on"]


def test_a_prompt_claude_mem_has_cut_comes_whole_from_the_record() -> None:
    long = "long " * 2_000
    cut = MemPrompt(1, long[:3_999] + "…", NOW, truncated=True)
    found = remembered(told(cut), Record((one(long.strip()),)), "s-1")
    assert found is not None and spoken(found) == [long.strip()]
    assert "truncated" not in render(reconstructed(found, 0)).text


def test_a_prompt_whose_paste_is_gone_is_known_by_its_time() -> None:
    stored = told(MemPrompt(1, "see a\nb\nc", NOW + 300))
    assert spoken(remembered(stored, Record((one("see [Pasted text #1 +2 lines]", lost=1),)), "s-1")) == ["see a\nb\nc"]
    later = Record((one("see [Pasted text #1 +2 lines]", NOW + 600_000, lost=1),))
    assert spoken(remembered(stored, later, "s-1")) == ["see a\nb\nc", "see [Pasted text #1 +2 lines]"]


def test_what_only_the_record_has_stands_at_its_time_with_the_work_around_it() -> None:
    work = tuple(MemObservation(n, title=f"work {n}", number=1, at=NOW + n * 1_000) for n in (1, 3, 5))
    session = told(
        MemPrompt(1, "first", NOW), observations=work, summaries=(MemSummary(1, "sum", number=1, at=NOW + 6_000),)
    )
    found = remembered(session, Record((one("first"), one("between", NOW + 2_000), one("last", NOW + 9_000))), "s-1")
    assert found is not None
    entries = parse(render(reconstructed(found, 0)).text).entries
    shown = [
        e.text
        if isinstance(e, Speech)
        else [line.ids[0] for line in e.lines]
        if isinstance(e, Happened)
        else type(e).__name__
        for e in entries
    ]
    assert shown == ["first", ["cm:1"], "between", ["cm:3", "cm:5"], "GeneratedSummary", "last"]


def test_work_for_a_private_prompt_is_left_out_to_the_end_of_the_turn_after_it() -> None:
    work = tuple(MemObservation(n, title=f"work {n}", number=1, at=NOW + n * 1_000) for n in (1, 3, 5, 7))
    untimed = MemObservation(9, title="work 9", number=1)
    session = told(MemPrompt(1, "first", NOW), MemPrompt(2, "third", NOW + 4_000), observations=(*work, untimed))
    typed = (one("", NOW + 2_000, private=True), one("third", NOW + 4_000), one("fourth", NOW + 6_000))
    found = remembered(session, Record(typed), "s-1")
    assert found is not None and [o.id for o in found.observations] == [1, 7]
    text = render(reconstructed(found, 0)).text
    assert "work 1" in text and "work 3" not in text and "work 5" not in text and "work 7" in text
    assert "private: this turn is left out" in text


# -- the ladder


class World:
    """A client's directory with a record, and a home."""

    def __init__(self, root: Path) -> None:
        self.config = root / ".claude"
        self.home = Home(root / "data")

    def store(self) -> Store:
        self.home.create()
        return Store.open(self.home.database)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("CLAUDE_MEM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return World(tmp_path)


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_session_of_which_only_the_prompts_are_left_has_a_bottle_that_says_so(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    written(world.config, typed("count the herons"), typed("and the storks?", NOW + 60_000))
    before = fingerprint(world.config)
    about = asked(capsys, "bottle", "s-1", "--stdout")
    assert (about["rung"], about["mode"]) == ("history", MODE_RECONSTRUCTED)
    assert "typed prompts" in about["why"] and "nothing else" in about["why"]
    assert (about["user_messages"], about["assistant_messages"]) == (2, 0)
    made = checked_text(about["text"])
    assert made.header.notes == [HISTORY]
    assert made.header.project == "/p"
    assert [e.text for e in made.entries if isinstance(e, Speech)] == ["count the herons", "and the storks?"]
    assert "**Assistant**" not in about["text"]
    assert "Last request (" in made.closing and "and the storks?" in made.closing
    assert fingerprint(world.config) == before
    handoff = asked(capsys, "handoff", "s-1")
    assert "partial reconstruction" in handoff["text"] and "authoritative" not in handoff["text"]


def test_the_record_is_read_where_nothing_can_be_written(for_all: Path) -> None:
    config = for_all / "c"
    shutil.copytree(RECORDED / "2.1.332", config)
    name = sessions_of("2.1.332")[0]
    for path in (*config.rglob("*"), config):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = fingerprint(config)

    def look() -> None:
        with pytest.raises(OSError):
            (config / "new").write_text("x")
        found = best_document(Home(for_all / "data"), None, name, config_dir=config)
        assert found.rung == "history" and found.document is not None
        assert sum(isinstance(entry, Speech) for entry in found.document.entries) == 13

    in_child(look, unprivileged=True)
    assert fingerprint(config) == before
    config.chmod(0o755)


def test_a_data_directory_that_may_not_be_looked_into_hides_no_lower_rung(for_all: Path) -> None:
    config = written(for_all / "c", typed("count the herons"))
    (config / "history.jsonl").chmod(0o644)
    closed = for_all / "data"
    closed.mkdir(mode=0o700)

    def look() -> None:
        assert best_document(Home(closed), None, "s-1", config_dir=config).rung == "history"

    in_child(look, unprivileged=True)


def test_a_transcript_and_a_stored_conversation_come_first_and_nothing_is_doubled(world: World, tmp_path: Path) -> None:
    written(world.config, typed("count the herons"), typed("only here", NOW + 1))
    one = talk(tmp_path, "s-1", "count the herons")
    with world.store() as store:
        ingest_file(store, one.path, session_id="s-1")
        for rung in ("transcript", "stored"):
            with store.reading():
                found = best_document(world.home, store, "s-1")
                assert found.rung == rung and found.document is not None
                said = [e.text for e in found.document.entries if isinstance(e, Speech) and e.role == "user"]
            assert said == ["count the herons"]
            one.path.unlink(missing_ok=True)


def test_a_session_that_was_forgotten_does_not_come_back_from_the_record(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    written(world.config, typed("count the herons"))
    with world.store() as store:
        store.write(
            lambda db: (
                db.execute(
                    "INSERT INTO tombstones (platform_source, content_session_id, at) VALUES ('claude', 's-1', 1)"
                ).rowcount
            )
        )
        assert best_document(world.home, store, "s-1").document is None
    assert main(["bottle", "s-1"]) != 0
    assert "forgotten" in capsys.readouterr().err
    assert asked(capsys, "sessions") == []


def test_texts_that_were_forgotten_keep_the_record_of_older_sessions_away(world: World) -> None:
    written(world.config, typed("before"), typed("after", NOW + 9, session="s-2"))
    with world.store() as store:
        store.write(lambda db: db.execute("INSERT INTO forgotten VALUES ('', 'k', ?)", (NOW + 5,)).rowcount)
        before, after = (best_document(world.home, store, name) for name in ("s-1", "s-2"))
    assert before.document is None and "forgotten" in before.why
    assert after.rung == "history"


def test_sessions_and_import_know_of_them(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(tmp_path, "there", "I have a transcript")
    written(
        world.config,
        typed("I have a transcript", session="there"),
        typed("gone first", session="gone-1", project="/home/dev/app"),
        typed("gone <private>x</private> last", NOW + 9, session="gone-2", project="/home/dev/app/sub"),
        typed("elsewhere", NOW + 8, session="gone-3", project="/other"),
        {"display": "names no session", "timestamp": NOW, "project": "/p"},
    )
    done = asked(capsys, "import")
    assert (done["read"], done["remembered"], done["nameless"]) == (1, 3, 1)
    listed = asked(capsys, "sessions")
    assert {row["session"]: row["source"] for row in listed} == {
        "there": "store", "gone-1": "history", "gone-2": "history", "gone-3": "history"
    }  # fmt: skip
    rows = asked(capsys, "sessions", "--gone", "--project", "/home/dev/app")
    assert [(row["session"], row["title"], row["prompts"]) for row in rows] == [
        ("gone-2", "gone  last".replace("  ", " "), 1), ("gone-1", "gone first", 1)
    ]  # fmt: skip
    assert main(["sessions"]) == 0
    assert "typed prompts only" in capsys.readouterr().out
    assert asked(capsys, "bottle", "gone-1", "--stdout")["rung"] == "history"


def test_the_beginning_of_its_id_names_such_a_session(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    written(world.config, typed("count the herons", session="abcdef-1"), typed("x", session="abcxyz-2"))
    assert asked(capsys, "bottle", "abcdef", "--stdout")["session"] == "abcdef-1"


def test_it_is_resumed_with_the_handoff_of_a_reconstructed_bottle(served: Served) -> None:
    written(served.root / ".claude", typed("count the herons", project="/home/dev/marsh"))
    ready = served.client.resume("s-1", served.root / ".claude")
    assert (ready.mode, ready.cwd) == (MODE_RECONSTRUCTED, "/home/dev/marsh")
    new = served.session(ready.session, cwd=ready.cwd)
    printed = new.fire("SessionStart", source="startup")
    assert "partial reconstruction" in printed and "Current task: count the herons" in printed


def test_prompts_stand_among_what_was_done_where_what_was_said_was_given_up(world: World, tmp_path: Path) -> None:
    one = talk(tmp_path, "s-1", clock=iter(range(1_796_000_000, 1_797_000_000, 10)).__next__)
    one.turn("count the herons")
    one.bash("count herons", "17")
    one.turn("and the storks?")
    one.bash("count storks", "0")
    said = [json.loads(line) for line in one.path.read_text().splitlines()]
    times = [
        line["timestamp"] for line in said if line["type"] == "user" and isinstance(line["message"]["content"], str)
    ]
    assert len(times) == 2
    stamps = [int(datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp() * 1000) for at in times]
    written(world.config, typed("count the herons", stamps[0]), typed("and the storks?", stamps[1]))
    with world.store() as store:
        ingest_file(store, one.path, session_id="s-1")
        assert best_document(world.home, store, "s-1").rung == "transcript"
        one.path.unlink()
        store.write(lambda db: db.execute("DELETE FROM messages").rowcount)
        found = best_document(world.home, store, "s-1")
    assert found.rung == "history" and found.document is not None and "given up" in found.why
    assert found.document.header.mode == MODE_RECONSTRUCTED != MODE_FULL
    checked_text(render(found.document).text)
    shown = [
        e.text if isinstance(e, Speech) else " ".join(line.text for line in e.lines)
        for e in found.document.entries
        if isinstance(e, Speech | Happened)
    ]
    assert ["herons" in shown[0], "count herons" in shown[1], "storks" in shown[2], "count storks" in shown[3]] == [
        True
    ] * 4
    assert len(shown) == 4 and found.document.header.project == one.cwd
    assert "count storks" in found.document.closing


def test_a_record_that_is_no_file_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "history.jsonl")
    assert overview(tmp_path).sessions == () and record(tmp_path, "s-1").prompts == ()


def line_with(display: str, content: str) -> bytes:
    entry = {
        "display": display,
        "pastedContents": {"1": {"id": 1, "type": "text", "content": content}},
        "timestamp": 1_780_000_000_000,
        "project": "/p",
        "sessionId": "s-1",
    }
    return json.dumps(entry).encode() + b"\n"


def test_many_marks_of_one_paste_cost_no_more_than_one_of_the_largest(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_bytes(line_with("[Pasted text #1] " * 20_000, "x" * 400_000))
    tracemalloc.start()
    found = record(tmp_path, "s-1")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.prompts) == 1 and found.prompts[0].lost > 10_000
    assert peak < 100_000_000


def test_how_a_session_begins_shows_nothing_private_that_a_paste_opens(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_bytes(
        line_with("[Pasted text #1] my hidden plan </private> ok", "<private>\nabc")
    )
    (one,) = overview(tmp_path).sessions
    assert "hidden" not in one.begins and "ok" in one.begins
