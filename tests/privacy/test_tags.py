import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endless_mode.privacy import clean, is_wholly_private, strip_tags
from endless_mode.privacy.tags import NAMES

MARK = "Zq7MARKq7Z"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "form",
    [
        "<{n}>{m}</{n}>",
        "<{N}>{m}</{n}>",
        "<{n}>{m}</{N}>",
        "< {n} >{m}</ {n}\n>",
        "<\n{n}\t>{m}<\n/\t{n} >",
        '<{n} class="a">{m}</{n}>',
        '<{n}\nclass="a"\n>{m}</{n}>',
        '<{n} a="x>y">{m}</{n}>',
        '<{n} a="/>">{m}</{n}>',
        "<{n} a='/>' b>{m}</{n}>",
        "<{n} / x>{m}</{n}>",
        "<{n}>a<{n}>b</{n}>{m}</{n}>",
        "<{n}><{n}/>{m}</{n}>",
        "<{n}></private-key>{m}</{n}>",
        '<{n}>{m}</{n} id="1">',
        "<{n}>{m}<\\/{n}>",
        "<!-- <{n}>{m}</{n}> -->",
        "&lt;{n}&gt;{m}&lt;/{n}&gt;",
        "&#60;{n}&#62;{m}</{n}>",
        "\\u003c{n}\\u003e{m}\\u003c/{n}\\u003e",
        "<\x00{n}>{m}</{n}>",
        "<\u200b{n}\u200b>{m}</\u200b{n}>",
        "\uff1c{n}\uff1e{m}\uff1c\uff0f{n}\uff1e",
        "<\x1b[31m{n}\x1b[0m>{m}</\x1b[31m{n}\x1b[m>",
    ],
)
def test_a_tag_hides_its_content_and_nothing_after_it(name: str, form: str) -> None:
    text = "before " + form.format(n=name, N=name.upper(), m=MARK) + " after"
    result = clean(text)
    assert MARK not in result
    assert result.startswith("before ")
    assert result.endswith(" after")


@pytest.mark.parametrize(
    "text",
    [
        f"<private>{MARK}",
        f"<private {MARK}",
        f"<private\n{MARK}",
        f'<private a="{MARK}',
        f"<private a='>{MARK}",
        f"<private>{MARK}</privat>",
        f"<private>{MARK}</private",
        f"<private>a</private is not closed -> {MARK}</private>",
        f"<private>a</system-reminder>{MARK}</private>",
        f"<private><system-reminder></private>{MARK}</system-reminder>",
        f"<system_instruction>{MARK}</system-instruction>",
        f"<private><!-- </private -->{MARK}",
        f"<private<private>{MARK}</private>",
        f"<<private>>{MARK}",
        f"<private:x>{MARK}</private:x>",
        f"<pri<private>x</private>vate>{MARK}</private>",
        f"<pri<private/>vate>{MARK}</private>",
        f"<pri</private>vate>{MARK}",
        f"<pri\x00vate>{MARK}</private>",
        f"<p\u200br\u200bi\u200bv\u200ba\u200bt\u200be>{MARK}",
        f"<pri\ud800vate>{MARK}</private>",
        f"<pri\u00advate>{MARK}</private>",
        f"<private\ufeff>{MARK}</private>",
        f"<ｐｒｉｖａｔｅ>{MARK}</private>",
        f"<𝐩𝐫𝐢𝐯𝐚𝐭𝐞>{MARK}</private>",
        f"<prⅳate>{MARK}</private>",
        f"<ſystem-reminder>{MARK}</system-reminder>",
        f"<PRİVATE>{MARK}</PRİVATE>",
        f"<prıvate>{MARK}</private>",
        f"<claude\u2011mem\u2011context>{MARK}</claude-mem-context>",
        f"<system＿instruction>{MARK}</system_instruction>",
    ],
)
def test_a_tag_in_disguise_or_never_closed_hides_what_follows(text: str) -> None:
    assert MARK not in clean(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a<private/>b", "ab"),
        ("a< private / >b", "ab"),
        ('a<private x="1" y/>b', "ab"),
        ("a</private>b", "ab"),
        ("a</ private\n>b", "ab"),
        ("a</private", "a"),
        ("a<private", "a"),
        ("a <private>x</private> b", "a  b"),
        ("<private/>k</private>", "k"),
        ("<private>a<system-reminder>b</system-reminder>c</private>d", "d"),
        ("<private>a<private>b</private>c</private>d<private>e</private>f", "df"),
    ],
)
def test_what_is_left_of_a_text_with_tags(text: str, left: str) -> None:
    assert clean(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "<privately>x</privately>",
        "<private-key>x</private-key>",
        "<private_data>x",
        "<private1>x",
        "<private.key>x",
        "<xprivate>x</xprivate>",
        "<x:private>x",
        "<!private>",
        "<$private>",
        "private > public",
        "if (a <private_count && b) {}",
        "x <privé>",
        "<system>x</system>",
        "<system reminder>x",
        "<systemreminder>x",
        "<pri vate>x",
        "&amp;lt;private&amp;gt;",
        "&ltprivately",
        "a < b > c <div class='private'>",
        "ſ İ K ｐ 𝐩 <é> < >",
        "",
        " ",
    ],
)
def test_text_without_a_tag_is_returned_as_the_same_object(text: str) -> None:
    assert clean(text) is text


@pytest.mark.parametrize(
    ("text", "wholly"),
    [
        ("<private>x</private>", True),
        (" \n<private>x</private>\t", True),
        ("<private>x", True),
        ("<PRIVATE>x</PRIVATE><system-reminder>y</system-reminder>", True),
        ("<pri\ud800vate>x", True),
        ("<private>x</private> y", False),
        ("", False),
        ("  ", False),
        ("<privately>", False),
        ("x", False),
    ],
)
def test_wholly_private_means_a_tag_and_nothing_else(text: str, wholly: bool) -> None:
    assert is_wholly_private(text) is wholly


SPACES = st.sampled_from(["", " ", "\n", "\t ", "\x00", "\u200b"])
NAME = st.sampled_from(NAMES)
PROSE = st.text(alphabet=string.ascii_letters + string.digits + " \n.,!'\"=/>-", max_size=12)


@st.composite
def cased(draw: st.DrawFn, name: str) -> str:
    return "".join(char.upper() if draw(st.booleans()) else char for char in name)


@st.composite
def opening(draw: st.DrawFn, name: str) -> str:
    attribute = draw(st.sampled_from(["", ' a="1"', " a='>'", ' a="/>"', " a", " a=b", "\n\n"]))
    return f"<{draw(SPACES)}{draw(cased(name))}{attribute}{draw(SPACES)}>"


@st.composite
def hiding(draw: st.DrawFn, depth: int = 0) -> str:
    """A closed private stretch: nested, mixed, with markers inside."""
    name = draw(NAME)
    inner = draw(PROSE) + MARK
    for _ in range(draw(st.integers(0, 2)) if depth < 3 else 0):
        inner += draw(hiding(depth + 1)) + MARK + draw(PROSE)
    return f"{draw(opening(name))}{inner}<{draw(SPACES)}/{draw(SPACES)}{draw(cased(name))}{draw(SPACES)}>"


@given(st.lists(st.tuples(PROSE, hiding()), max_size=4), PROSE)
def test_closed_stretches_vanish_and_the_rest_stays(parts: list[tuple[str, str]], tail: str) -> None:
    text = "".join(prose + stretch for prose, stretch in parts) + tail
    assert strip_tags(text) == "".join(prose for prose, _ in parts) + tail


@given(PROSE, NAME.flatmap(opening), st.lists(st.one_of(PROSE, hiding(), st.just(MARK)), max_size=5))
def test_an_unclosed_tag_hides_all_that_follows(before: str, tag: str, rest: list[str]) -> None:
    assert strip_tags(before + tag + "".join(rest)) == before


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *("<", ">", "/", "</", "/>", "<pri", "vate", "private", "<private", "<private>", "</private>"),
            *("<private/>", "system-", "reminder", "<system-reminder>", "</system-reminder>", "&lt;"),
            *("\\u003c", "\uff1c", "\ud83d", "\ude00", " ", "-", ".", "x", '"', "a=", "\x00", "\u200b", "\n"),
            *("ghp_", "A" * 36, "sk-ant-", "token=", "eyJ", "a1B2c3D4e5F6", "://u:", "@", "AKIA", "9" * 8),
            *("-----BEGIN PRIVATE KEY-----", "[redacted:x]", ":"),
        ]
    ),
    max_size=24,
).map("".join)


@given(st.one_of(FRAGMENTS, st.text(), st.text(alphabet=st.characters(categories=["Cs", "Cc", "Cf", "Ll"]))))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    assert strip_tags(strip_tags(text)) == strip_tags(text)
    once.encode()


@given(st.text(alphabet=string.ascii_letters + " \n.,é日", max_size=200))
def test_ordinary_text_is_the_same_object(text: str) -> None:
    assert clean(text) is text


def test_ten_thousand_nested_tags_leave_nothing() -> None:
    assert clean("<private>" * 10_000 + MARK + "</private>" * 10_000 + "after") == "after"


def test_endless_joining_leaves_no_tag_and_no_payload() -> None:
    text = "<pri" * 500 + "<private/>" + "vate/>" * 499 + f"vate>{MARK}"
    result = clean(text)
    assert MARK not in result
    assert clean(result) == result


def test_lone_surrogates_become_the_replacement_character_and_pairs_their_character() -> None:
    assert clean("a\ud800b\udc00") == "a\ufffdb\ufffd"
    assert clean("\ud83d\ude00") == "😀"
