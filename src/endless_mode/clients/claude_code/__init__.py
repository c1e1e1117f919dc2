"""The adapter for Claude Code."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from endless_mode.clients.base import Known, Source
from endless_mode.clients.claude_code.entry import decode
from endless_mode.clients.claude_code.reader import ClaudeCodeReader, is_known_type
from endless_mode.clients.claude_code.state import State
from endless_mode.errors import EndlessError
from endless_mode.names import is_session_id

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: Files beside a session that are the client's own side calls, no tasks.
_SIDE_CALLS = ("agent-acompact", "agent-aprompt_suggestion", "agent-aside_question")
#: Lines looked at to tell whether a file is a transcript at all.
_PROBE_LINES = 400


class NotATranscript(EndlessError):
    """The file is not a Claude Code transcript."""


def stem_of(path: Path) -> str:
    """The file name without ``.jsonl`` or ``.jsonl.gz``."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


class ClaudeCode:
    """See :class:`endless_mode.clients.base.Adapter`."""

    name = "claude"

    def reader(
        self,
        source: Source,
        state: bytes | None,
        known: Known,
        *,
        agent: str = "",
        flat: bool = False,
        hidden: frozenset[str] = frozenset(),
    ) -> ClaudeCodeReader:
        """A reader for one file.

        ``flat`` reads a subagent's file as a session of its own; ``hidden`` are the private prompts of the session
        whose subagent ``agent`` is.
        """
        return ClaudeCodeReader(source, state, known, agent, flat=flat, hidden=hidden)

    def hidden(self, state: bytes) -> frozenset[str]:
        """The wholly private prompts that a main transcript's reader has met, from its state."""
        return frozenset(msgspec.json.decode(state, type=State).hidden)

    def session_id(self, path: Path, source: Source) -> str:
        """File name when it is a session id, else what the lines say, else the file name made safe."""
        stem, found, entries = stem_of(path), "", 0
        with source.open(0) as stream:
            for _, data in zip(range(_PROBE_LINES), iter(lambda: stream.readline(1 << 26), b""), strict=False):
                for _, entry in decode(data, 0) or ():
                    entries += is_known_type(entry.type)
                    if not found and isinstance(entry.sessionId, str) and is_session_id(entry.sessionId):
                        found = entry.sessionId
                if found and entries:
                    break
        if not entries:
            raise NotATranscript(
                "not_a_transcript",
                f"{path.name} holds no transcript entries.",
                "Give the .jsonl file of a session, as it lies under projects/ in the client's configuration directory.",
            )
        if _UUID.fullmatch(stem) or stem.startswith("agent-"):
            return stem
        return found or re.sub(r"[^A-Za-z0-9._-]", "-", stem)[:128].strip(".") or "session"

    def project(self, source: Source) -> str:
        """The directory a session began in, as its first lines say; empty when they do not."""
        with source.open(0) as stream:
            for _, data in zip(range(_PROBE_LINES), iter(lambda: stream.readline(1 << 26), b""), strict=False):
                for _, entry in decode(data, 0) or ():
                    if isinstance(entry.cwd, str) and entry.cwd:
                        return entry.cwd
        return ""

    def find_transcript(self, session_id: str, config_dir: Path) -> Path | None:
        """Newest ``projects/*/<id>.jsonl``; several can exist when a project directory was moved."""
        if not is_session_id(session_id):
            return None
        found = [p for p in config_dir.glob(f"projects/*/{session_id}.jsonl") if p.is_file()]
        return max(found, key=lambda p: p.stat().st_mtime, default=None)

    def subagent_files(self, transcript: Path) -> list[tuple[str, Path]]:
        """``<session>/subagents/agent-<id>.jsonl`` beside the transcript, the client's side calls left out."""
        folder = transcript.parent / stem_of(transcript) / "subagents"
        try:
            files = sorted(p for p in folder.iterdir() if p.name.endswith((".jsonl", ".jsonl.gz")))
        except OSError:
            return []
        return [
            (stem_of(p).removeprefix("agent-"), p)
            for p in files
            if p.name.startswith("agent-") and not p.name.startswith(_SIDE_CALLS)
        ]
