"""Remove private tags and what they enclose.

The scanner fails closed: where a text can be read in two ways, the reading that hides
more is taken. ``docs/privacy.md`` lists what counts as a tag and what does not.
"""

import re

from endless_mode.privacy.lookalikes import JUNK, JUNK_OR_SPACE, spell
from endless_mode.privacy.probing import hits

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
_END = r"(?:[>\uff1e\ufe65]|&gt;?|\\{1,3}u003[eE])"
_SLASH = r"(?:\\{0,3}[/\uff0f])"
_SPACE = JUNK_OR_SPACE
# No value may hold what could begin another tag: that keeps the scan linear.
_VALUE = r"""(?:"[^"<>&\\]*+"|'[^'<>&\\]*+'|[^\s"'<>=/&\\]++)"""
_ATTRIBUTE = rf"(?:[\w:.@-]++{_SPACE}={_SPACE}{_VALUE}{_SPACE})"
_BARE = rf"(?:[\w:.@-]++{_SPACE}(?:={_SPACE}{_VALUE}{_SPACE})?+)"

_names = "|".join(f"(?P<n{index}>{spell(name)})" for index, name in enumerate(NAMES))
# Most signs are settled by the next character: only these can lead on to a name.
_LEAD = r"(?=[\x00-\x20/\\pscPSC\x7f-\U0010ffff])"
_REST = rf"{_LEAD}{_SPACE}(?P<slash>{_SLASH}{_SPACE})?+(?:{_names})(?!{JUNK}[-.]*+{JUNK}\w)"
_HEAD = re.compile(rf"(?:[<\uff1c\ufe64]|{_ENTITY}|{_ESCAPE}){_REST}")
_CLOSING = re.compile(rf"{_SPACE}{_ATTRIBUTE}*+{_END}")
_SELF_CLOSING = re.compile(rf"{_SPACE}{_BARE}*+{_SLASH}{_SPACE}{_END}")

_PROBES = (
    ("<", re.compile(f"<{_REST}")),
    ("&", re.compile(f"{_ENTITY}{_REST}")),
    ("\\", re.compile(f"{_ESCAPE}{_REST}")),
)
_WIDE_PROBES = tuple((sign, re.compile(f"{sign}{_REST}")) for sign in "\uff1c\ufe64")


def has_tag(text: str) -> bool:
    """Tell whether an opening or closing private tag stands in ``text``."""
    if any(hits(text, sign, pattern) for sign, pattern in _PROBES):
        return True
    return not text.isascii() and any(hits(text, sign, pattern) for sign, pattern in _WIDE_PROBES)


def strip_tags(text: str) -> str:
    """Return ``text`` without private tags and their contents; the same object if it has none."""
    for _ in range(_MOST_PASSES):
        if not has_tag(text):
            return text
        text = _strip_once(text)
    while first := _HEAD.search(text):
        text = text[: first.start()]
    return text


def _strip_once(text: str) -> str:
    shown: list[str] = []
    depths: dict[str | None, int] = {}
    hidden = 0
    position = 0
    for head in _HEAD.finditer(text):
        # Each name keeps its own depth: a closing tag of another name must not end a private stretch.
        name = head.lastgroup if head.lastgroup != "slash" else None
        if not hidden:
            shown.append(text[position : head.start()])
        if head["slash"] is not None:
            end = _CLOSING.match(text, head.end())
            if not hidden:
                position = end.end() if end else head.end()
            elif end and depths.get(name):
                depths[name] -= 1
                hidden -= 1
                position = end.end()
        elif alone := _SELF_CLOSING.match(text, head.end()):
            position = position if hidden else alone.end()
        else:
            depths[name] = depths.get(name, 0) + 1
            hidden += 1
    if not hidden:
        shown.append(text[position:])
    return "".join(shown)
