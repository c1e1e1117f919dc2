"""Remove private tags and what they enclose.

The scanner fails closed: where a text can be read in two ways, the reading that hides
more is taken. ``docs/privacy.md`` lists what counts as a tag and what does not.
"""

import functools
import re
from typing import NamedTuple

from endless_mode.privacy.lookalikes import is_disguised, junk, spell, spell_bytes
from endless_mode.privacy.probing import Search, hits, searching

NAMES = (
    "private",
    "claude-mem-context",
    "system_instruction",
    "system-instruction",
    "persisted-output",
    "system-reminder",
)

# A strip can join two halves into a new tag, so passes repeat until nothing changes.
# Honest text needs two; one that needs more than this is cut at its first tag.
_MOST_PASSES = 8

_ENTITY = r"&(?:lt|#0*+60|#[xX]0*+3[cC]);?"
_ESCAPE = r"\\u003[cC]"
_WIDE_SIGNS = "\uff1c\ufe64"
_END = r"(?:[>\uff1e\ufe65]|&gt;?|\\{1,3}u003[eE])"
_SLASH = r"(?:\\{0,3}[/\uff0f])"
# No value may hold what could begin another tag: that keeps the scan linear.
_VALUE = r"""(?:"[^"<>&\\]*+"|'[^'<>&\\]*+'|[^\s"'<>=/&\\]++)"""
# Most signs are settled by the next character: only these can lead on to a name.
_LEAD = r"(?=[\x00-\x20/\\pscPSC\x7f-\U0010ffff])"


class _Scanner(NamedTuple):
    """The patterns for one range of text; each probe finds where a head may begin, by its sign."""

    head: re.Pattern[str]
    closing: re.Pattern[str]
    self_closing: re.Pattern[str]
    probes: tuple[tuple[str, re.Pattern[str]], ...]


def _is_wide(text: str) -> bool:
    return is_disguised(text) or any(sign in text for sign in _WIDE_SIGNS)


@functools.cache
def _scanner(wide: bool) -> _Scanner:
    space = junk(wide, space=True)
    attribute = rf"(?:[\w:.@-]++{space}={space}{_VALUE}{space})"
    bare = rf"(?:[\w:.@-]++{space}(?:={space}{_VALUE}{space})?+)"
    names = "|".join(f"(?P<n{index}>{spell(name, wide)})" for index, name in enumerate(NAMES))
    rest = rf"{_LEAD}{space}(?P<slash>{_SLASH}{space})?+(?:{names})(?!{junk(wide)}[-.]*+{junk(wide)}\w)"
    signs = {"<": "<", "&": _ENTITY, "\\": _ESCAPE}
    if wide:
        signs |= {sign: sign for sign in _WIDE_SIGNS}
    return _Scanner(
        head=re.compile(rf"(?:{'|'.join(signs.values())}){rest}"),
        closing=re.compile(rf"{space}{attribute}*+{_END}"),
        self_closing=re.compile(rf"{space}{bare}*+{_SLASH}{space}{_END}"),
        probes=tuple((sign, re.compile(form + _LEAD)) for sign, form in signs.items()),
    )


def _raw_searches() -> tuple[Search, ...]:
    """For UTF-8, by their first byte: where a head begins, or anything beyond ASCII within what could be one."""
    space = junk(wide=False, space=True)
    names = "|".join(map(spell_bytes, NAMES))
    rest = rf"(?=[\x00-\x20/\\pscPSC\x7f-\xff]){space}(?:\\{{0,3}}/{space})?+(?:{names})"
    probes = {sign[0]: sign + rest for sign in ("<", _ENTITY, _ESCAPE)}
    probes["\xef"] = "(?:" + "|".join(sign.encode().decode("latin-1") for sign in _WIDE_SIGNS) + ")"
    return tuple(searching(re.compile(form.encode("latin-1")), sign.encode("latin-1")) for sign, form in probes.items())


#: Where in UTF-8 a private tag may stand.
TAG_SEARCHES = _raw_searches()


def may_hold_tag(data: bytes) -> bool:
    """Tell whether a private tag stands in the text with this UTF-8; True where only a closer look can tell."""
    return any(search(data, 0) >= 0 for search in TAG_SEARCHES)


def has_tag(text: str) -> bool:
    """Tell whether an opening or closing private tag stands in ``text``."""
    return may_hold_tag(text.encode("utf-8", "surrogatepass")) and has_tag_indeed(text)


def has_tag_indeed(text: str) -> bool:
    """:func:`has_tag` without the look at the bytes first."""
    scanner = _scanner(_is_wide(text))
    return any(hits(text, sign, probe, scanner.head) for sign, probe in scanner.probes)


def strip_tags(text: str) -> str:
    """Return ``text`` without private tags and their contents; the same object if it has none."""
    for _ in range(_MOST_PASSES):
        if not may_hold_tag(text.encode("utf-8", "surrogatepass")):
            return text
        given, text = text, _strip_once(text)
        if text is given:
            return text
    while first := _scanner(_is_wide(text)).head.search(text):
        text = text[: first.start()]
    return text


def _strip_once(text: str) -> str:
    """The text without what its tags enclose as they stand now; the same object when there are none."""
    scanner = _scanner(_is_wide(text))
    shown: list[str] = []
    depths: dict[str | None, int] = {}
    hidden = 0
    position = 0
    for head in scanner.head.finditer(text):
        # Each name keeps its own depth: a closing tag of another name must not end a private stretch.
        name = head.lastgroup if head.lastgroup != "slash" else None
        if not hidden:
            shown.append(text[position : head.start()])
        if head["slash"] is not None:
            end = scanner.closing.match(text, head.end())
            if not hidden:
                position = end.end() if end else head.end()
            elif end and depths.get(name):
                depths[name] -= 1
                hidden -= 1
                position = end.end()
        elif alone := scanner.self_closing.match(text, head.end()):
            position = position if hidden else alone.end()
        else:
            depths[name] = depths.get(name, 0) + 1
            hidden += 1
    if not hidden:
        # Cut at nothing, a text is the same object.
        shown.append(text[position:])
    return shown[0] if len(shown) == 1 else "".join(shown)
