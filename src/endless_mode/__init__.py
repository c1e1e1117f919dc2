"""Endless Mode: coding sessions that survive compaction, crashes and pruned transcripts."""

__version__ = "0.1.0"
