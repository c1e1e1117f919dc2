"""Look for a pattern whose matches all hold one fixed character, at the price of a byte scan."""

import re
from collections.abc import Callable

#: Where from a place on in UTF-8 something may have to change; -1 for nowhere.
Search = Callable[[bytes, int], int]

_DENSE = 256
#: The same for bytes, where the scan is faster.
_DENSE_RAW = 1024


def hits(text: str, pivot: str, probe: re.Pattern[str], whole: re.Pattern[str] | None = None) -> bool:
    """Tell whether ``probe``, which must begin with the literal ``pivot``, matches anywhere.

    With ``whole``, a place counts only if that matches there too. While the pivot is rare,
    ``str.find`` hops from one to the next; once there is more than one in 256 characters,
    the probe's own scan is cheaper and takes over.
    """
    at = text.find(pivot)
    hops = 0
    while at >= 0:
        if probe.match(text, at) and (whole is None or whole.match(text, at)):
            return True
        hops += 1
        if hops > 16 and hops * _DENSE > at:
            found = probe.finditer(text, at + 1)
            return any(whole is None or whole.match(text, place.start()) for place in found)
        at = text.find(pivot, at + 1)
    return False


def searching(probe: re.Pattern[bytes], pivot: bytes, *needs: bytes) -> Search:
    """A search for ``probe``, which must begin with the literal ``pivot`` and matches only where each of ``needs`` follows.

    It hops like :func:`hits`.
    """

    def search(data: bytes, start: int) -> int:
        if any(data.find(need, start) < 0 for need in needs):
            return -1
        at = data.find(pivot, start)
        hops = 0
        while at >= 0:
            if probe.match(data, at):
                return at
            hops += 1
            if hops > 16 and hops * _DENSE_RAW > at - start:
                found = probe.search(data, at + 1)
                return found.start() if found else -1
            at = data.find(pivot, at + 1)
        return -1

    return search
