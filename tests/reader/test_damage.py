"""Whatever the bytes are: an error of ours, or a bottle; never anything else."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endless_mode.bottle.session import render_session
from endless_mode.errors import EndlessError
from endless_mode.ingest import ingest_file
from endless_mode.store import Store
from tests.reader import damage
from tests.reader.checker import slots

NAME = "0f0f0f0f-0000-4000-8000-000000000000.jsonl"
loose = settings(deadline=None, suppress_health_check=list(HealthCheck))


def ingest(data: bytes, beside: bytes = b"") -> str | None:
    """The bottle, ``None`` where the program says what is wrong."""
    with TemporaryDirectory() as folder, Store.temporary() as store:
        path = Path(folder, NAME)
        path.write_bytes(data)
        if beside:
            agents = Path(folder, NAME.removesuffix(".jsonl"), "subagents")
            agents.mkdir(parents=True)
            (agents / "agent-a1.jsonl").write_bytes(beside)
        try:
            text = render_session(store, ingest_file(store, path).session, 0).text
        except EndlessError as error:
            assert error.code and error.message and error.hint
            return None
        slots(text)
        return text


@given(damage.files)
@settings(loose, max_examples=250)
def test_no_bytes_raise_anything_but_an_error_of_ours(data: bytes) -> None:
    ingest(data)


@given(st.binary(max_size=300))
@settings(loose, max_examples=100)
def test_noise_is_no_transcript(data: bytes) -> None:
    ingest(data)


@given(damage.files)
@settings(loose, max_examples=60)
def test_a_broken_file_of_a_subagent_does_not_cost_the_session(data: bytes) -> None:
    assert ingest(damage.LINES[0] + b"\n" + damage.LINES[3] + b"\n", beside=data) is not None


@pytest.mark.parametrize("key", damage.KEYS)
def test_no_type_of_any_field_raises(key: str) -> None:
    made: list[bytes] = []
    for line in damage.LINES[:: max(1, len(damage.LINES) // 40)]:
        entry = json.loads(line)
        for path in [p for p in damage.places(entry) if p[-1] == key] or [(key,)]:
            for n, wrong in enumerate(damage.WRONG):
                changed = json.loads(line)
                if key != "uuid" and "uuid" in changed:
                    changed["uuid"] += f"-{n}"
                damage.put(changed, path, wrong)
                made.append(json.dumps(changed).encode())
    assert ingest(b"\n".join(made)) is not None


GOOD = '{"type":"user","uuid":"u%d","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"word%d"}}'


@pytest.mark.parametrize(
    "between",
    [
        b"not json at all\n",
        b"\xef\xbb\xbf",
        b"\x00\x00\x00",
        b'{"type":"user","mess',
        b'{"type":"progress","data":{"message":{"content":[{"a":',
        b'# a comment\n{"half": \n',
        b"[1, 2, 3]\n",
        b'"a bare string"\n',
        b'{"type":[]}\n{"type":{}}\n',
        b'{"type":"assistant","message":{"content":[{"type":"text","text":"x"}],"usage":{"input_tokens":1e999}}}\n',
        b'{"type":"assistant","message":{"content":[],"usage":{"input_tokens":99999999999999999999999}}}\n',
        b'{"type":"system","subtype":"compact_boundary","compactMetadata":{"preTokens":99999999999999999999999}}\n',
        *[line + b"\n" for line in damage.nested(100_000)],
    ],
    ids=lambda data: repr(data[:40]),
)
def test_damage_costs_nothing_but_itself(between: bytes) -> None:
    text = ingest((GOOD % (1, 1)).encode() + b"\n" + between + (GOOD % (2, 2)).encode() + b"\n")
    assert text is not None
    assert [s.text for s in slots(text) if s.role == "user"] == ["word1", "word2"]


def test_two_objects_on_a_line_are_two_messages() -> None:
    text = ingest((GOOD % (1, 1) + GOOD % (2, 2) + " " + GOOD % (3, 3) + "\n" + GOOD % (4, 4)).encode())
    assert text is not None
    assert [s.text for s in slots(text)] == ["word1", "word2", "word3", "word4"]


def test_a_string_for_content_survives_odd_usage() -> None:
    line = b'{"type":"assistant","uuid":"a","message":{"role":"assistant","content":"said","usage":3}}\n'
    text = ingest((GOOD % (1, 1)).encode() + b"\n" + line)
    assert text is not None and [s.text for s in slots(text)] == ["word1", "said"]


def test_lone_surrogates_and_bad_bytes_become_replacement_characters() -> None:
    data = b'{"type":"user","uuid":"u1","message":{"content":"a\\ud800b \xff c \\ud83d\\ude42"}}\n'
    text = ingest(data)
    assert text is not None and [s.text for s in slots(text)] == ["a\ufffdb \ufffd c 🙂"]
