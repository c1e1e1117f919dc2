"""The tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from bench.continuity.cuts import SCOPES
from bench.continuity.losses import by_kind
from bench.continuity.measure import NEED, POINTS, REDUCTION, Result, Row, shares
from bench.continuity.recall import MEASURES
from bench.continuity.stats import Share

_LINES_OF_LOSSES = 25


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---", *("--:" for _ in head[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def report(title: str, result: Result) -> str:
    """Everything about one part of the cuts."""
    rows = result.rows
    if not rows:
        return f"## {title}\n\nno compaction found\n"
    found = shares(rows)
    count = len({row.cut for row in rows})
    parts = [
        f"## {title}: {count} compactions, {len({r.repository for r in rows})} repositories",
        "### Recall, pooled % (median over cuts)\n\n" + _recall(found, rows),
        "### Needed later: met, % pooled (median) [95 % interval] {without one repository}\n\n" + _needed(found, NEED),
        "### The same, in points more than the client (paired)\n\n" + _needed(found, POINTS),
        "### Unmet need, reduction against the client alone, in % of the client's\n\n" + _needed(found, REDUCTION),
    ]
    if result.late:
        parts.append("### The handoff at leg 5 and later\n\n" + _late(result.late))
    if result.lost:
        parts.append(f"### Losses by kind: {result.lost[0]['arm']}\n\n" + _losses(result.lost))
    return "\n\n".join(parts) + "\n"


def _recall(found: dict[str, dict[str, Share]], rows: Sequence[Row]) -> str:
    arms = list(found)
    lines = [[m, *(_short(found[a].get(m)) for a in arms)] for m in MEASURES]
    tokens = [
        "tokens (median)",
        *(f"{statistics.median(r.tokens for r in rows if r.arm == a) / 1000:.1f}k" for a in arms),
    ]
    return table(["arm", "n", *MEASURES, "tokens"], _turned(arms, [*lines, tokens], found))


def _turned(arms: list[str], lines: list[list[str]], found: dict[str, dict[str, Share]]) -> Iterable[list[str]]:
    counts = {m: max((found[a][m].count for a in arms if m in found[a]), default=0) for m in MEASURES}
    yield ["items", "", *(str(counts[m]) for m in MEASURES), ""]
    for n, arm in enumerate(arms, 1):
        yield [arm, "", *(line[n] for line in lines)]


def _short(share: Share | None) -> str:
    return "–" if share is None else f"{share.pooled:.0f} ({share.median:.0f})"


def _needed(found: dict[str, dict[str, Share]], prefix: str) -> str:
    counts = {s: max((ms[prefix + s].count for ms in found.values() if prefix + s in ms), default=0) for s in SCOPES}
    head = ["arm", *(f"{s}, n = {counts[s]}" for s in SCOPES)]
    return table(head, ([arm, *(_long(ms.get(prefix + s)) for s in SCOPES)] for arm, ms in found.items()))


def _long(share: Share | None) -> str:
    if share is None:
        return "–"
    interval, without = f"[{share.low:.0f}–{share.high:.0f}]", f"{{{share.least:.0f}–{share.most:.0f}}}"
    return f"{share.pooled:.1f} ({share.median:.0f}) {interval} {without}"


def _late(checks: Sequence[dict[str, Any]]) -> str:
    def pair(key: str) -> str:
        held, total = sum(c[key][0] for c in checks), sum(c[key][1] for c in checks)
        return f"{held} of {total}"

    flags = [
        [key, f"{sum(bool(c[key]) for c in checks)} of {len(checks)}"] for key in ("last request", "original request")
    ]
    return table(["present", "count"], [*flags, *([key, pair(key)] for key in ("decisions in force", "open todos"))])


def _losses(rows: Sequence[dict[str, Any]]) -> str:
    head = ["best place it stood in", "tool there", "kind", "tokens"]
    counted = by_kind(rows).most_common(_LINES_OF_LOSSES)
    return table(head, [[*key, str(n)] for key, n in counted]) + f"\n\n{len(rows)} unmet tokens in all"
