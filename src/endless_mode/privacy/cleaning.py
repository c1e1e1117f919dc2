"""The whole cleaning: surrogates, then tags, then secrets."""

from typing import Any

from endless_mode.privacy.assigned import redact_named
from endless_mode.privacy.secrets import redact_secrets
from endless_mode.privacy.tags import has_tag, strip_tags

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
    text = _replace_surrogates(text)
    for _ in range(_MOST_ROUNDS):
        before = text
        text = redact_secrets(strip_tags(text))
        if text is before or text == before:
            return text
    return _UNSETTLED


def is_wholly_private(text: str) -> bool:
    """Tell whether ``text`` carried a private tag and is nothing but white space without it."""
    text = _replace_surrogates(text)
    return has_tag(text) and not clean(text).strip()


def clean_value(value: Any) -> Any:
    """Clean a JSON-like value string by string, keys too, at any depth; tuples become lists.

    A string under a telling key (``{"api_key": ...}``) is judged with that key. Two keys that
    clean to the same text leave the later value.
    """
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


def _replace_surrogates(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
