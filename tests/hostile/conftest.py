"""A fresh home for each test."""

from __future__ import annotations

from tests.live.conftest import living, served

__all__ = ["living", "served"]
