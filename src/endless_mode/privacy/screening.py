"""Look at many texts at once, to find the few that need cleaning at all.

Each search costs one scan however many texts there are, so what most of them pay for is one scan's share.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from endless_mode.privacy.secrets import SECRET_SEARCHES
from endless_mode.privacy.tags import TAG_SEARCHES


def suspects(texts: Sequence[bytes]) -> set[int]:
    """The places of those UTF-8 ``texts`` in which something may have to change; cleaning leaves the others as they are.

    The texts are searched as one with line breaks between. No pattern tells a line break from the edge of a text, and
    after a find the search goes on at the next text, so what is found in one never hides what is in another.
    """
    found: set[int] = set()
    data = b"\n".join(texts)
    nexts = list(accumulate(len(text) + 1 for text in texts))
    for search in (*TAG_SEARCHES, *SECRET_SEARCHES):
        at = search(data, 0)
        while at >= 0:
            place = bisect_right(nexts, at)
            found.add(place)
            at = search(data, nexts[place]) if place + 1 < len(nexts) else -1
    return found
