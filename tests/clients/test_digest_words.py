"""Words and names: what is found in texts of odd shapes, and that what is remembered of words is bounded."""

from __future__ import annotations

import pytest

from endless_mode.clients.claude_code.digest import failures, search, tokens


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("call(foo_bar, fooBar)", ["foo_bar", "fooBar"]),
        ("os.path.join(a.b)", ["os.path.join"]),
        ("3fooBar .foo_bar. one..two_three", ["fooBar", "foo_bar", "two_three"]),
        ("first.second.3third_part", ["first.second", "third_part"]),
        ("café_bar éfoo_bar “quoted_name”…otherName", ["café_bar", "foo_bar", "quoted_name", "otherName"]),
        ("Plain words, CAPITALS and 1234 numbers. x_y", []),
        ("12→    lineNumber_one\n13→\tlineNumber_two", ["lineNumber_one", "lineNumber_two"]),
        ("a_lone_\ud800surrogate_x", ["a_lone_", "surrogate_x"]),
        ("", []),
    ],
)
def test_names_of_any_shape_are_found_whole(source: str, names: list[str]) -> None:
    assert tokens.identifiers(source, [], 100) == names


def test_known_names_are_left_out_and_the_limit_holds() -> None:
    source = "\n".join(f"name_{n} = other_{n}()" for n in range(1_000))
    found = tokens.identifiers(source, ["name_0", "not_in_it"], 5)
    assert found == ["other_0", "name_1", "other_1", "name_2", "other_2"]


def test_verdicts_are_asked_for_once_and_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_VERDICTS", 3)
    asked: list[str] = []

    def judge(word: str) -> bool:
        asked.append(word)
        return word.isupper()

    verdicts = tokens.Verdicts(judge)
    assert [verdicts[word] for word in ("a", "B", "a", "c", "d", "a")] == [False, True, False, False, False, False]
    assert asked == ["a", "B", "c", "d", "a"]
    assert len(verdicts) == 2
    assert verdicts["long" * 100] is False
    assert len(verdicts) == 2


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("src/a.py:12:    found: here", ("src/a.py", "12")),
        (r"C:\src\a.py:3:x", (r"C:\src\a.py", "3")),
        ("a:7:one letter", ("a", "7")),
        ("12:alone", ("given", "12")),
    ],
)
def test_places_of_matches(line: str, place: tuple[str, str]) -> None:
    assert search.found_lines([line], "given") == [place]


@pytest.mark.parametrize("line", ["12-context", " a.py:1:indented", "a.py:x:no number", "a.py", ":1:x", ""])
def test_other_lines_have_no_place(line: str) -> None:
    assert search.found_lines([line], "given") == []


def test_lines_of_a_path_are_gathered_and_more_paths_than_wanted_are_left_out() -> None:
    places = [("a.py", "3"), ("b.py", ""), ("c.py", "1"), ("a.py", "9"), ("a.py", "3"), ("b.py:4", "")]
    assert tokens.gathered(places, 2) == ["a.py:3,9", "b.py:4"]


@pytest.mark.parametrize("line", ["Connection refused", "DENIED", "ſomething is required", "kelvin K not found"])
def test_an_error_is_heard_whatever_its_case_and_letters(line: str) -> None:
    assert failures.scan(line, [line], bad=False) == ([], line, "")
