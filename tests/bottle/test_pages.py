from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endless_mode.bottle.pages import (
    MAX_BYTES,
    MAX_TOKENS,
    Page,
    fits_one_read,
    pages,
    tail_pages,
)
from endless_mode.tokens import estimate_tokens

bodies = st.lists(st.text(max_size=60) | st.just("words " * 50), max_size=60).map("\n".join)


def as_read(text: str, page: Page) -> str:
    """What the client hands over for this Read."""
    lines = text.split("\n")[page.offset - 1 : page.offset - 1 + page.limit]
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, page.offset))


@given(bodies, st.integers(1, 400), st.integers(20, 2000))
@settings(deadline=None)
def test_pages_cover_every_line_once_in_order(text: str, max_tokens: int, max_bytes: int) -> None:
    plan = list(pages(text, max_tokens, max_bytes))
    covered = [n for page in plan for n in range(page.offset, page.offset + page.limit)]
    lines = text.split("\n")
    assert covered == list(range(1, len(lines) + (1 if lines[-1] else 0)))
    for page in plan:
        got = as_read(text, page)
        assert page.limit == 1 or page.tokens <= max_tokens
        assert page.limit == 1 or len(got.encode()) <= max_bytes
        assert estimate_tokens(got) <= page.tokens


@given(bodies, st.integers(0, 2000), st.integers(1, 400))
@settings(deadline=None)
def test_tail_pages_end_at_the_last_line_and_keep_the_budget(text: str, budget: int, max_tokens: int) -> None:
    plan = tail_pages(text, budget, max_tokens)
    assert sum(page.tokens for page in plan) <= budget
    assert all(page.tokens <= max_tokens for page in plan)
    lines = text.split("\n")
    end = len(lines) if lines[-1] else len(lines) - 1
    for page in plan:
        assert page.offset + page.limit - 1 == end
        end = page.offset - 1
        assert estimate_tokens(as_read(text, page)) <= page.tokens


def test_a_page_is_filled_as_far_as_it_goes() -> None:
    text = "some words on a line\n" * 20_000
    plan = list(pages(text))
    assert all(MAX_TOKENS * 0.99 < page.tokens <= MAX_TOKENS for page in plan[:-1])
    assert MAX_TOKENS * 0.99 < tail_pages(text, MAX_TOKENS)[0].tokens <= MAX_TOKENS


def test_a_page_of_cheap_text_stops_at_the_byte_limit() -> None:
    text = ("a" * 1000 + "\n") * 1000
    plan = list(pages(text, max_tokens=10**9))
    assert all(len(as_read(text, page).encode()) <= MAX_BYTES for page in plan)
    assert len(plan) == 4


def test_empty_lines_are_not_free_because_each_has_a_number() -> None:
    plan = list(pages("\n" * 100_000))
    assert len(plan) > 10


def test_a_line_over_the_limit_is_a_page_of_its_own() -> None:
    plan = list(pages("a\n" + "b1" * 1000 + "\nc\n", max_tokens=100))
    assert [(page.offset, page.limit) for page in plan] == [(1, 1), (2, 1), (3, 1)]
    assert plan[1].tokens > 100


def test_the_tail_stops_at_a_line_that_is_over_the_budget() -> None:
    plan = tail_pages("a\n" + "b1" * 1000 + "\nc\n", 100)
    assert [(page.offset, page.limit) for page in plan] == [(3, 1)]
    assert tail_pages("b1" * 1000, 100) == []


@pytest.mark.parametrize(
    ("data", "fits"),
    [
        (b"", True),
        (b"some words on a line\n" * 1000, True),
        (b"a" * 79_990, True),
        (b"a" * 80_000, False),
        (b"1" * 22_000, False),
        (b"a\n" * 10_000, False),
    ],
)
def test_one_read_is_enough_below_80_kb_and_20k_tokens(data: bytes, fits: bool) -> None:
    assert fits_one_read(data) is fits
