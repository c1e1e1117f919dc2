"""What can go wrong, in a shape that people and programs both read.

Every error has a stable ``code`` (snake case), a ``message`` that says what happened, and a ``hint`` that
says what to do about it. Messages never quote what a user or a model said.
"""

from __future__ import annotations

import json


class EndlessError(Exception):
    """Base of all errors; ``status`` is the HTTP status it becomes when it leaves by the API."""

    status = 500

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def to_dict(self) -> dict[str, str]:
        """Return ``{code, message, hint}``."""
        return {"code": self.code, "message": self.message, "hint": self.hint}

    def to_json(self) -> bytes:
        """Return the error as one line of JSON, the form of API bodies and of ``--json`` output."""
        return json.dumps(self.to_dict()).encode()


class BadRequest(EndlessError):
    """The caller sent something that cannot be read or is not allowed."""

    def __init__(self, code: str, message: str, hint: str = "", status: int = 400) -> None:
        super().__init__(code, message, hint)
        self.status = status


class HomeError(EndlessError):
    """The home directory cannot be used."""


class SettingsError(EndlessError):
    """A settings file cannot be read, or a value is not what its key takes."""

    status = 400


class WorkerError(EndlessError):
    """The worker is not there, or did not answer as it should."""

    status = 503
