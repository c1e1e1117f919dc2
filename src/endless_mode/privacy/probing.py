"""Look for a pattern whose matches all hold one fixed character, at the price of a byte scan."""

import re

_DENSE = 256


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
