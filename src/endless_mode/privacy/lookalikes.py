"""Spell a tag name so that its disguises match too.

Letters match in any case and in every form that Unicode's compatibility mapping and case
folding turn into them (full-width, mathematical, circled, long s, dotted and dotless i).
Between letters, characters that show nothing may stand.
"""

import functools
import re
import unicodedata

# Blocks that hold compatibility forms of Latin letters, "_" and "-".
_BLOCKS = (
    (0x00AA, 0x00BB), (0x0130, 0x0132), (0x017F, 0x0180), (0x02B0, 0x02E5), (0x1D2C, 0x1D6B),
    (0x2010, 0x2016), (0x203F, 0x2041), (0x2070, 0x20A0), (0x2100, 0x2190), (0x2212, 0x2213),
    (0x249C, 0x24EA), (0x2C7C, 0x2C7E), (0x33C0, 0x33E0), (0xA7F2, 0xA7F5), (0xFB00, 0xFB07),
    (0xFE31, 0xFE64), (0xFF0D, 0xFF5B), (0x1D400, 0x1D6A6), (0x1F110, 0x1F18A),
)  # fmt: skip
_SPECIAL = {"\u0130": "i", "\u0131": "i"}
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"

_CONTROLS = r"\x00-\x08\x0e-\x1f\x7f"
_INVISIBLE = (
    r"\x80-\x84\x86-\x9f\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffd"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_COLOUR = r"\x1b\[[0-9;:?]*+[A-Za-z]"  # a terminal's colour code, as in the output of grep --color


def junk(wide: bool, space: bool = False) -> str:
    """Return a pattern for any run of characters that show nothing; ``space`` adds white space."""
    signs = _CONTROLS + (_INVISIBLE if wide else "") + (r"\s" if space else "")
    return rf"(?:{_COLOUR}|[{signs}])*+"


@functools.cache
def _forms() -> dict[str, str]:
    """Map each one- or two-character ASCII string to the single characters that fold to it."""
    forms: dict[str, str] = {}
    for start, stop in _BLOCKS:
        for char in map(chr, range(start, stop)):
            plain = _SPECIAL.get(char) or unicodedata.normalize("NFKC", char).casefold()
            plain = "-" if char in _DASHES else plain.strip("()")
            if plain.isascii() and 1 <= len(plain) <= 2:
                forms[plain] = forms.get(plain, "") + char
    return forms


#: What the forms, and what shows nothing, have beyond ASCII, but for the dashes that prose is full of.
_DISGUISE = re.compile(
    "["
    + _INVISIBLE
    + "".join(f"{chr(start)}-{chr(stop - 1)}" for start, stop in _BLOCKS if chr(start) not in _DASHES)
    + "]"
)


_ASCII = bytes(range(128))


def is_disguised(text: str) -> bool:
    """Tell whether ``text`` holds any character that a ``wide`` pattern knows and another does not."""
    if text.isascii():
        return False
    # The few characters beyond ASCII are cut out first: a set this large is slow to look for.
    beyond = text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")
    return _DISGUISE.search(beyond) is not None


def _letter(char: str, wide: bool, dashes: str = "") -> str:
    variants = dict.fromkeys(
        char + char.upper() + (dashes if char == "-" else "") + (_forms().get(char, "") if wide else "")
    )
    return "[" + "".join(map(re.escape, variants)) + "]"


def spell(name: str, wide: bool) -> str:
    """Return a pattern for ``name`` in any disguise; it consumes no more than the name.

    ``wide`` adds what only a disguised text can hold; that pattern takes long to compile.
    """
    between = junk(wide)
    steps: list[str] = []
    index = 0
    while index < len(name):
        pair = name[index : index + 2]
        if wide and len(pair) == 2 and (single := _forms().get(pair)):
            both = between.join(_letter(char, wide) for char in pair)
            steps.append(f"(?:[{re.escape(single)}]|{both})")
            index += 2
        else:
            steps.append(_letter(pair[0], wide, _DASHES))
            index += 1
    return between.join(steps)


def spell_bytes(name: str) -> str:
    """Return a pattern (of bytes, once encoded) for ``name`` in UTF-8 in any disguise.

    It also matches, and goes no further, where anything beyond ASCII stands in its place or between its letters.
    """
    between = junk(wide=False)
    pattern = ""
    for char in reversed(name):
        pattern = rf"{between}(?:[\x80-\xff]|{_letter(char, wide=False)}{pattern})"
    return pattern
