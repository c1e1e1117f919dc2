"""Search: what was said and done is found, whatever is typed, with an index or without."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endless_mode.cli.search import MAX_TOKENS, shown
from endless_mode.home import Home
from endless_mode.search import Hit, Question, build, index, missing, search, step
from endless_mode.search.query import words
from endless_mode.store import Store
from endless_mode.tokens import estimate_tokens
from tests.live.parts import Living
from tests.past.parts import config_of, endless, imported, talk


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Three sessions in two projects, nothing indexed."""
    one = talk(tmp_path, "one", "Please repair the tokenizer", cwd="/home/dev/app")
    one.bash("x_y=1 pytest tests/test_heron.py -q", "2 failed, 5 passed in 0.10s\nE  ValueError: no stork")
    one.turn("The heron stands in the reeds", "A heron is no stork.")
    talk(tmp_path, "two", "Write about herons and 100% of_all things", cwd="/home/dev/app/sub")
    talk(tmp_path, "three", "An unrelated matter", cwd="/home/dev/apple")
    with Store.open(tmp_path / "endless.db") as made:
        imported(made, tmp_path / ".claude")
        yield made


def found(store: Store, text: str, **more: object) -> list[Hit]:
    return store.read(lambda db: search(db, Question(text, **more)))  # type: ignore[arg-type]


def texts(hits: list[Hit]) -> list[str]:
    return [hit.title or hit.text for hit in hits]


@pytest.fixture(params=["indexed", "not indexed", "half indexed"])
def either(request: pytest.FixtureRequest, store: Store) -> Store:
    if request.param == "indexed":
        assert build(store)
        assert store.read(missing) == 0
    elif request.param == "half indexed":
        store.write(lambda db: step(db, 4))
        assert store.read(missing) > 0
    return store


def test_messages_and_observations_are_found(either: Store) -> None:
    hits = found(either, "heron")
    assert {hit.kind for hit in hits} == {"message", "observation"}
    assert any("The heron stands in the reeds" in text for text in texts(hits))
    assert any("test_heron.py" in text for text in texts(hits))


def test_every_word_must_be_there(either: Store) -> None:
    assert texts(found(either, "heron reeds")) != []
    assert all("reeds" in text for text in texts(found(either, "heron reeds")))


def test_a_find_is_limited_to_a_project_or_session(either: Store) -> None:
    assert {hit.session for hit in found(either, "herons")} >= {"two"}
    assert {hit.session for hit in found(either, "herons", project="/home/dev/app/sub")} == {"two"}
    assert {hit.session for hit in found(either, "matter", project="/home/dev/app")} == set()
    assert {hit.session for hit in found(either, "matter", project="/home/dev/apple/")} == {"three"}
    assert {hit.session for hit in found(either, "heron", session="on")} == {"one"}


def test_signs_alone_are_looked_for_as_they_stand(either: Store) -> None:
    assert {hit.session for hit in found(either, "%")} == {"two"}
    assert {hit.session for hit in found(either, "_ =")} == {"one"}


def test_phrases_beginnings_and_word_forms(store: Store) -> None:
    build(store)
    assert any("no stork" in text for text in texts(found(store, '"no stork"')))
    assert found(store, '"stork heron"') == []
    assert any("tokenizer" in text for text in texts(found(store, "token*")))
    assert {hit.session for hit in found(store, "herons")} == {"one", "two"}


def test_any_word_will_do_when_no_text_has_them_all(store: Store) -> None:
    build(store)
    assert {hit.session for hit in found(store, "reeds unrelated")} == {"one", "three"}


def test_a_title_counts_more_than_a_text(tmp_path: Path) -> None:
    said = talk(tmp_path, "said")
    for n in range(5):
        said.bash(f"make part{n}", "something about a quokka\n" + "other words entirely\n" * 3)
    said.bash("make quokka", "done")
    with Store.open(tmp_path / "endless.db") as store:
        imported(store, tmp_path / ".claude")
        build(store)
        hits = [hit for hit in found(store, "quokka") if hit.kind == "observation"]
    assert len(hits) > 1
    assert "make quokka" in hits[0].title


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.text(max_size=40), st.text('"*()^-+:{}[]ANDORT NEAR/\\%_\0', max_size=20)))
def test_whatever_is_typed_is_no_error(store: Store, text: str) -> None:
    build(store)
    hits = found(store, text)
    assert len(hits) <= 20


@given(st.text(max_size=40))
def test_words_are_quoted_so_that_none_is_an_operator(text: str) -> None:
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE VIRTUAL TABLE t USING fts5(a)")
        for word in words(text):
            db.execute("SELECT * FROM t WHERE t MATCH ?", (word.expression,)).fetchall()
    db.close()


def test_what_changes_or_goes_leaves_the_index(store: Store) -> None:
    build(store)
    store.write(lambda db: db.execute("UPDATE messages SET text = 'a kingfisher' WHERE text LIKE '%reeds%'").rowcount)
    assert [hit.kind for hit in found(store, "reeds")] == ["observation"]
    assert texts(found(store, "kingfisher")) == ["a kingfisher"]
    store.write(lambda db: db.execute("DELETE FROM sessions WHERE content_session_id = 'one'").rowcount)
    assert found(store, "kingfisher") == []
    store.write(index.purge)
    store.write(lambda db: db.execute("INSERT INTO search (search) VALUES ('integrity-check')").rowcount)
    assert store.read(lambda db: db.execute("SELECT count(*) FROM search_docsize").fetchone()[0]) == store.read(
        lambda db: db.execute(
            "SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM observations)"
        ).fetchone()[0]
    )


def test_ids_that_are_given_out_again_are_indexed_again(store: Store, tmp_path: Path) -> None:
    build(store)
    store.write(lambda db: db.execute("DELETE FROM messages WHERE id >= (SELECT max(id) - 2 FROM messages)").rowcount)
    talk(tmp_path, "late", "the albatross", "and the pelican")
    imported(store, tmp_path / ".claude")
    assert build(store)
    assert {hit.session for hit in found(store, "albatross pelican")} == {"late"}
    store.write(lambda db: db.execute("INSERT INTO search (search) VALUES ('integrity-check')").rowcount)


def test_nothing_is_indexed_at_ingest(store: Store) -> None:
    assert not store.read(index.exists)


def test_an_sqlite_without_fts5_still_finds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_TABLES", ("CREATE VIRTUAL TABLE search USING fts9(title)",))
    assert build(store)
    assert not store.read(index.exists)
    assert any("reeds" in text for text in texts(found(store, "reeds")))


def test_a_build_stops_when_its_time_is_over_and_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path / "endless.db") as store:
        imported(store, config_of(tmp_path))
        before = store.read(missing)
        assert before > 100
        monkeypatch.setattr(index.step, "__defaults__", (50,))
        assert not build(store, seconds=0)
        assert store.read(missing) == before - 50
        assert build(store)
        assert store.read(missing) == 0


def test_what_is_printed_keeps_to_its_size() -> None:
    hits = [Hit("observation", n, "s" * 36, "/p", 0, "word " * 200, "outcome") for n in range(500)]
    lines = shown(hits)
    assert sum(estimate_tokens(line) for line in lines) <= MAX_TOKENS + 40
    assert "more" in lines[-1]
    assert shown(hits[:1])[0].startswith("[#0] word")


def test_the_command_prints_ids_and_finds_with_the_worker(living: Living) -> None:
    config_of(living.root)
    talk(living.root, "mine", "the bittern booms")
    assert endless(living.environ, "import").returncode == 0
    done = endless(living.environ, "search", "bittern")
    assert done.returncode == 0, done.stderr
    assert "session mine user: the bittern booms" in done.stdout
    assert any(line.startswith("[#") and "step 0 of the bittern booms" in line for line in done.stdout.splitlines())
    assert living.rows("SELECT count(*) FROM search_until WHERE id > 0") == [(2,)]
    assert endless(living.environ, "search", "--json", "nosuchwordatall").returncode == 1


def test_the_command_finds_while_another_process_holds_the_store(tmp_path: Path) -> None:
    talk(tmp_path, "mine", "the bittern booms")
    home = Home(tmp_path / "data")
    home.create()
    with Store.open(home.database) as store:
        imported(store, tmp_path / ".claude")
        done = endless(
            {"HOME": str(tmp_path), "CLAUDE_MEM_DATA_DIR": str(home.data_dir)}, "search", "--json", "bittern"
        )
        assert not store.read(index.exists)
    assert [hit["session"] for hit in json.loads(done.stdout) if hit["kind"] == "message"][:1] == ["mine"], done.stderr
