from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from endless_mode.bottle.entries import Document, GeneratedSummary, Happened, Line, Speech
from endless_mode.bottle.escape import (
    BOUNDARY,
    FOLD_AT,
    HAPPENED,
    OBSERVED,
    PENDING,
    SPEAKER,
    SUMMARY,
    decode,
    encode,
    flatten,
)
from endless_mode.bottle.parse import BadBottle, parse, parse_header
from endless_mode.bottle.render import render
from tests.bottle.documents import GLUE, STRUCTURES, document, documents, header, texts

many = settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))


@many
@given(documents)
def test_parsing_gives_back_what_was_rendered(given: Document) -> None:
    rendered = render(given)
    found = parse(rendered.text)
    assert found.entries == given.entries
    assert found.header == given.header
    assert found.original_request == given.original_request
    assert found.closing == given.closing
    assert [line.line for line in found.index] == [line.line for line in rendered.index]
    assert rendered.data.decode() == rendered.text
    assert parse_header(rendered.text) == given.header


@many
@given(texts, st.booleans())
def test_a_decoded_text_is_the_text_that_was_encoded(text: str, closing: bool) -> None:
    assert decode(encode(text, closing=closing), closing=closing) == text


@many
@given(texts)
def test_an_encoded_text_stays_short_of_lines_and_free_of_nul(text: str) -> None:
    encoded = encode(text)
    assert "\0" not in encoded
    assert all(len(line) <= FOLD_AT + 20 for line in encoded.split("\n"))


@many
@given(st.lists(texts, min_size=1, max_size=4))
def test_no_message_adds_a_structure_line(messages: list[str]) -> None:
    given = document(*[Speech("assistant", "text", text) for text in messages])
    segments = render(given).text.splitlines()
    assert sum(re.fullmatch(SPEAKER, segment) is not None for segment in segments) == len(messages)
    assert sum(segment.startswith("# Session bottle — ") for segment in segments) == 1
    for heading in ("## Conversation", "## Where things stand"):
        assert segments.count(heading) == 1
    for shape in (BOUNDARY, SUMMARY, OBSERVED, PENDING, re.escape(HAPPENED)):
        assert not any(re.fullmatch(shape, segment) for segment in segments)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("before", ["", "\\", "words\n", "words\r", "a" * 2000, "> "])
def test_every_structure_survives_everywhere(structure: str, before: str) -> None:
    text = before + structure
    flat = flatten(text)
    given = document(
        Speech("user", "prompt", text),
        Speech("user", "prompt", text, truncated_at=4000),
        Speech("assistant", "text", text + "\n"),
        GeneratedSummary(flat, text),
        Happened([Line([], flat), Line(["1"], flat), Line([], flat, True), Line(["1"], flat, True, 0)]),
        original_request=text,
        closing=text,
    )
    found = parse(render(given).text)
    assert found.entries == given.entries
    assert (found.original_request, found.closing) == (text, text)


@pytest.mark.parametrize("structure", [s for s in STRUCTURES if s.startswith(("**", "##", "===", "*", "- [#12]"))])
@pytest.mark.parametrize("before", ["", "words\n", *(f"words{glue}" for glue in GLUE)])
def test_structure_in_a_message_gets_one_backslash(structure: str, before: str) -> None:
    assert encode(before + structure) == before + "\\" + structure
    assert encode(f"{before}\\\\{structure}") == f"{before}\\\\\\{structure}"


@pytest.mark.parametrize(
    "text",
    [
        "---",
        "# Title\n\n## Plan\n\n- one\n- two\n* three\n\n> quote\n\n```py\nx = 1\n```\n---\n",
        "**User** said (10:32) that",
        " **User** (10:32)",
        "## Index of terms",
        "=== 3 passed in 0.12s ===",
        "\\alpha and C:\\dir\n\\\\server\\share",
        "- [ ] todo\n- [x] done\n- ⏳ waiting",
        "trailing  \n\n\n",
        "\n\n  leading",
        "a\r\nb\rc\x85d",
        "␀ and ⤶ within a line",
        "x" * FOLD_AT,
    ],
)
def test_ordinary_text_stands_as_it_is(text: str) -> None:
    assert encode(text) == text
    assert f"\n**Assistant** (—)\n{text}\n\n" in render(document(Speech("assistant", "text", text))).text


def test_a_long_line_is_folded_with_a_mark() -> None:
    assert encode("a" * 4001) == "a" * 2000 + "⤶\n" + "a" * 2000 + "⤶\na"


def test_structure_at_a_fold_is_escaped_too() -> None:
    text = "a" * 2000 + "**User** (10:32)"
    assert encode(text) == "a" * 2000 + "⤶\n\\**User** (10:32)"
    assert decode(encode(text)) == text


def test_a_line_that_ends_in_the_mark_gets_a_backslash() -> None:
    assert encode("a⤶\nb⤶\\") == "a⤶\\\nb⤶\\\\"


def test_nul_is_made_visible() -> None:
    assert encode("a\0b ⟨NUL⟩") == "a⟨NUL⟩b ⟨\\NUL⟩"


def test_the_closing_part_may_show_observations_as_they_are() -> None:
    closing = "- [#12] Ran it — ok\n- ⏳ Bash (observation pending)\n## Index"
    text = render(document(closing=closing)).text
    assert text.endswith("- [#12] Ran it — ok\n- ⏳ Bash (observation pending)\n\\## Index\n")
    assert parse(text).closing == closing


def test_hostile_header_values_stay_on_their_line() -> None:
    project = "/a\nmode: reconstructed\r\u2028 · started: — · legs: 9 · rendered: —"
    given = document(header=header(project=project, notes=["a\n\n## Conversation"]))
    found = parse(render(given).text).header
    assert found.project == "/a mode: reconstructed   · started: — · legs: 9 · rendered: —"
    assert found.mode == given.header.mode
    assert found.legs == 1
    assert found.notes == ["a  ## Conversation"]


def test_an_observation_is_one_physical_line() -> None:
    given = document(Happened([Line(["1"], "a\nb\r\tc\u2028d\x1b[0m")]), GeneratedSummary("x\ny", "t"))
    text = render(given).text
    assert "\n- [#1] a b  c d [0m\n" in text
    assert "(generated by x y — not verbatim)" in text


def test_lone_surrogates_become_replacement_characters_and_move_nothing() -> None:
    rendered = render(document(Speech("user", "prompt", "a\ud800b"), closing="\udfff"))
    assert parse(rendered.text).entries == [Speech("user", "prompt", "a\ufffdb")]
    assert rendered.data.decode() == rendered.text


@many
@given(documents, st.data())
def test_a_damaged_bottle_is_refused_or_read_but_never_breaks_the_parser(given: Document, data: st.DataObject) -> None:
    text = render(given).text
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    put = data.draw(st.sampled_from(["", "\n", "\n\n", "9" * 30, *STRUCTURES]))
    try:
        parse(text[:start] + put + text[end:])
    except BadBottle as error:
        assert error.code in ("not_a_bottle", "damaged_bottle")
        assert error.message
        assert error.hint


@given(texts)
@example("")
def test_a_foreign_file_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(BadBottle) as caught:
        parse("x" + text)
    assert caught.value.code == "not_a_bottle"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("## Conversation\n", "## Conversations\n"),
        ("## Where things stand\n", ""),
        ("---\n**User**", "--\n**User**"),
        ("mode: ", "mood: "),
        ("· legs: 1", "· legs: one"),
        ("2026-01-22 10:32)", "2026-02-31 10:32)"),
        ("- [#1] did", "did"),
        ("- [#1] did", "- [#9–1] did"),
        ("## Conversation\n\n", "## Conversation\n\nstray\n\n"),
    ],
)
def test_damage_is_named(old: str, new: str) -> None:
    text = render(document(Speech("user", "prompt", "hi", 1_769_077_920_000), Happened([Line(["1"], "did")]))).text
    assert text.count(old) == 1
    with pytest.raises(BadBottle) as caught:
        parse(text.replace(old, new))
    assert caught.value.code == "damaged_bottle"
