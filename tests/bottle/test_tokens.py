from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endless_mode.tokens import estimate_tokens, weigh


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a" * 100, 20),
        ("1" * 100, 86),
        ("a b" * 100, ceil(200 * 0.20 + 100 * 0.50)),
        ("{" * 100, 93),
        ("語" * 100, 71),
        ("かな" * 50, 71),
        ("한" * 100, 125),
        ("Ж" * 100, 64),
        ("é" * 100, 100),
        ("😀" * 100, 280),
        ("→" * 100, 280),
        ("\ud800", 2),
    ],
)
def test_each_class_of_characters_has_its_weight(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_run_of_spaces_costs_little_more_than_one() -> None:
    assert weigh(b"a b") < weigh(b"a    b") < weigh(b"a b c")


@given(st.text(), st.text())
def test_parts_weigh_no_less_than_the_whole(a: str, b: str) -> None:
    assert weigh(a.encode()) + weigh(b.encode()) >= weigh((a + b).encode()) - 1e-6
