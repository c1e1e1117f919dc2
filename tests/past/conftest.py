"""A fresh home for each test, with a real worker or the service in this process."""

from __future__ import annotations

from tests.live.conftest import living, served

__all__ = ["living", "served"]
