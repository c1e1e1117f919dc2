"""The whole cleaning: surrogates, then tags, then secrets."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from endless_mode.privacy.assigned import is_telling, redact_named
from endless_mode.privacy.secrets import may_hold_secret, redact_secrets
from endless_mode.privacy.tags import has_tag, may_hold_tag, strip_tags

# One stage can make work for another (a redaction may lay a tag bare), so they repeat
# until nothing changes. Text that never settles is an attack and is hidden whole.
_MOST_ROUNDS = 8
_UNSETTLED = "[redacted:text]"


def clean(text: str) -> str:
    """Return ``text`` as it may be stored or shown; the same object when nothing had to change.

    Lone surrogates become U+FFFD (pairs become the character they stand for), private tags
    go with what they enclose, secrets become ``[redacted:<kind>]``. Cleaning twice changes
    nothing more.
    """
    if _is_plain(text):
        return text
    text = _replace_surrogates(text)
    for _ in range(_MOST_ROUNDS):
        shown = strip_tags(text)
        text = redact_secrets(shown)
        if text is shown:
            return text
    return _UNSETTLED


def clean_lines(text: str) -> str:
    """:func:`clean`, but line by line first: what has to go in one takes nothing of the next."""
    if clean(text) is text:
        return text
    return clean("\n".join([clean(line) for line in text.split("\n")]))


def _is_plain(text: str) -> bool:
    """Tell by its UTF-8 whether nothing in ``text`` can have to change; False where only a closer look can tell."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return False
    return not may_hold_tag(data) and not may_hold_secret(data)


def is_wholly_private(text: str) -> bool:
    """Tell whether ``text`` carried a private tag and is nothing but white space without it."""
    text = _replace_surrogates(text)
    return has_tag(text) and not clean(text).strip()


def clean_value(value: Any) -> Any:
    """Clean a JSON-like value string by string, keys too, at any depth; tuples become lists.

    A string under a telling key (``{"api_key": ...}``) is judged with that key. Two keys that
    clean to the same text leave the later value. A value in which nothing has to change is
    returned as it is.
    """
    if is_clean(value):
        return value
    root: list[Any] = []
    todo: list[tuple[Any, Any, Any]] = [(root, None, value)]
    while todo:
        holder, key, item = todo.pop()
        made: Any = item
        if isinstance(item, str):
            made = redact_named(key, clean(item)) if isinstance(key, str) else clean(item)
        elif isinstance(item, dict):
            made = {}
            pairs = [(clean(k) if isinstance(k, str) else k, k, v) for k, v in item.items()]
            made.update((new, None) for new, _, _ in pairs)
            todo.extend((made, new, v) for new, _, v in reversed(pairs))
        elif isinstance(item, list | tuple):
            made = [None] * len(item)
            todo.extend((made, index, v) for index, v in enumerate(item))
        if holder is root:
            root.append(made)
        else:
            holder[key] = made
    return root[0]


def is_clean(*values: Any) -> bool:
    """Tell whether cleaning JSON-like values (or structs of them) would change nothing.

    All their strings are looked at as one text, so it costs one :func:`clean`. It may say no
    where the answer is yes (two strings side by side can read as one suspicious text); never the
    other way round.
    """
    strings: list[str] = []
    if not gather(values, strings):
        return False
    joined = "\n".join(strings)
    return clean(joined) is joined


def gather(values: Iterable[Any], strings: list[str]) -> bool:
    """Gather every string of JSON-like values; False when one stands under a telling key or a tuple would become a list."""
    todo: list[Any] = list(values)
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is str:
            strings.append(item)
        elif kind is dict:
            for key, value in item.items():
                if isinstance(key, str):
                    strings.append(key)
                if type(value) is not str:
                    todo.append(value)
                elif isinstance(key, str) and _telling(key):
                    return False
                else:
                    strings.append(value)
        elif kind is list:
            if set(map(type, item)) <= _STRINGS:
                strings += item
            else:
                todo += item
        elif isinstance(item, Struct):
            todo += filter(None, astuple(item))
        elif isinstance(item, str | dict | list | tuple):
            return False
    return True


_STRINGS = {str}
_telling = lru_cache(maxsize=1024)(is_telling)


def _replace_surrogates(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
