"""Search in everything the store holds: conversation and observations."""

from endless_mode.search.index import build, missing, step
from endless_mode.search.query import Hit, Question, search

__all__ = ["Hit", "Question", "build", "missing", "search", "step"]
