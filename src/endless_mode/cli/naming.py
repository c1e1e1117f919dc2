"""Sessions by the beginning of their id, as `endless search` prints it."""

from __future__ import annotations

from contextlib import closing

from endless_mode.errors import EndlessError
from endless_mode.home import Home
from endless_mode.store import open_reader

#: Shortest beginning that is taken for an id.
SHORTEST = 6


def whole_id(home: Home, given: str) -> str:
    """The id of the one session that begins so; what was given when none does, or when it is an id itself.

    Raises:
        EndlessError: several sessions begin so.
    """
    if len(given) < SHORTEST or not home.database.exists():
        return given
    query = (
        "SELECT DISTINCT content_session_id FROM sessions WHERE substr(content_session_id, 1, length(?1)) = ?1"
        " ORDER BY content_session_id <> ?1 LIMIT 3"
    )
    with closing(open_reader(home.database)) as db:
        found = [name for (name,) in db.execute(query, (given,))]
    if len(found) > 1 and found[0] != given:
        raise EndlessError("ambiguous_session", f"Several sessions begin with {given}.", "Give more of the id.")
    return found[0] if found else given
