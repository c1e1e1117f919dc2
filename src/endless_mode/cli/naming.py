"""Sessions by the beginning of their id, as `endless search` prints it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from endless_mode.clients.claude_code.history import overview
from endless_mode.errors import EndlessError
from endless_mode.home import Home
from endless_mode.names import is_session_id
from endless_mode.store import open_reader

#: Shortest beginning that is taken for an id.
SHORTEST = 6


def whole_id(home: Home, given: str, config_dir: Path | None = None) -> str:
    """The id of the one session that begins so; what was given when none does, or when it is an id itself.

    With ``config_dir`` sessions count too that only the client knows: by a transcript, or by what was typed in them.

    Raises:
        EndlessError: several sessions begin so.
    """
    if len(given) < SHORTEST:
        return given
    found = _stored(home, given)
    if not found and config_dir is not None and is_session_id(given):
        found = {path.stem for path in config_dir.glob(f"projects/*/{given}*.jsonl")}
        found = found or {one.session_id for one in overview(config_dir).sessions if one.session_id.startswith(given)}
    if len(found) > 1 and given not in found:
        raise EndlessError("ambiguous_session", f"Several sessions begin with {given}.", "Give more of the id.")
    return given if given in found or not found else found.pop()


def too_short(given: str) -> str:
    """What to say of a beginning that is too short to be taken for an id; empty for any other."""
    return f"Of a longer id give {SHORTEST} characters or more." if len(given) < SHORTEST else ""


def _stored(home: Home, given: str) -> set[str]:
    if not home.database.exists():
        return set()
    query = (
        "SELECT DISTINCT content_session_id FROM sessions WHERE substr(content_session_id, 1, length(?1)) = ?1"
        " ORDER BY content_session_id <> ?1 LIMIT 3"
    )
    with closing(open_reader(home.database)) as db:
        return {name for (name,) in db.execute(query, (given,))}
