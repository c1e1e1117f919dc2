"""What the words of a command line stand for: numbers, directories."""

from __future__ import annotations

import argparse
import os

#: Digits of the largest number that is taken.
DIGITS = 9


def count(word: str) -> int:
    """A number of things, at least one; the type of an argument."""
    if not (word.isascii() and word.isdecimal()) or len(word) > DIGITS or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word[:40]!r} is no number from 1 up")
    return int(word)


def directory(word: str) -> str:
    """A directory as sessions are stored with it: absolute, links as they are; empty when none is given."""
    return os.path.abspath(os.path.expanduser(word)) if word else ""  # noqa: PTH100, PTH111  links stay as they are
