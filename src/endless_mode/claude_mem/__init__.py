"""The older memory tool, claude-mem: its database as a source of bottles, and what it does beside us.

Everything here only reads. Nothing of claude-mem's is ever written, created or locked for longer than one read.
"""

from endless_mode.claude_mem.reader import ClaudeMem
from endless_mode.claude_mem.session import MemObservation, MemPrompt, MemSession, MemSummary

__all__ = ["ClaudeMem", "MemObservation", "MemPrompt", "MemSession", "MemSummary"]
