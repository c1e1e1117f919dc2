"""Which transcript paths may be read when they arrive by hook or API.

A path is accepted when its *real* path (all links followed) ends in ``.jsonl`` and lies under the real
path of one of the allowed roots, so a link inside a root that points out of it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from endless_mode.errors import BadRequest


def client_root(client: str, config_dir: str, home: str) -> Path | None:
    """Return the directory a client keeps its transcripts under: its configuration directory.

    ``config_dir`` is what the client's own environment says (``CLAUDE_CONFIG_DIR``), ``home`` the user's
    home.
    """
    if config_dir:
        return Path(config_dir)
    if client == "claude-code" and home:
        return Path(home) / ".claude"
    return None


def client_of(transcript: Path) -> Path | None:
    """Return the configuration directory that a transcript lies under as the client lays it out, if it does."""
    above = transcript.parents
    return above[2] if len(above) > 2 and above[1].name == "projects" else None


def check_transcript(path: str, roots: Iterable[Path]) -> Path:
    """Return the real path of a transcript, which need not exist yet; raise :class:`BadRequest` when
    refused.
    """
    if not path or "\0" in path or not Path(path).is_absolute():
        raise _refused("is not an absolute path")
    try:
        real = Path(os.path.realpath(path))
        real_roots = [Path(os.path.realpath(root)) for root in roots if root.is_absolute()]
    except (OSError, ValueError) as error:
        raise _refused("cannot be resolved") from error
    if real.suffix != ".jsonl":
        raise _refused("does not end in .jsonl")
    if not any(root in real.parents for root in real_roots if root != Path(root.anchor)):
        raise _refused("is outside the directories that may be read")
    return real


def _refused(why: str) -> BadRequest:
    return BadRequest(
        "transcript_refused",
        f"The transcript path {why}.",
        "Transcripts are read from the client's configuration directory; add others with "
        "`endless config set CLAUDE_MEM_ENDLESS_EXTRA_ROOTS <directory>`.",
    )
