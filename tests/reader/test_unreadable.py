"""What cannot be read is said in a clear error, or read as far as it goes."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from endless_mode.bottle.session import render_session
from endless_mode.errors import EndlessError
from endless_mode.ingest import ingest_file
from endless_mode.store import Store
from tests.reader.checker import slots
from tests.reader.damage import LINES

LINE = b'{"type":"user","uuid":"u1","message":{"role":"user","content":"word"}}\n'


def error_of(path: Path) -> EndlessError:
    with Store.temporary() as store, pytest.raises(EndlessError) as caught:
        ingest_file(store, path)
    assert caught.value.code and caught.value.message and caught.value.hint
    return caught.value


def loop(path: Path) -> None:
    path.symlink_to(path)


def dangling(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


CASES = {
    "missing": (lambda path: None, "transcript_unreadable"),
    "directory": (Path.mkdir, "transcript_unreadable"),
    "symlink loop": (loop, "transcript_unreadable"),
    "dangling symlink": (dangling, "transcript_unreadable"),
    "below a file": (lambda path: None, "transcript_unreadable"),
    "empty": (lambda path: path.write_bytes(b""), "empty_transcript"),
    "pipe": (os.mkfifo, "empty_transcript"),
    "binary": (lambda path: path.write_bytes(bytes(range(256)) * 400), "not_a_transcript"),
    "blank": (lambda path: path.write_bytes(b"\n\n  \n"), "not_a_transcript"),
    "text": (lambda path: path.write_text("hello\nworld\n"), "not_a_transcript"),
    "one JSON document": (lambda path: path.write_text('{\n "type": "x"\n}\n'), "not_a_transcript"),
    "foreign lines": (
        lambda path: path.write_text('{"role":"user","content":"x"}\n{"a":1}\n[1]\n3\n'),
        "not_a_transcript",
    ),
    "another client": (
        lambda path: path.write_text('{"type":"session_meta","payload":{}}\n{"type":"response_item"}\n'),
        "not_a_transcript",
    ),
    "half a line": (lambda path: path.write_bytes(LINE[:30]), "not_a_transcript"),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_said_what_cannot_be_read(case: str, tmp_path: Path) -> None:
    make, code = CASES[case]
    path = tmp_path / "session.jsonl"
    if case == "below a file":
        path.write_bytes(LINE)
        path = path / "session.jsonl"
    make(path)
    assert error_of(path).code == code


def test_a_path_no_system_takes_is_said(tmp_path: Path) -> None:
    assert error_of(tmp_path / "a\0b.jsonl").code == "transcript_unreadable"


@pytest.mark.parametrize("name", ["..", ".", "../x", "a/b", "x" * 129, "ü"])
def test_a_session_id_that_is_none_is_said(name: str, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(LINE)
    with Store.temporary() as store, pytest.raises(EndlessError) as caught:
        ingest_file(store, path, session_id=name)
    assert caught.value.code == "bad_session_id" and caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_without_permission_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(LINE)
    path.chmod(0)
    assert "ermission" in error_of(path).message


PACKED = gzip.compress(b"\n".join(LINES[:40]) + b"\n", mtime=0)


@pytest.mark.parametrize("size", [0, 1, 5, 10, 30, len(PACKED) // 2, len(PACKED) - 9, len(PACKED) - 1])
def test_a_packed_file_cut_short_is_said(size: int, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl.gz"
    path.write_bytes(PACKED[:size])
    assert error_of(path).code in ("transcript_unreadable", "empty_transcript")


@pytest.mark.parametrize("at", [0, 3, 12, 40, len(PACKED) // 2, len(PACKED) - 6])
def test_a_damaged_packed_file_is_said(at: int, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl.gz"
    path.write_bytes(PACKED[:at] + bytes(b ^ 0xFF for b in PACKED[at : at + 4]) + PACKED[at + 4 :])
    with Store.temporary() as store:
        try:
            ingest_file(store, path)
        except EndlessError as error:
            assert error.code in ("transcript_unreadable", "not_a_transcript") and error.hint


def test_a_plain_file_named_as_packed_is_said(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl.gz"
    path.write_bytes(LINE)
    assert error_of(path).code == "transcript_unreadable"


def test_an_unreadable_file_leaves_what_was_read_before(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(LINE)
    with Store.temporary() as store:
        session = ingest_file(store, path).session
        before = render_session(store, session, 0).text
        for damage in (b"", bytes(range(256))):
            path.write_bytes(damage)
            with pytest.raises(EndlessError):
                ingest_file(store, path)
        assert [s.text for s in slots(render_session(store, session, 0).text)] == ["word"]
        assert [s.text for s in slots(before)] == ["word"]


def test_a_torn_end_is_counted_and_waits(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(LINE + LINE.replace(b"u1", b"u2")[:30])
    with Store.temporary() as store:
        result = ingest_file(store, path)
        assert (result.lines, result.torn) == (1, 30)
        path.write_bytes(LINE + LINE.replace(b"u1", b"u2"))
        result = ingest_file(store, path)
        assert (result.lines, result.torn) == (1, 0)
        assert [s.text for s in slots(render_session(store, result.session, 0).text)] == ["word", "word"]


def test_a_store_below_no_directory_is_said(tmp_path: Path) -> None:
    with pytest.raises(EndlessError) as caught:
        Store.open(tmp_path / "nowhere" / "endless.db")
    assert caught.value.code and caught.value.hint


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "endless.db")
    store.close()
    for use in (store.read, store.write):
        with pytest.raises(EndlessError):
            use(lambda db: None)


def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "endless.db"
    path.write_bytes(b"no database at all, but something of somebody's\n" * 100)
    before = path.read_bytes()
    with pytest.raises(EndlessError):
        Store.open(path)
    assert path.read_bytes() == before
