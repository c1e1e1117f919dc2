"""Lines are found by their bytes as if each had been looked at."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endless_mode import mentions as module
from endless_mode.mentions import mentions


@given(
    st.lists(st.sampled_from([b"a", b"ab", b"b", b"\n", b"abab", b"\n\n", b"xx"]), max_size=40).map(b"".join),
    st.sampled_from([b"a", b"ab", b"ba", b"bab", b"xxa"]),
    st.integers(1, 9),
)
def test_the_lines_found_are_those_that_hold_it(data: bytes, name: bytes, chunk: int) -> None:
    wanted, at = [], 7
    for line in io.BytesIO(data):
        if name in line:
            wanted.append((at, line))
        at += len(line)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", chunk)
        assert list(mentions(io.BytesIO(data), name, 7)) == wanted
