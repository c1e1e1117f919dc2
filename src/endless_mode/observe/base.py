"""What an observer is.

An *inline* observer answers at ingest, in process, deterministically: the event is observed in the same
transaction that stores it. A *slow* observer (one that asks a model) takes events that the store holds as
``pending`` and confirms each of them; until then the bottle shows the honest tail.
"""

from __future__ import annotations

from typing import Protocol

from endless_mode.model import Digest, Observation


class InlineObserver(Protocol):
    """Turns one digest into one observation; pure, no I/O, never raises for any digest."""

    name: str

    def observe(self, digest: Digest, cwd: str) -> Observation: ...
