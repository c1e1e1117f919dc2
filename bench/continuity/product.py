"""The product, seen from the bench: two functions over a transcript file.

This is the only module of the bench that may import `endless_mode`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from endless_mode.bottle.closing import closing
from endless_mode.bottle.entries import MODE_FULL
from endless_mode.bottle.session import render_session
from endless_mode.bottle.text import BottleText
from endless_mode.bottle.view import load_session
from endless_mode.bottle.write import Bottle
from endless_mode.deliver.handoff import compose, followed, task_of
from endless_mode.ingest import ingest_file
from endless_mode.store import Store

#: Where the bottle would lie; only its length matters.
_PLACE = Path("/home/dev/.claude-mem/endless/bottles/00000000-0000-0000-0000-000000000000.md")


@lru_cache(maxsize=2)
def _made(path: Path, _size: int) -> tuple[Bottle, str, str]:
    with Store.temporary() as store:
        session = ingest_file(store, path).session
        rendered = render_session(store, session, 0)
        state = store.read(lambda db: closing(db, load_session(db, session)).state)
        task = store.read(lambda db: task_of(db, load_session(db, session)))
    return Bottle(_PLACE, MODE_FULL, 0, 0, BottleText(rendered.data, rendered.shape)), state, task


def bottle(path: Path) -> str:
    """The whole bottle of the transcript at `path`."""
    return _made(path, path.stat().st_size)[0].text.whole()


def handoff(path: Path, plan_tokens: int) -> tuple[str, str]:
    """The handoff after the file at `path`, and the pages its reading plan names within `plan_tokens`."""
    made, state, task = _made(path, path.stat().st_size)
    given = compose(made, state, task, plan_tokens, "0" * 8)
    return given.text, followed(made.text.whole(), given.plan)
