"""``python -m tests.chaos --runs N --seed S [--seconds T]``: random schedules against the product, with a report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.chaos", description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--whole", action="store_true", help="do not cut failing schedules down")
    given = parser.parse_args()

    from tests.chaos.runs import run_many

    tally = run_many(given.runs, given.seed, seconds=given.seconds, short=not given.whole)
    print("\n".join(tally.lines()))
    return 1 if tally.failed or tally.bad_exits else 0


if __name__ == "__main__":
    sys.exit(main())
