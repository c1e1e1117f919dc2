"""Shares over cuts: pooled, median, bootstrap interval, range without one repository."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

ROUNDS = 1_000
SEED = 20_240_601


@dataclass(frozen=True, slots=True)
class Share:
    """A share in percent over cuts.

    `low`–`high` is the 95 % bootstrap interval, `least`–`most` the range when one repository is left out.
    """

    pooled: float
    median: float
    low: float
    high: float
    least: float
    most: float
    count: int

    def as_dict(self) -> dict[str, float]:
        """Plain numbers, for JSON."""
        return asdict(self)


@lru_cache(maxsize=8)
def draws(size: int) -> tuple[tuple[int, ...], ...]:
    """The resamples of `size` cuts: the same for every arm, so that differences are paired."""
    source = random.Random(SEED)
    return tuple(tuple(source.randrange(size) for _ in range(size)) for _ in range(ROUNDS))


def share(pairs: Sequence[tuple[float, float]], repositories: Sequence[str]) -> Share | None:
    """Percent of sum(first) in sum(second) over cuts; None where there is nothing to count."""
    if not sum(total for _, total in pairs):
        return None
    each = [100 * part / total for part, total in pairs if total]
    resampled = sorted(v for d in draws(len(pairs)) if (v := _pooled([pairs[i] for i in d])) is not None)
    without = [
        v for name in dict.fromkeys(repositories)
        if (v := _pooled([p for p, r in zip(pairs, repositories, strict=True) if r != name])) is not None
    ]  # fmt: skip
    pooled = _pooled(pairs) or 0.0
    without = without or [pooled]
    low, high = resampled[int(0.025 * len(resampled))], resampled[int(0.975 * (len(resampled) - 1))]
    return Share(pooled, statistics.median(each), low, high, min(without), max(without), int(sum(t for _, t in pairs)))


def _pooled(pairs: Sequence[tuple[float, float]]) -> float | None:
    total = sum(t for _, t in pairs)
    return 100 * sum(p for p, _ in pairs) / total if total else None
