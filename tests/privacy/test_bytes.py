"""The look at a text's UTF-8 may only err towards a closer look."""

from hypothesis import given, settings
from hypothesis import strategies as st

from endless_mode.privacy import clean, tags
from endless_mode.privacy.lookalikes import is_disguised
from endless_mode.privacy.screening import suspects
from endless_mode.privacy.secrets import may_hold_secret, redact_thoroughly
from endless_mode.privacy.tags import NAMES, has_tag_indeed, may_hold_tag

SIGNS = ["<", "&lt;", "&lt", "&#60;", "&#0060", "&#x3C;", "\\u003c", "\\\\u003C", "\uff1c", "\ufe64"]
JUNK = ["", "", "", " ", "\n", "\u200b", "\u00ad", "\ufe0f", "\x00", "\x1b[31m", "\x1b", "\x7f", "\u00a0", "\u0301"]
FORMS = {
    "p": "\uff50\u24df",
    "s": "\u017f\uff33",
    "i": "\u0131\u0130\u2170",
    "c": "\uff43",
    "t": "\uff34",
    "-": "\u2010\u2212",
    "_": "\uff3f",
}


@st.composite
def heads(draw: st.DrawFn) -> str:
    """A tag's head in disguise, now and then with a letter too few."""
    sign, slash = draw(st.sampled_from(SIGNS)), draw(st.sampled_from(["", "/", "\\/", "\uff0f"]))
    junk = draw(st.sampled_from(JUNK))
    written = []
    for letter in draw(st.sampled_from(NAMES)):
        others = [letter, letter, letter.upper(), *FORMS.get(letter, "")]
        written += [draw(st.sampled_from(others)), draw(st.sampled_from(["", junk]))]
    name = "".join(written).replace("st", draw(st.sampled_from(["st", "\ufb06", "\ufb05"])))
    if draw(st.integers(0, 4)) == 0:
        name = name[:-1]
    between = draw(st.sampled_from(["", junk]))
    return f"{sign}{between}{slash}{between}{name}{draw(st.sampled_from(['>', ' ', '-x', '&gt;', '']))}"


ALNUM = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
BEGINNINGS = [
    *(
        "ghp_",
        "github_pat_",
        "hf_",
        "npm_",
        "sk_live_",
        "whsec_",
        "gsk_",
        "dop_v1_",
        "shpat_",
        "sk-",
        "sk-ant-",
        "sk-proj-",
    ),
    *(
        "glpat-",
        "xoxb-1",
        "xapp-1",
        "pypi-",
        "123456789:",
        "AKIA",
        "ASIA",
        "AIza",
        "eyJ",
        "SG.",
        "SK",
        "ya29.",
        "password=",
        "API_KEY: ",
    ),
    *(
        "client-secret => '",
        'geheim\u00e9 token: "',
        "Authorization: Bearer ",
        "auth=Basic ",
        "postgres://u:",
        "https://b\u00e9b\u00e9:",
    ),
    *("https://hooks.slack.com/services/", "https://discord.com/api/webhooks/", "-----BEGIN PRIVATE KEY-----\n"),
]


@st.composite
def secrets(draw: st.DrawFn) -> str:
    """Something shaped like a secret, or nearly so."""
    drawn = draw(st.text(draw(st.sampled_from([ALNUM, ALNUM + "_-.", "0123456789abcdef"])), min_size=8, max_size=70))
    ends = ["", "'", '"', "@host/", "\u2028", f".{drawn[:30]}.{drawn}", "\n-----END PRIVATE KEY-----"]
    return draw(st.sampled_from(BEGINNINGS)) + drawn + draw(st.sampled_from(ends))


AROUND = st.text(st.sampled_from("abc \n\"'=:-_/\\\u2192\u00e9\U0001f600@"), max_size=70)


@settings(max_examples=400)
@given(AROUND, heads(), AROUND)
def test_no_disguise_of_a_tag_is_missed_in_bytes(before: str, head: str, after: str) -> None:
    text = before + head + after
    assert may_hold_tag(text.encode()) or not has_tag_indeed(text)


@settings(max_examples=400)
@given(AROUND, heads(), AROUND, st.sampled_from(["", "\u2192", "\u00e9\u2014", "\u65e5\u672c"]))
def test_a_text_without_disguises_reads_the_same_by_the_pattern_that_knows_none(
    before: str, head: str, after: str, beyond: str
) -> None:
    text = before + head + beyond + after
    if not is_disguised(text) and "\ufe64" not in text:
        plain, wide = ([m.span() for m in tags._scanner(w).head.finditer(text)] for w in (False, True))
        assert plain == wide


@settings(max_examples=400)
@given(AROUND, secrets(), AROUND)
def test_no_secret_is_missed_in_bytes(before: str, secret: str, after: str) -> None:
    text = before + secret + after
    assert may_hold_secret(text.encode()) or redact_thoroughly(text) is text


PIECES = st.sampled_from(
    ["<", "&lt;", "private>", "token", "api_key =", "123456", ":", "sk", "-----BEGIN ", "ghp_", "://u:"]
)


@settings(max_examples=400)
@given(st.lists(st.one_of(AROUND, heads(), secrets(), PIECES), max_size=8))
def test_a_look_at_many_texts_at_once_misses_none_that_a_look_at_each_finds(texts: list[str]) -> None:
    parts = [text.encode() for text in texts]
    found = suspects(parts)
    assert found >= {n for n, part in enumerate(parts) if may_hold_tag(part) or may_hold_secret(part)}
    assert all(clean(text) is text for n, text in enumerate(texts) if n not in found)


def test_plain_source_text_needs_no_closer_look() -> None:
    text = "    12\u2192<p class='x'>caf\u00e9</p> key = value_1: sk-learn // private \u2014 a@b \\u0041 &lt;b&gt;"
    data = text.encode()
    assert not may_hold_tag(data)
    assert not may_hold_secret(data)
