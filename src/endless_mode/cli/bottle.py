"""``endless bottle``: a transcript or session as a bottle."""

from __future__ import annotations

import argparse
from pathlib import Path

from endless_mode.bottle.entries import Document, Speech
from endless_mode.bottle.file import better_there, write_atomic
from endless_mode.bottle.render import Rendered, render
from endless_mode.cli.output import emit, say, write_text
from endless_mode.cli.target import Found, best
from endless_mode.errors import EndlessError
from endless_mode.tokens import estimate_tokens

#: What ``-o`` is for, here and in ``handoff``.
PLACE = "write the bottle to FILE (default: for a transcript ./<session>.bottle.md, for an id the home's bottles)"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("target", metavar="TARGET", help="a .jsonl or .jsonl.gz transcript, or a session id")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", metavar="FILE", type=Path, help=PLACE)
    where.add_argument("--stdout", action="store_true", help="print the bottle")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document about the bottle (with its text under --stdout)"
    )


def run(given: argparse.Namespace) -> int:
    """Render; print the place and the numbers, or the text."""
    found = best(given.target)
    whole, text = found.document, render(found.document)
    place, kept = None, None
    if not given.stdout:
        place = output_place(given.output, found)
        kept = put(place, text, found, asked=given.output is not None)
    whole, text = (kept, render(kept)) if kept is not None else (whole, text)
    speeches = [e for e in whole.entries if isinstance(e, Speech)]
    result = found.result
    about = {
        "session": found.session_id,
        "transcript": str(found.target.path) if found.target else None,
        "path": str(place) if place else None,
        "mode": whole.header.mode,
        "rung": found.rung,
        "why": found.why,
        "kept": kept is not None,
        "legs": whole.header.legs,
        "user_messages": sum(e.role == "user" for e in speeches),
        "assistant_messages": sum(e.role == "assistant" for e in speeches),
        "bytes": len(text.data),
        "tokens": estimate_tokens(text.text),
        "gap": found.gap,
        "lines": result.lines if result else 0,
        "skipped": result.skipped if result else 0,
        "torn_bytes": result.torn if result else 0,
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
    if found.rung != "transcript":
        say(f"note: {found.why}")
    return 0


def output_place(wanted: Path | None, found: Found) -> Path:
    """Where the bottle goes: as asked; for a session by id among the bottles; for a file into the current directory."""
    if wanted is not None:
        return wanted
    if found.target is not None and found.target.by_path:
        return Path.cwd() / f"{found.session_id}.bottle.md"
    found.home.create()
    return found.home.bottles / f"{found.session_id}.md"


def put(place: Path, text: Rendered, found: Found, *, asked: bool) -> Document | None:
    """Put the bottle in place, unless a better one of the session is there: that stays and is returned.

    Raises:
        EndlessError: it cannot be written there, or a better one stands where the user ``asked`` for it.
    """
    try:
        if place.exists() and not (place.is_file() or place.is_dir()):  # a pipe or a device is written to, not replaced
            place.write_bytes(text.data)
            return None
        there = better_there(place, found.document.header.mode)
        if there is None or there.header.content_session_id != found.session_id:
            write_atomic(place, text.data)
            return None
    except OSError as error:
        raise EndlessError(
            "cannot_write", f"{place} cannot be written: {error.strerror}.", "Choose another place with -o FILE."
        ) from error
    if asked:
        raise EndlessError(
            "better_bottle", f"{place} is a better bottle of this session.", "Choose another place with -o FILE."
        )
    say("note: a better bottle of this session was there already and stays")
    return there
