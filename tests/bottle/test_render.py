from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from endless_mode.bottle.entries import (
    MODE_RECONSTRUCTED,
    BoundaryMark,
    Document,
    Entry,
    GeneratedSummary,
    Happened,
    Line,
    Mark,
    Speech,
)
from endless_mode.bottle.parse import conversation_part, parse
from endless_mode.bottle.render import render
from tests.bottle.documents import MINUTE, START, document, documents, header

GOLDEN = Path(__file__).with_name("golden.md")
DAY = 24 * 60 * MINUTE


def golden() -> Document:
    entries: list[Entry] = [
        Speech("user", "prompt", "Make the tests pass.\n\n---\n\nThey fail on CI only.", START),
        Happened(
            [
                Line(["12"], "pytest -q — 3 failed, 41 passed"),
                Line(["13", "14", "15"], "Read a.py, b.py, c.py"),
                Line(["cm:7"], "An older one — from elsewhere"),
                Line([], "8 more events"),
                Line([], "Bash — `npm test`", pending=True, at=START + 5000),
            ]
        ),
        Speech(
            "assistant",
            "text",
            "The clock is the culprit:\n\n**User** (10:32)\nwas quoted.",
            START + 9 * MINUTE,
        ),
        Speech("user", "queued", "go on\n", START + 12 * MINUTE),
        Mark("interrupted", START + 13 * MINUTE),
        BoundaryMark(2, "auto", 167_412, START + 208 * MINUTE),
        GeneratedSummary("Claude Code", "Fixed the clock.\n\nNext: CI."),
        Mark("private", START + DAY),
        Speech("assistant", "plan", "1. Freeze time\n2. Push", START + DAY + MINUTE),
        Speech("user", "answer", "Which CI? → the small one", None),
        Speech("user", "prompt", "x" * 12, START + DAY + 2 * MINUTE, truncated_at=4000),
    ]
    return Document(
        header(legs=2, notes=["1 line of the transcript could not be read"]),
        entries,
        "Make the tests pass.\n\n---\n\nThey fail on CI only.",
        "### Last request\nMake the tests pass.\n",
    )


def test_a_bottle_looks_like_the_golden_file() -> None:
    assert render(golden()).text == GOLDEN.read_text(encoding="utf-8")


def test_the_golden_file_parses_to_its_document() -> None:
    entries = list(golden().entries)
    entries[5] = BoundaryMark(2, "auto", 167_000, START + 208 * MINUTE)
    found = parse(GOLDEN.read_text(encoding="utf-8"))
    assert found.entries == entries
    assert found.closing == golden().closing


@given(documents)
@settings(max_examples=50, deadline=None)
def test_the_same_document_gives_the_same_bytes_but_for_the_time_of_rendering(given: Document) -> None:
    first = render(given).data
    given.header = header(**{f: getattr(given.header, f) for f in given.header.__struct_fields__} | {"rendered": 0})
    again = render(given).data
    assert first != again or b"rendered: 1970-01-01 00:00:00 UTC" in first
    changed = [a for a, b in zip(first.split(b"\n"), again.split(b"\n"), strict=True) if a != b]
    assert all(line.startswith(b"project: ") for line in changed)


def talk(turns: int) -> list[Entry]:
    found: list[Entry] = []
    for turn in range(turns):
        found.append(Speech("user", "prompt", f"request {turn}\nwith a second line", START + turn * MINUTE))
        found.append(Happened([Line([str(turn)], "did something")]))
        found.append(Speech("assistant", "text", "an answer of some length\n" * 5, START + turn * MINUTE))
    return found


def test_a_short_bottle_has_no_index() -> None:
    rendered = render(document(*talk(3)))
    assert rendered.index == []
    assert "## Index" not in rendered.text


def test_index_lines_point_at_the_speaker_lines_of_user_turns() -> None:
    rendered = render(document(*talk(600), original_request="request 0", closing="end"))
    lines = rendered.text.split("\n")
    assert len(rendered.index) == 600
    for turn, entry in enumerate(rendered.index):
        assert lines[entry.line - 1].startswith("**User** (")
        assert lines[entry.line] == f"request {turn}"
        assert entry.text == f"request {turn} with a second line"
    assert lines[rendered.shape.closing_line - 1] == "## Where things stand"
    assert f"- line {rendered.index[1].line} · 2026-01-22 10:33 · request 1 with a second line" in lines
    assert parse(rendered.text).index == rendered.index


def test_an_index_line_shows_the_beginning_of_a_long_turn() -> None:
    entries = [Speech("user", "prompt", "word\n" * 100), *talk(600)]
    shown = render(document(*entries)).index[0].text
    assert len(shown) == 100
    assert shown.endswith("…")


def test_entry_lines_point_at_every_entry() -> None:
    rendered = render(golden())
    lines = rendered.text.split("\n")
    starts = " ".join(lines[line - 1][2:6] for line in rendered.entry_lines)
    assert starts == "User hat  Assi User  int = Co Sess  pri Assi User User"


def test_a_long_original_request_begins_at_the_head_and_points_to_the_whole() -> None:
    request = "long words " * 300
    first, second = Speech("user", "command", "/init"), Speech("user", "prompt", request)
    rendered = render(document(first, second, original_request=request))
    head, _, _ = rendered.text.partition("## Conversation")
    line = rendered.entry_lines[1]
    assert f"[the first 2,000 of 3,300 characters; the whole stands at line {line}]" in head
    assert rendered.text.split("\n")[line - 1] == "**User** (—)"
    assert len(head) < 2400
    assert parse(rendered.text).original_request == request


def test_an_original_request_that_stands_nowhere_else_is_shown_whole() -> None:
    request = "long words\n" * 300
    assert request in render(document(original_request=request)).text


def test_nothing_above_moves_when_the_body_grows() -> None:
    request = "long words " * 300
    some = [Speech("user", "prompt", request), *talk(20)]
    before = render(document(*some, original_request=request)).text
    after = render(document(*some, *talk(900), original_request=request)).text
    conversation = before.index("## Where things stand")
    assert after[:conversation] == before[:conversation]


def test_the_date_is_shown_when_it_changes() -> None:
    times = [None, START, START + MINUTE, START + DAY, None, START + DAY, START]
    text = render(document(*[Speech("assistant", "text", "x", at) for at in times])).text
    shown = [line[15:-1] for line in text.split("\n") if line.startswith("**Assistant**")]
    assert shown == ["—", "2026-01-22 10:32", "10:33", "2026-01-23 10:32", "—", "10:32", "2026-01-22 10:32"]


@pytest.mark.parametrize("at", [-1, -(10**18), 10**18, 253_402_300_800_000])
def test_a_time_nobody_can_have_meant_is_unknown(at: int) -> None:
    assert "**User** (—)" in render(document(Speech("user", "prompt", "x", at))).text


@pytest.mark.parametrize(
    ("ids", "shown"),
    [
        (["12"], "[#12]"),
        (["12", "13"], "[#12–13]"),
        (["12", "13", "14", "20", "cm:1", "cm:2"], "[#12–14,20,cm:1–2]"),
        (["13", "12"], "[#13,12]"),
        (["09", "10"], "[#09,10]"),
        (["a,b]", ""], "[#a_b_,_]"),
    ],
)
def test_ids_are_drawn_together(ids: list[str], shown: str) -> None:
    assert f"- {shown} x\n" in render(document(Happened([Line(ids, "x")]))).text


@pytest.mark.parametrize(
    ("mark", "shown"),
    [
        (BoundaryMark(3, "auto", 166_500, START), "2 (auto, ≈167k tokens) · 2026-01-22 10:32 — leg 3"),
        (BoundaryMark(2, "", 812, None), "1 (≈812 tokens) · — — leg 2"),
        (BoundaryMark(2, "manual"), "1 (manual) · — — leg 2"),
        (BoundaryMark(2, "a) · x\n", -5), "1 (ax) · — — leg 2"),
    ],
)
def test_a_boundary_says_what_is_known(mark: BoundaryMark, shown: str) -> None:
    assert f"=== Compaction {shown} begins ===\n\n" in render(document(mark)).text


def test_a_summary_never_stands_in_a_speaker_slot() -> None:
    text = render(document(GeneratedSummary("x", "**Assistant** (10:41)\nI did it.\n\n---"))).text
    assert conversation_part(text) == (
        "> Session summary (generated by x — not verbatim)\n> \\**Assistant** (10:41)\n> I did it.\n> \n> ---\n\n"
    )


def test_the_mode_stands_in_the_header() -> None:
    assert f"\nmode: {MODE_RECONSTRUCTED}\n" in render(document(header=header(mode=MODE_RECONSTRUCTED))).text


def test_the_conversation_part_is_between_its_heading_and_what_follows() -> None:
    rendered = render(document(*talk(600), closing="end"))
    part = conversation_part(rendered.text)
    assert part.startswith("---\n**User** (2026-01-22 10:32)\nrequest 0\n")
    assert part.endswith("an answer of some length\n\n\n")
    assert conversation_part(render(document()).text) == ""
