"""What digests and observations put together from clean parts can read as something that none of the parts is.

A secret whose name stood on the line above, a tag with the working directory in its middle: nothing of that may be stored.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from endless_mode.model import Digest, Observation
from endless_mode.privacy import clean_value
from endless_mode.privacy.screening import suspects

_Made = TypeVar("_Made", Digest, Observation)


def suspicious(digests: dict[str, Digest], seen: dict[str, Observation]) -> list[str]:
    """The keys whose digest or observation may hold something that has to go. All are looked at as one text."""
    keys = list(digests)
    texts = [_put_together(digests[key], seen.get(key)).encode("utf-8", "replace") for key in keys]
    return [keys[n] for n in sorted(suspects(texts))] if texts else []


def cleaned(made: _Made) -> _Made:
    """The same with each of its texts cleaned."""
    return msgspec.convert(clean_value(msgspec.to_builtins(made)), type(made))


def _put_together(digest: Digest, seen: Observation | None) -> str:
    """All but what was cut out of the call or its result as it stood there."""
    parts = [digest.target, digest.scope, digest.error, digest.outcome, *digest.symbols, *digest.paths, *digest.names]
    parts += [todo.text for todo in digest.todos]
    if seen is not None:
        parts += [seen.title, seen.subtitle, seen.narrative.partition("\n")[0], *seen.facts, *seen.files_modified]
    return "\n".join(parts)
