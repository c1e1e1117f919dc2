"""What counts as a specific token, and what a token mentions."""

from __future__ import annotations

import pytest

from endless_mode.bottle.specifics import mentions, parts_of, specifics


@pytest.mark.parametrize(
    "token",
    [
        "AutoCommitStrategy",
        "sessionID",
        "tool_use_id",
        "time.Time",
        "src/a/b.py",
        "README.md",
        "~/.claude/plans",
        "4e08ee78",
        "8080",
        "v1.24.0",
        "2026-01-31",
        "http://localhost:3000/vault",
    ],
)
def test_what_must_have_been_seen_is_specific(token: str) -> None:
    assert specifics(f"then {token} again") == (token,)


@pytest.mark.parametrize(
    "text",
    ["Plain words", "well-known", "GitHub", "and/or", "109ms", "20.990Z", "also...we", ".path", "12", "200", "JSON."],
)
def test_what_anybody_can_guess_is_not(text: str) -> None:
    assert specifics(text) == ()


def test_what_clings_to_a_token_is_no_part_of_it() -> None:
    assert specifics("./cmd/x.go /HandlerTwo ~120_000") == ("cmd/x.go", "HandlerTwo", "120_000")


def test_escapes_are_read_as_what_they_stand_for() -> None:
    assert specifics(r"first\nBodyText logging\.Init") == ("BodyText", "logging.Init")


def test_a_path_mentions_its_tails_and_the_directories_it_begins_with() -> None:
    assert mentions("see src/a/b.py") == ("src/a/b.py", "a/b.py", "b.py", "src", "src/a")


def test_a_qualified_name_mentions_its_ends() -> None:
    assert set(parts_of("strategy.turn.EndHandler")) == {
        "strategy.turn.EndHandler",
        "turn.EndHandler",
        "EndHandler",
        "strategy",
        "strategy.turn",
    }


def test_a_url_mentions_itself_alone() -> None:
    assert parts_of("http://localhost:3000/vault") == ("http://localhost:3000/vault",)


def test_a_token_of_very_many_parts_is_taken_apart_at_its_ends_alone() -> None:
    many = "/".join(f"d{n}" for n in range(60))
    parts = parts_of(many)
    assert len(parts) == 33 and "d59" in parts and "d58/d59" in parts and "d0" in parts
    assert parts_of("a/" * 4_000 + "b.py") == ("a/" * 4_000 + "b.py",)
