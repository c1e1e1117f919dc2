"""What commands print: data on standard output, talk on standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from endless_mode.errors import EndlessError

#: What was said while a command runs whose errors are to stand alone on standard error; None when nothing is held back.
_held: list[str] | None = None


class OutputError(EndlessError):
    """Standard output cannot be written."""


def report(error: EndlessError, *, as_json: bool) -> None:
    """Print an error on standard error, as one JSON object or as text with its code and hint."""
    if as_json:
        say(error.to_json().decode())
        return
    say(f"endless: {error.message} [{error.code}]")
    if error.hint:
        say(f"hint: {error.hint}")


def say(text: str) -> None:
    """Talk: a line on standard error. Where nobody can hear it, nothing is said."""
    if _held is not None:
        _held.append(text)
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        to_nowhere(2)


@contextmanager
def held_talk(*, hold: bool) -> Iterator[None]:
    """With ``hold``, what is said inside comes out at the end, and not at all when an error ends it."""
    global _held
    if not hold:
        yield
        return
    _held = []
    try:
        yield
        told = _held
    finally:
        _held = None
    for text in told:
        say(text)


def emit(value: Any) -> None:
    """One stable JSON document on standard output."""
    write_text(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def write_text(text: str) -> None:
    """Text on standard output as UTF-8, whatever the locale."""
    stdout_bytes(text.encode("utf-8", "replace"))


def stdout_bytes(data: bytes) -> None:
    """A piece of text on standard output as it is.

    Raises:
        OutputError: it cannot be written. A reader who went away is a :class:`BrokenPipeError`.
    """
    if sys.stdout is None:  # the shell closed it
        if data:
            raise _not_written("it is closed")
        return
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _not_written(error.strerror) from error


def _not_written(why: str | None) -> OutputError:
    return OutputError(
        "cannot_write",
        f"Standard output cannot be written: {why}.",
        "Make room where it goes, or send it somewhere else.",
    )


def to_nowhere(descriptor: int) -> None:
    """Let what is still to be written there vanish, so that the end of the process does not fail over it."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell."""
    widths = [max(len(str(r[n])) for r in [heads, *rows]) for n in range(len(heads))]
    lines = ["  ".join(str(c).ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in [heads, *rows]]
    return "\n".join(lines)


def when(at: int | None) -> str:
    """A time in milliseconds as UTC, ``—`` when unknown."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M") if at is not None else "—"


def progress(label: str) -> Callable[[int, int], None] | None:
    """A progress bar on standard error when that is a terminal; it appears only when the work takes a while."""
    if not sys.stderr.isatty():
        return None
    began = time.monotonic()

    def show(done: int, whole: int) -> None:
        if time.monotonic() - began < 0.5:
            return
        share = min(1.0, done / whole) if whole else 1.0
        bar = "█" * int(share * 30)
        end = "\r\033[K" if share >= 1.0 else ""
        sys.stderr.write(f"\r{label} {bar:<30} {share:4.0%} {done >> 20} MB{end}")
        sys.stderr.flush()

    return show
