"""Which Read calls take in a bottle without an error.

Facts (client 2.1.197 to 2.1.332): a Read with offset and limit fails over 25,000 tokens, one without over
262,144 bytes; a file past the token limit is cut without limit; lines arrive as ``N<tab>text``. A plain Read
takes a file under 80 KB, about 20,000 tokens, whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil

from msgspec import Struct

from endless_mode.tokens import weigh

MAX_TOKENS = 20_000
MAX_BYTES = 262_144 - 8_192
ONE_READ_BYTES = 80_000

#: Estimates are raised by this much before they are held against a limit.
SAFETY = 1.1

#: Tokens of one line prefix: its digits, and one white space run for the newline and tab around them.
_PREFIX_DIGIT = 0.86
_PREFIX_TAB = 0.50


class Page(Struct, frozen=True, gc=False):
    """One Read call: ``offset`` is the first line (1-based), ``limit`` the number of lines.

    ``tokens`` is what it may cost, prefixes and safety included, rounded up.
    """

    offset: int
    limit: int
    tokens: int


def fits_one_read(data: bytes) -> bool:
    """True when a Read without offset and limit gets the whole file: under 80 KB and under 20,000 tokens."""
    lines = _count_lines(data)
    prefixes = len(str(lines)) * lines
    if len(data) + prefixes + lines >= ONE_READ_BYTES:
        return False
    tokens = weigh(data) + prefixes * _PREFIX_DIGIT + lines * _PREFIX_TAB
    return tokens * SAFETY < MAX_TOKENS


def pages(text: str, max_tokens: int = MAX_TOKENS, max_bytes: int = MAX_BYTES) -> list[Page]:
    """Splits ``text`` into pages from the first line on, in order.

    A page stays within both limits unless a single line exceeds them, which then is a page of its own.
    """
    found: list[Page] = []
    first, tokens, size = 1, 0.0, 0
    number = 0
    for number, (cost, length) in enumerate(_costs(_lines(text), 1, 1), 1):
        full = (tokens + cost) * SAFETY > max_tokens or size + length > max_bytes
        if full and number > first:
            found.append(Page(first, number - first, ceil(tokens * SAFETY)))
            first, tokens, size = number, 0.0, 0
        tokens += cost
        size += length
    if number:
        found.append(Page(first, number - first + 1, ceil(tokens * SAFETY)))
    return found


def tail_first(plan: list[Page]) -> list[Page]:
    """The same pages, the end of the bottle first: what to read when not everything can be."""
    return plan[::-1]


def tail_pages(
    text: str, budget: int, max_tokens: int = MAX_TOKENS, max_bytes: int = MAX_BYTES
) -> list[Page]:
    """Pages for the end of ``text``, last page first, of at most ``budget`` tokens together.

    Filled from the last line upwards, so the budget goes to what is nearest to the end. Empty when not even
    the last line fits.
    """
    lines = _lines(text)
    found: list[Page] = []
    spent, tokens, size = 0.0, 0.0, 0
    last = number = len(lines)
    for cost, length in _costs(reversed(lines), len(lines), -1):
        if ceil(spent + (tokens + cost) * SAFETY) > budget:
            break
        if number < last and ((tokens + cost) * SAFETY > max_tokens or size + length > max_bytes):
            found.append(Page(number + 1, last - number, ceil(tokens * SAFETY)))
            spent += found[-1].tokens
            last, tokens, size = number, 0.0, 0
            if ceil(spent + cost * SAFETY) > budget:
                break
        tokens += cost
        size += length
        number -= 1
    if number < last:
        found.append(Page(number + 1, last - number, ceil(tokens * SAFETY)))
    return found


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n"))


def _costs(lines: Iterable[str], number: int, step: int) -> Iterator[tuple[float, int]]:
    """Tokens and bytes of each line as the client hands it over; ``number`` is that of the first."""
    for line in lines:
        data = line.encode("utf-8", "surrogatepass")
        digits = len(str(number))
        yield weigh(data) + digits * _PREFIX_DIGIT + _PREFIX_TAB, len(data) + digits + 2
        number += step
