"""Names that come from outside and reach the file system."""

from __future__ import annotations

import re

_SESSION_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


class BadName(ValueError):
    """A name from outside that is no safe file name. ``code``, ``message`` and ``hint`` are fit to show."""

    code = "bad_session_id"
    hint = "A session id has 1 to 128 letters, digits, dots, dashes or underscores."

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def is_session_id(name: str) -> bool:
    """True for ``[A-Za-z0-9._-]{1,128}`` except ``.`` and ``..``."""
    return _SESSION_ID.fullmatch(name) is not None and name not in (".", "..")


def check_session_id(name: str) -> str:
    """``name`` itself when it is a session id, else :class:`BadName`."""
    if not is_session_id(name):
        raise BadName(f"not a session id: {name[:140]!r}")
    return name
