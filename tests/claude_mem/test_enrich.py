"""claude-mem's observations beside our own lines."""

from __future__ import annotations

from endless_mode.bottle.entries import Document, Entry, GeneratedSummary, Happened, Header, Line, Mark, Speech
from endless_mode.claude_mem import MemObservation, MemPrompt, MemSession, MemSummary
from endless_mode.claude_mem.enrich import LEAST, enrich

MINUTE = 60_000


def user(text: str, at: int) -> Speech:
    return Speech("user", "prompt", text, at * MINUTE)


def said(text: str, at: int) -> Speech:
    return Speech("assistant", "text", text, at * MINUTE)


def did(*texts: str) -> Happened:
    return Happened([Line([str(n)], text) for n, text in enumerate(texts, 1)])


def noted(id: int, title: str, number: int | None, at: int | None) -> MemObservation:
    return MemObservation(id, title=title, number=number, at=None if at is None else at * MINUTE)


def bottle(*entries: Entry) -> Document:
    return Document(Header("s", "p", "full (transcript + observations)"), list(entries))


def told(*items: MemObservation | MemSummary, prompts: tuple[MemPrompt, ...] = ()) -> MemSession:
    return MemSession(
        "s",
        "claude",
        "p",
        prompts=prompts,
        observations=tuple(i for i in items if isinstance(i, MemObservation)),
        summaries=tuple(i for i in items if isinstance(i, MemSummary)),
    )


TALK = (
    user("one", 10),
    did("Read a.py"),
    said("so", 12),
    did("pytest -q — 3 failed, 41 passed"),
    user("two", 20),
    did("Edit b.py — +3 −1 in Clock.tick"),
    said("done", 25),
)
PROMPTS = (MemPrompt(1, "one", 10 * MINUTE), MemPrompt(2, "two", 20 * MINUTE))


def places(made: Document) -> list[list[str]]:
    """Per block of activity the ids of claude-mem's in it."""
    blocks = [e.lines for e in made.entries if isinstance(e, Happened)]
    return [[id for line in lines for id in line.ids if id.startswith("cm:")] for lines in blocks]


def test_observations_stand_at_their_time() -> None:
    made = enrich(
        bottle(*TALK),
        told(noted(1, "clock drifts", 1, 11), noted(2, "tests missing", 1, 13), noted(3, "tick fixed", 2, 22)),
    )
    assert places(made) == [["cm:1"], ["cm:2"], ["cm:3"]]
    assert [type(e) for e in made.entries] == [type(e) for e in TALK], "they join the activity that is there"


def test_a_late_observation_stands_no_later_than_its_turn() -> None:
    made = enrich(bottle(*TALK), told(noted(1, "clock drifts", 1, 24), prompts=PROMPTS))
    assert places(made) == [[], ["cm:1"], []]


def test_numbers_are_those_of_the_words_not_of_a_count() -> None:
    counted_otherwise = (MemPrompt(4, "one", 10 * MINUTE), MemPrompt(7, "two", 20 * MINUTE))
    made = enrich(
        bottle(*TALK), told(noted(1, "clock drifts", 4, 24), noted(2, "tick fixed", 7, None), prompts=counted_otherwise)
    )
    assert places(made) == [[], ["cm:1"], [], ["cm:2"]]


def test_what_our_line_says_already_is_not_said_twice() -> None:
    made = enrich(
        bottle(*TALK),
        told(noted(1, "Edited the b.py", 2, 22), noted(2, "Edit of the b.py", 2, 22), noted(3, "Read a.py", 2, 22)),
    )
    assert places(made) == [[], [], ["cm:1", "cm:3"]], "all words in one line of the same turn is the same"


def test_the_same_words_twice_in_one_place_stand_once() -> None:
    made = enrich(
        bottle(*TALK),
        told(noted(1, "clock drifts", 1, 11), noted(2, "clock drifts", 1, 11), noted(3, "clock drifts", 1, 13)),
    )
    assert places(made) == [["cm:1"], ["cm:3"], []]


def test_summaries_are_generated_blocks_at_the_end_of_their_turn() -> None:
    made = enrich(bottle(*TALK), told(MemSummary(1, completed="all of one", number=1, at=24 * MINUTE), prompts=PROMPTS))
    assert made.entries[4] == GeneratedSummary("claude-mem", "Completed: all of one")
    assert [e for e in made.entries if isinstance(e, Speech)] == [e for e in TALK if isinstance(e, Speech)]


def test_nothing_of_a_private_turn_comes_back() -> None:
    talk = (
        user("one", 10),
        did("x"),
        Mark("private", 15 * MINUTE),
        user("two", 20),
        did("y"),
        user("three", 30),
        did("z"),
    )
    prompts = (*PROMPTS, MemPrompt(3, "three", 30 * MINUTE))
    items = (
        noted(1, "before", 1, 11),
        noted(2, "secret in time", 1, 16),
        noted(3, "secret told late", 1, 21),
        noted(4, "secret under the next number", 2, 22),
        noted(5, "secret without a time", 1, None),
        noted(6, "after", 3, 31),
        MemSummary(1, completed="secret", number=1, at=17 * MINUTE),
        MemSummary(2, completed="secret", number=2, at=29 * MINUTE),
    )
    made = enrich(bottle(*talk), told(*items, prompts=prompts))
    assert [ids for ids in places(made) if ids] == [["cm:1"], ["cm:6"]]
    assert not any(isinstance(e, GeneratedSummary) for e in made.entries)


def test_the_newest_go_in_while_there_is_room() -> None:
    many = [noted(n, f"{n} " + "word " * 40, 1, 11) for n in range(1, 201)]
    made = enrich(bottle(*TALK), told(*many, MemSummary(1, completed="old", number=1, at=1)))
    shown = [id for ids in places(made) for id in ids]
    assert shown[-1] == "cm:200" and shown == [f"cm:{n}" for n in range(201 - len(shown), 201)]
    lines = [line for e in made.entries if isinstance(e, Happened) for line in e.lines]
    added = sum(len(line.text) for line in lines if line.ids[0].startswith("cm:"))
    assert 0.8 * LEAST < added <= LEAST
    assert f"{201 - len(shown)} older observations and summaries" in made.header.notes[-1]


def test_without_anything_to_add_the_document_is_the_same() -> None:
    document = bottle(*TALK)
    assert enrich(document, told()) is document
    assert enrich(document, told(noted(1, "Read a.py", 1, 11))) is document


def test_an_empty_bottle_and_backward_clocks_are_no_trouble() -> None:
    assert places(enrich(bottle(), told(noted(1, "alone", 1, 5)))) == [["cm:1"]]
    backward = (user("one", 20), did("x"), user("two", 10), did("y"))
    assert [ids for ids in places(enrich(bottle(*backward), told(noted(1, "late", None, 25)))) if ids] == [["cm:1"]]
