"""Look for a pattern whose matches all hold one fixed character, at the price of a byte scan."""

import re

_DENSE = 256


def hits(text: str, pivot: str, pattern: re.Pattern[str]) -> bool:
    """Tell whether ``pattern``, which must begin with the literal ``pivot``, matches anywhere.

    While the pivot is rare, ``str.find`` hops from one to the next; once there is more
    than one in 256 characters, the pattern's own scan is cheaper and takes over.
    """
    at = text.find(pivot)
    hops = 0
    while at >= 0:
        if pattern.match(text, at):
            return True
        hops += 1
        if hops > 16 and hops * _DENSE > at:
            return pattern.search(text, at + 1) is not None
        at = text.find(pivot, at + 1)
    return False
