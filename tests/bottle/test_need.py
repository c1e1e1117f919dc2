"""Packing by need: what is worth its characters comes in, and nothing twice."""

from __future__ import annotations

from endless_mode.bottle.need import NAMES, Candidate, Packer, Weights, fading, named
from endless_mode.bottle.specifics import parts_of


def single(token: str) -> Candidate:
    return Candidate(NAMES, named(token), token, 0, tokens=parts_of(token))


def line(text: str, bonus: float = 0.0) -> Candidate:
    return Candidate("Commands", f"run:{text}", text, 0, bonus=bonus)


def packer(weights: dict[str, float], offered: list[Candidate], covered: tuple[str, ...] = ()) -> Packer:
    known = Weights()
    for token, weight in weights.items():
        known.add([token], weight)
    made = Packer(known, covered, lambda candidate: candidate)
    made.offer(offered)
    return made


def texts(taken: list[Candidate]) -> list[str]:
    return [candidate.text for candidate in taken]


def test_a_weight_fades_with_every_tool_use() -> None:
    left = [fading(age) for age in range(0, 800, 50)]
    assert left[0] == 1.0
    assert left == sorted(left, reverse=True)


def test_the_best_place_of_a_token_counts() -> None:
    weights = Weights()
    weights.add(["run_all"], 0.1)
    weights.add(["run_all"], 0.3)
    weights.add(["run_all"], 0.2)
    assert weights.of == {"run_all": 0.3}


def test_what_is_worth_most_per_character_comes_first() -> None:
    made = packer({"ab_cd": 0.1, "a_very_long_name": 0.1}, [single("a_very_long_name"), single("ab_cd")])
    assert texts(made.take(100)) == ["ab_cd", "a_very_long_name"]


def test_a_name_whose_path_stands_already_is_not_taken() -> None:
    made = packer(
        {"b.py": 0.2, "other_name": 0.1}, [single("b.py"), single("other_name")], covered=parts_of("src/a/b.py")
    )
    assert texts(made.take(100)) == ["other_name"]


def test_a_path_is_worth_what_its_tail_is() -> None:
    made = packer({"src/a/b.py": 0.01, "b.py": 0.2, "src/a/c.py": 0.02}, [single("src/a/c.py"), single("src/a/b.py")])
    assert texts(made.take(12)) == ["src/a/b.py"]


def test_a_single_name_goes_out_when_something_longer_has_it_and_its_room_is_used() -> None:
    weights = {"b.py": 0.2, "src/a/b.py": 0.2, "next_name": 0.01}
    made = packer(weights, [single("b.py"), single("src/a/b.py"), single("next_name")])
    room = sum(len(text) + 2 for text in ("src/a/b.py", "next_name")) + 4
    assert texts(made.take(room)) == ["src/a/b.py", "next_name"]


def test_a_line_without_a_name_comes_in_for_what_it_tells() -> None:
    made = packer({}, [line("make check", bonus=0.4), line("ls")])
    assert texts(made.take(100)) == ["make check"]


def test_a_later_budget_goes_on_where_the_one_before_stopped() -> None:
    tokens = [f"name_{n}" for n in range(10)]
    made = packer({token: 0.1 - n / 1_000 for n, token in enumerate(tokens)}, [single(token) for token in tokens])
    first, second = texts(made.take(4 * 8)), texts(made.take(100))
    assert first == tokens[:4]
    assert second == tokens[4:]
