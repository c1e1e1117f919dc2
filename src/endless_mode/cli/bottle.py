"""``endless bottle``: a transcript or session as a bottle."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import ceil
from pathlib import Path

import msgspec
from msgspec import Struct

from endless_mode.bottle.entries import Document, Header, Speech
from endless_mode.bottle.file import better_there, replacing
from endless_mode.bottle.session import write_document
from endless_mode.bottle.text import BottleText
from endless_mode.cli.output import emit, say, stdout_bytes, write_text
from endless_mode.cli.target import Found, best
from endless_mode.errors import EndlessError
from endless_mode.tokens import estimate_tokens, weigh

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
    with best(given.target) as found:
        place = None if given.stdout else output_place(given.output, found)
        parts: list[bytes] = []
        if place is not None:
            made = put(place, found, asked=given.output is not None)
        else:
            made = _made(found, parts.append if given.json else stdout_bytes)
    result, text = found.result, b"".join(parts).decode()
    users, assistants = made.said
    about = {
        "session": found.session_id,
        "transcript": str(found.target.path) if found.target else None,
        "path": str(place) if place else None,
        "mode": made.header.mode,
        "rung": found.rung,
        "why": found.why,
        "kept": made.kept is not None,
        "legs": made.header.legs,
        "user_messages": users,
        "assistant_messages": assistants,
        "bytes": made.size,
        "tokens": made.tokens,
        "gap": found.gap,
        "lines": result.lines if result else 0,
        "skipped": result.skipped if result else 0,
        "torn_bytes": result.torn if result else 0,
    }
    if given.json:
        emit({**about, "text": text} if given.stdout else about)
    elif not given.stdout:
        write_text(f"{place}\n")
        say(
            f"{about['mode']}: {users} user and {assistants} assistant messages,"
            f" {about['legs']} legs, ≈{made.tokens:,} tokens"
        )
    tell_source(found, made)
    return 0


def tell_source(found: Found, made: Made) -> None:
    """Say what the bottle is made from when that is not the transcript as it is."""
    if made.kept is not None:
        say(f"note: {found.why}; the bottle from before is better than what is left and stays as it is")
    elif found.rung != "transcript":
        say(f"note: {found.why}")


def output_place(wanted: Path | None, found: Found) -> Path:
    """Where the bottle goes: as asked; for a session by id among the bottles; for a file into the current directory."""
    if wanted is not None:
        return wanted
    if found.target is not None and found.target.by_path:
        return Path.cwd() / f"{found.session_id}.bottle.md"
    found.home.create()
    return found.home.bottles / f"{found.session_id}.md"


class Made(Struct, frozen=True):
    """A bottle that was made, or one that was there and is ``kept``: what is in it, and where it can be read.

    ``said``: messages of user and assistant. ``tokens`` is an estimate.
    """

    header: Header
    text: BottleText
    said: tuple[int, int]
    size: int
    tokens: int
    kept: Document | None = None


def put(place: Path, found: Found, *, asked: bool) -> Made:
    """Put the bottle in place, unless a better one of the session is there: that stays and is returned.

    Raises:
        EndlessError: it cannot be written there, or a better one stands where the user ``asked`` for it.
    """
    try:
        if place.exists() and not (place.is_file() or place.is_dir()):  # a pipe or a device is written to, not replaced
            parts: list[bytes] = []
            made = _made(found, parts.append)
            data = b"".join(parts)
            place.write_bytes(data)
            return msgspec.structs.replace(made, text=BottleText(data))
        if asked and not place.parent.is_dir():
            raise EndlessError(
                "cannot_write",
                f"There is no directory {place.parent}.",
                "Make it, or choose another place with -o FILE.",
            )
        there = better_there(place, found.document.header.mode)
        if there is None or there.header.content_session_id != found.session_id:
            with replacing(place) as file:
                made = _made(found, file.write)
            return msgspec.structs.replace(made, text=BottleText(place))
    except OSError as error:
        raise EndlessError(
            "cannot_write", f"{place} cannot be written: {error.strerror}.", "Choose another place with -o FILE."
        ) from error
    if asked:
        raise EndlessError(
            "better_bottle", f"{place} is a better bottle of this session.", "Choose another place with -o FILE."
        )
    text = BottleText(place)
    said = [e.role for e in there.entries if isinstance(e, Speech)]
    counts = (said.count("user"), said.count("assistant"))
    return Made(there.header, text, counts, text.shape.size, estimate_tokens(text.whole()), there)


def _made(found: Found, sink: Callable[[bytes], object]) -> Made:
    tokens = 0.0

    def weighed(data: bytes) -> None:
        nonlocal tokens
        tokens += weigh(data)
        sink(data)

    done = write_document(found.document, weighed)
    return Made(found.document.header, BottleText(b""), done.said, done.shape.size, ceil(tokens))
