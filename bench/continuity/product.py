"""The product, seen from the bench: two functions over a transcript file.

This is the only module of the bench that may import `endless_mode`. Where the product lacks something, the
function raises `NotImplementedError` and its arms are left out of the tables.
"""

from __future__ import annotations

from pathlib import Path


def bottle(path: Path) -> str:
    """The whole bottle of the transcript at `path`."""
    raise NotImplementedError("the product's bottle is not connected yet")


def handoff(path: Path, plan_tokens: int) -> tuple[str, str]:
    """The handoff after the file at `path`, and the pages its reading plan names within `plan_tokens`."""
    raise NotImplementedError("the product's handoff is not connected yet")
