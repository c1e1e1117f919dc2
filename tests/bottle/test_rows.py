"""Single tokens in rows."""

from __future__ import annotations

from endless_mode.bottle.rows import ROW, rows


def test_tokens_stand_with_their_kind_in_the_order_given() -> None:
    assert rows(["4e08ee78", "src/b.py", "runAll", "src/a.py", "ENT-250", "v1.2.3", "b.py", "8080"]) == [
        "Paths: src/b.py, src/a.py",
        "Names: runAll, b.py",
        "Ids: 4e08ee78, ENT-250, v1.2.3, 8080",
    ]


def test_a_text_may_hold_several_tokens_of_several_kinds() -> None:
    assert rows(["one_name, src/a.py", "two_name"]) == ["Paths: src/a.py", "Names: one_name, two_name"]


def test_a_row_is_broken_so_that_one_can_be_dropped_without_the_others() -> None:
    told = rows(f"name_number_{n}" for n in range(100))
    assert len(told) > 1
    assert all(row.startswith("Names: ") and len(row) <= ROW + 2 for row in told)
    assert [token for row in told for token in row.removeprefix("Names: ").split(", ")] == [
        f"name_number_{n}" for n in range(100)
    ]
