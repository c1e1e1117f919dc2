"""Which Read calls take in a bottle without an error.

Facts (client 2.1.197 to 2.1.332): a Read with offset and limit fails over 25,000 tokens, one without over
262,144 bytes; a file past the token limit is cut without limit; lines arrive as ``N<tab>text``. A plain Read
takes a file under 80 KB, about 20,000 tokens, whole.
"""

from __future__ import annotations

from collections.abc import Iterator
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

_BLOCK = 256


class Page(Struct, frozen=True, gc=False):
    """One Read call: ``offset`` is the first line (1-based), ``limit`` the number of lines.

    ``tokens`` is what it may cost, prefixes and safety included, rounded up.
    """

    offset: int
    limit: int
    tokens: int


def fits_one_read(data: bytes) -> bool:
    """True when a Read without offset and limit gets the whole file: under 80 KB and under 20,000 tokens."""
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    prefixes = len(str(lines)) * lines
    if len(data) + prefixes + lines >= ONE_READ_BYTES:
        return False
    tokens = weigh(data) + prefixes * _PREFIX_DIGIT + lines * _PREFIX_TAB
    return tokens * SAFETY < MAX_TOKENS


def pages(text: str, max_tokens: int = MAX_TOKENS, max_bytes: int = MAX_BYTES, before: int = 0) -> Iterator[Page]:
    """Splits ``text`` into pages from the first line on, in order; ``before``: lines of the file before it.

    A page stays within both limits unless a single line exceeds them, which then is a page of its own.
    """
    lines = _Numbered(text, before)
    first = 0
    while first < lines.count:
        count, tokens = _fill(lines, first, 1, max_tokens, max_bytes)
        if not count:
            count, tokens = 1, lines.cost(first, first + 1)[0]
        yield Page(before + first + 1, count, ceil(tokens))
        first += count


def tail_pages(
    text: str, budget: int, max_tokens: int = MAX_TOKENS, max_bytes: int = MAX_BYTES, before: int = 0
) -> list[Page]:
    """Pages for the end of ``text``, last page first, of at most ``budget`` tokens together; ``before`` as above.

    Filled from the last line upwards, so the budget goes to what is nearest to the end. Stops at a line that
    exceeds a page, so it is empty when not even the last line fits.
    """
    lines = _Numbered(text, before)
    found: list[Page] = []
    end = lines.count
    while end:
        count, tokens = _fill(lines, end, -1, min(max_tokens, budget), max_bytes)
        if not count:
            break
        end -= count
        found.append(Page(before + end + 1, count, ceil(tokens)))
        budget -= ceil(tokens)
    return found


class _Numbered:
    """Lines as the client hands them over, each with its number in the file."""

    def __init__(self, text: str, before: int) -> None:
        self._lines = text.split("\n")
        if not self._lines[-1]:
            self._lines.pop()
        self._before = before
        self.count = len(self._lines)

    def cost(self, start: int, stop: int) -> tuple[float, int]:
        """Tokens (safety included) and bytes of these lines."""
        data = "\n".join(self._lines[start:stop]).encode("utf-8", "surrogatepass")
        count = stop - start
        prefixes = count * len(str(self._before + stop))
        tokens = weigh(data) + prefixes * _PREFIX_DIGIT + count * _PREFIX_TAB
        return tokens * SAFETY, len(data) + prefixes + 2 * count


def _fill(lines: _Numbered, at: int, step: int, max_tokens: int, max_bytes: int) -> tuple[int, float]:
    """How many lines from ``at`` on (down for ``step`` 1, up for -1) fit a page, and their tokens.

    Weighs blocks, large ones first, because weighing line by line costs several times as much.
    """
    count, tokens, size, block = 0, 0.0, 0, _BLOCK
    left = lines.count - at if step > 0 else at
    while block and left > count:
        block = min(block, left - count)
        start = at + count if step > 0 else at - count - block
        more, length = lines.cost(start, start + block)
        if tokens + more > max_tokens or size + length > max_bytes:
            block //= 2
            continue
        count, tokens, size = count + block, tokens + more, size + length
    return count, tokens
