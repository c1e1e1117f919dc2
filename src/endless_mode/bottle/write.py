"""A session's bottle onto the disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from endless_mode.bottle.entries import Document
from endless_mode.bottle.file import better_there, bottle_path, replacing, session_lock
from endless_mode.bottle.prefixes import Known, Prefixes, copier
from endless_mode.bottle.render import Written
from endless_mode.bottle.session import SessionDocument, gap, session_document, write_document
from endless_mode.bottle.text import BottleText, identity
from endless_mode.bottle.view import load_session
from endless_mode.store import Store


class Bottle(Struct, frozen=True):
    """A bottle on disk (``path``) and how much of the session it holds: transcript bytes, events without observation.

    ``kept``: a better one was there already, and the rest tells of that.
    """

    path: Path
    mode: str
    offset: int
    gap: int
    text: BottleText
    kept: bool = False


def write_bottle(
    store: Store,
    session: int,
    directory: Path,
    locks: Path,
    make: Callable[[], Document | SessionDocument] | None = None,
    prefixes: Prefixes | None = None,
) -> Bottle:
    """Render a session and put its bottle in place, one at a time per session, never a worse one over a better.

    ``make`` gives the document (default: what the store has); it is called while the session's lock is held, within one
    read of the store. ``prefixes`` remembers what need not be rendered again.

    Raises:
        OSError: the file cannot be written; the old one stays.
        LockTimeout: another render of this session does not end.
    """
    at = store.read(lambda db: load_session(db, session))
    path = bottle_path(directory, at.content_session_id)
    with session_lock(locks, at.content_session_id):
        watch = prefixes.begin(session) if prefixes is not None else None
        if prefixes is None or watch is None:
            return _in_place(store, session, path, make, None)[0]
        kept = False
        try:
            bottle, made, written = _in_place(store, session, path, make, prefixes)
            if isinstance(made, SessionDocument) and written is not None:
                kept = True
                prefixes.keep(watch, made, bottle.text, written)
        finally:
            if not kept:
                prefixes.drop(session, watch)
        return bottle


_Made = Document | SessionDocument


def _in_place(
    store: Store, session: int, path: Path, make: Callable[[], _Made] | None, prefixes: Prefixes | None
) -> tuple[Bottle, _Made, Written | None]:
    """Put the bottle at ``path`` within one read of the store; nothing is written when a better one is there."""
    with store.reading() as db:
        at, waiting = load_session(db, session), gap(db, session)
        made = session_document(db, session) if make is None else make()
        better = better_there(path, made.header.mode)
        if better is not None:
            return Bottle(path, better.header.mode, at.offset, waiting, BottleText(path), kept=True), made, None
        known = prefixes.known(made, path) if prefixes is not None and isinstance(made, SessionDocument) else None
        with replacing(path) as file:
            written = _write(made, file, known)
            file.flush()
            of = identity(os.fstat(file.fileno()))
    text = BottleText(path, written.shape, of)
    return Bottle(path, made.header.mode, at.offset, waiting, text), made, written


def _write(made: Document | SessionDocument, file: BinaryIO, known: Known | None) -> Written:
    copied = copier(known, file) if known is not None else None
    if known is None or copied is None:
        return write_document(made, file.write)
    source, copy = copied
    with source:
        return write_document(made, file.write, known.start, copy)
