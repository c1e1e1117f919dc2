"""Whatever has become of the file: a bottle or a clear error, and never a write."""

from __future__ import annotations

import gzip
import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endless_mode.claude_mem import ClaudeMem, MemSession
from endless_mode.claude_mem.snapshot import ClaudeMemError
from tests.claude_mem.files import EDGE, FIXTURES, FRESH, SESSIONS, UNMIGRATED, change, checked, database, untouched

TABLES = ("sdk_sessions", "user_prompts", "observations", "session_summaries")


def read(path: Path, content_id: str) -> MemSession | None:
    """The session, its bottle checked, the directory untouched."""
    with untouched(path.parent):
        session = ClaudeMem.open(path).session(content_id)
    if session is not None:
        checked(session)
    return session


def needs(path: Path, content_id: str) -> MemSession:
    session = read(path, content_id)
    assert session is not None
    return session


@pytest.fixture(params=sorted(SESSIONS))
def named(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    return database(request.param, tmp_path / "d"), SESSIONS[request.param]


@pytest.mark.parametrize("table", TABLES[1:])
def test_a_missing_table_costs_only_what_was_in_it(named: tuple[Path, str], table: str) -> None:
    path, content_id = named
    before = needs(path, content_id)
    change(path, f"DROP TABLE {table}")
    after = needs(path, content_id)
    assert bool(after.observations) == (table != "observations")
    assert bool(after.summaries) == (table != "session_summaries")
    first = before.prompts[0].text
    assert after.prompts[0].text == first, "the session row still has the first prompt"


def test_a_file_without_sessions_is_refused_by_name(named: tuple[Path, str]) -> None:
    path, content_id = named
    change(path, "DROP TABLE sdk_sessions")
    with pytest.raises(ClaudeMemError) as caught:
        read(path, content_id)
    assert caught.value.code == "not_claude_mem" and caught.value.hint


def columns() -> list[tuple[str, str, str]]:
    found = []
    for name in sorted(SESSIONS):
        db = sqlite3.connect(":memory:")
        db.deserialize(gzip.decompress((FIXTURES / f"{name}.db.gz").read_bytes()))
        found += [(name, t, r[1]) for t in TABLES for r in db.execute(f"PRAGMA table_info({t})") if r[1] != "id"]
        db.close()
    return found


@pytest.mark.parametrize(("name", "table", "column"), columns())
def test_any_column_may_be_missing(tmp_path: Path, name: str, table: str, column: str) -> None:
    path = database(name, tmp_path / "d")
    kept = [c for n, t, c in columns() if (n, t) == (name, table) and c != column]
    change(
        path,
        f"CREATE TABLE copied AS SELECT id, {', '.join(kept)} FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE copied RENAME TO {table}",
    )
    if column == "content_session_id" and table == "sdk_sessions":
        with pytest.raises(ClaudeMemError):
            read(path, SESSIONS[name])
        return
    session = needs(path, SESSIONS[name])
    if table == "sdk_sessions" and column == "memory_session_id":
        assert not session.observations and not session.summaries
    elif table == "sdk_sessions" and column != "platform_source":
        assert session.prompts and session.observations and session.summaries


@pytest.mark.parametrize(
    "value", ["NULL", "''", "17", "1.5", "x'00ff80'", "'not what it was'", "'[\"a\", 3, null, {}]'", "9e300", "-1"]
)
@pytest.mark.parametrize("table", TABLES)
def test_any_value_may_be_of_any_type(named: tuple[Path, str], table: str, value: str) -> None:
    path, content_id = named
    db = sqlite3.connect(path)
    names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    db.close()
    keep = {"id", "content_session_id", "memory_session_id", "session_db_id"}
    loose = f"CREATE TABLE loose AS SELECT * FROM {table}"
    updates = [f'UPDATE {table} SET "{n}" = {value}' for n in names if n not in keep]
    change(path, loose, f"DROP TABLE {table}", f"ALTER TABLE loose RENAME TO {table}", *updates)
    session = read(path, content_id)
    if table == "observations":
        assert session is not None and len(session.observations) == len({o.id for o in session.observations}) > 0


def test_another_platform_with_the_same_id_is_another_session(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    content_id = SESSIONS[FRESH]
    change(
        path,
        "UPDATE sdk_sessions SET memory_session_id = 'mem-cursor' WHERE id = 3",
        f"INSERT INTO user_prompts (session_db_id, content_session_id, prompt_number, prompt_text, created_at,"
        f" created_at_epoch) VALUES (3, '{content_id}', 1, 'typed into the other one', '', 1)",
        "INSERT INTO observations (memory_session_id, project, type, title, created_at, created_at_epoch)"
        " VALUES ('mem-cursor', 'p', 'change', 'seen in the other one', '', 1)",
    )
    session = needs(path, content_id)
    assert "other one" not in str(session)
    with untouched(path.parent):
        other = ClaudeMem.open(path).session(content_id, "cursor")
    assert other is not None
    assert [p.text for p in other.prompts] == ["typed into the other one"]
    assert [o.title for o in other.observations] == ["seen in the other one"]


def test_prompts_that_name_no_session_are_not_guessed_at(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    change(path, "UPDATE user_prompts SET session_db_id = NULL")
    session = needs(path, SESSIONS[FRESH])
    assert [p.text for p in session.prompts] == ["Add a retry to the uploader"], (
        "from the session row, which is its own"
    )
    change(path, "DELETE FROM sdk_sessions WHERE platform_source = 'cursor'")
    assert len(needs(path, SESSIONS[FRESH]).prompts) == 2


def test_a_session_of_another_platform_alone_is_not_shown(tmp_path: Path) -> None:
    path = database(FRESH, tmp_path / "d")
    assert read(path, "ffff0000-2222-4222-8333-444455556666") is None


def test_the_platform_is_compared_as_claude_mem_does(named: tuple[Path, str]) -> None:
    path, content_id = named
    change(path, "UPDATE sdk_sessions SET platform_source = ' Claude Code ' WHERE id = 1")
    assert needs(path, content_id).observations


def test_the_content_id_of_another_code_line_is_not_used(tmp_path: Path) -> None:
    path = database(EDGE, tmp_path / "d")
    change(path, "UPDATE observations SET content_session_id = 'somebody else'")
    assert len(needs(path, SESSIONS[EDGE]).observations) == 1
    change(path, "UPDATE observations SET content_session_id = 'legacy-content-1', memory_session_id = 'another'")
    assert not needs(path, SESSIONS[EDGE]).observations


def test_a_restarted_observer_loses_nothing(named: tuple[Path, str]) -> None:
    path, content_id = named
    before = needs(path, content_id)
    db = sqlite3.connect(path)
    db.execute("PRAGMA foreign_keys=1")
    db.execute("UPDATE sdk_sessions SET memory_session_id = 'anew' WHERE id = 1")
    db.commit()
    db.close()
    after = needs(path, content_id)
    assert (after.observations, after.summaries) == (before.observations, before.summaries)


def test_legacy_text_stands_where_the_new_columns_are_empty(tmp_path: Path) -> None:
    path = database(UNMIGRATED, tmp_path / "d")
    change(
        path,
        "UPDATE observations SET title = NULL, subtitle = NULL, narrative = NULL, facts = NULL, concepts = 'a, b',"
        " files_read = '- one.py' || char(10) || '- two.py', text = 'Found the clock. It was slow.'",
    )
    session = needs(path, SESSIONS[UNMIGRATED])
    assert "- [#cm:1] Found the clock" in checked(session).closing
    assert session.observations[0].files_read == ("one.py", "two.py")


@pytest.mark.parametrize("kind", ["empty", "text", "header", "half", "directory", "missing", "fifo", "other database"])
def test_what_is_no_usable_database_is_said_clearly(tmp_path: Path, kind: str) -> None:
    path = database(FRESH, tmp_path / "d")
    data = path.read_bytes()
    path.unlink()
    match kind:
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "missing":
            pass
        case "other database":
            db = sqlite3.connect(path)
            db.execute("CREATE TABLE t (x)")
            db.commit()
            db.close()
        case _:
            path.write_bytes(
                {"empty": b"", "text": b"hello\n" * 500, "header": data[:100], "half": data[: len(data) // 2]}[kind]
            )
    files = sorted(p.name for p in path.parent.iterdir())
    with pytest.raises(ClaudeMemError) as caught:
        ClaudeMem.open(path)
    assert caught.value.code in {
        "empty": ("not_claude_mem",),
        "other database": ("not_claude_mem",),
        "missing": ("no_claude_mem",),
        "directory": ("claude_mem_unreadable",),
        "fifo": ("claude_mem_unreadable",),
    }.get(kind, ("claude_mem_damaged",))
    assert caught.value.hint and str(path) in caught.value.message
    assert sorted(p.name for p in path.parent.iterdir()) == files


@pytest.mark.parametrize("table", TABLES)
def test_a_corrupt_page_costs_what_was_on_it(tmp_path: Path, table: str) -> None:
    path = database(FRESH, tmp_path / "d")
    db = sqlite3.connect(path)
    (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    if table == "sdk_sessions":
        # Without the session's row nothing says what belongs to it.
        assert read(path, SESSIONS[FRESH]) is None
        return
    session = needs(path, SESSIONS[FRESH])
    assert any(table in problem for problem in session.problems)
    assert any("could not be read" in note for note in checked(session).header.notes)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_gives_a_bottle_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(SESSIONS)))
    path = database(name, tmp_path_factory.mktemp("d"))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1) | st.integers(0, 16_384))
        new = data.draw(st.binary(min_size=1, max_size=64))
        content[at : at + len(new)] = new
    path.write_bytes(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    try:
        read(path, SESSIONS[name])
    except ClaudeMemError as error:
        assert error.code.split("_")[0] in ("claude", "not") and error.message and error.hint
