"""The text editor changes one place and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endless_mode.install import jsontext
from endless_mode.install.jsontext import Node, Path

from .texts import KEYS, PATIENT, VALUES, layouts


def containers(text: str) -> list[tuple[Path, Node]]:
    found: list[tuple[Path, Node]] = []

    def walk(at: Node, path: Path) -> None:
        if at.items is None:
            return
        found.append((path, at))
        for n, item in enumerate(at.items):
            walk(item.value, (*path, n if item.name is None else item.name))

    walk(jsontext.scan(text), ())
    return found


@given(text=layouts(VALUES))
@PATIENT
def test_a_scanned_value_stands_where_the_scan_says(text: str) -> None:
    value = json.loads(text)
    for path, at in containers(text):
        here = value
        for name in path:
            here = here[name]
        assert json.loads(text[at.start : at.end]) == here


@given(data=st.data(), text=layouts(VALUES.filter(lambda value: isinstance(value, dict | list))))
@PATIENT
def test_what_is_added_is_there_and_removing_it_gives_the_text_from_before(data: st.DataObject, text: str) -> None:
    path, at = data.draw(st.sampled_from(containers(text)))
    item = data.draw(VALUES)
    is_object = text[at.start] == "{"
    taken = {i.name for i in at.items or []}
    name = data.draw(KEYS.filter(lambda key: key not in taken)) if is_object else None
    inside = jsontext.interior(text, path)
    after = jsontext.add(text, path, item, name)

    expected, here = json.loads(text), None
    here = expected
    for step in path:
        here = here[step]
    if is_object:
        here[name] = item
    else:
        here.append(item)
    assert json.loads(after) == expected
    last: str | int = name if name is not None else len(here) - 1
    assert jsontext.remove(after, (*path, last), inside or "") == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "b": [\n    2\n  ]\n}\n'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"b": [\n\t\t2\n\t]\n}'),
        ('{\r\n    "a": 1\r\n}', '{\r\n    "a": 1,\r\n    "b": [\r\n        2\r\n    ]\r\n}'),
        ('{"a": 1, "c": 3}', '{"a": 1, "c": 3, "b": [2]}'),
        ("{}\n", '{\n  "b": [\n    2\n  ]\n}\n'),
    ],
)
def test_an_addition_looks_like_its_surroundings(before: str, after: str) -> None:
    assert jsontext.add(before, (), [2], "b") == after


def test_of_two_members_with_one_name_the_last_counts_as_it_does_for_every_reader() -> None:
    text = '{"a": [1], "a": [2]}'
    assert json.loads(jsontext.add(text, ("a",), 3)) == {"a": [2, 3]}


@pytest.mark.parametrize("text", ["{} // why", "{'a': 1}", "[1,]", "NaN", "", '{"a": 1'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        jsontext.parse(text)


def test_removing_the_first_of_several_keeps_the_rest_in_place() -> None:
    text = '{\n  "a": 1,\n  "b": 2\n}'
    assert jsontext.remove(text, ("a",)) == '{\n  "b": 2\n}'
    value: Any = jsontext.parse(jsontext.remove("[ 1, 2, 3 ]", (1,)))
    assert value == [1, 3]
