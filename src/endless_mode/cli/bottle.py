"""``endless bottle``: a transcript or session as a bottle."""

from __future__ import annotations

import argparse
from pathlib import Path

from endless_mode.bottle.entries import Speech
from endless_mode.bottle.file import write_atomic
from endless_mode.bottle.render import render
from endless_mode.bottle.session import document, gap
from endless_mode.cli.output import emit, say, write_text
from endless_mode.cli.target import Loaded, loaded
from endless_mode.errors import EndlessError
from endless_mode.tokens import estimate_tokens


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("target", metavar="TARGET", help="a .jsonl or .jsonl.gz transcript, or a session id")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the bottle to FILE")
    where.add_argument("--stdout", action="store_true", help="print the bottle")
    parser.add_argument("--json", action="store_true", help="print one JSON document about the bottle (with its text under --stdout)")


def run(given: argparse.Namespace) -> int:
    """Render; print the place and the numbers, or the text."""
    with loaded(given.target) as made:
        whole = made.store.read(lambda db: document(db, made.session))
        text = render(whole)
        place = None if given.stdout else output_place(given.output, made)
        if place is not None:
            write(place, text.data)
        speeches = [e for e in whole.entries if isinstance(e, Speech)]
        about = {
            "session": made.result.content_session_id,
            "transcript": str(made.target.path),
            "path": str(place) if place else None,
            "mode": whole.header.mode,
            "legs": whole.header.legs,
            "user_messages": sum(e.role == "user" for e in speeches),
            "assistant_messages": sum(e.role == "assistant" for e in speeches),
            "bytes": len(text.data),
            "tokens": estimate_tokens(text.text),
            "gap": made.store.read(lambda db: gap(db, made.session)),
            "lines": made.result.lines,
            "skipped": made.result.skipped,
            "torn_bytes": made.result.torn,
        }
    if given.json:
        emit({**about, "text": text.text} if given.stdout else about)
    elif given.stdout:
        write_text(text.text)
    else:
        print(place)
        say(
            f"{about['mode']}: {about['user_messages']} user and {about['assistant_messages']} assistant messages,"
            f" {about['legs']} legs, ≈{about['tokens']:,} tokens"
        )
    return 0


def output_place(wanted: Path | None, made: Loaded) -> Path:
    """Where the bottle goes: as asked; for a session by id among the bottles; for a file into the current directory."""
    if wanted is not None:
        return wanted
    session_id = made.result.content_session_id
    if made.target.by_path:
        return Path.cwd() / f"{session_id}.bottle.md"
    made.home.create()
    return made.home.bottles / f"{session_id}.md"


def write(place: Path, data: bytes) -> None:
    """Put the bottle in place.

    Raises:
        EndlessError: it cannot be written there.
    """
    try:
        write_atomic(place, data)
    except OSError as error:
        raise EndlessError(
            "cannot_write", f"{place} cannot be written: {error.strerror}.", "Choose another place with -o FILE."
        ) from error
