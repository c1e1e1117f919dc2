"""`python -m bench.continuity`: what survives a compaction."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from bench.continuity import measure, report
from bench.continuity.reader import Session

ROOT = Path(__file__).resolve().parents[2]
MANY = ROOT.parent / "shared" / "transcripts"
TRANSCRIPTS = MANY if MANY.is_dir() else ROOT / "demo"  # the demo's session has one compaction


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.continuity", description=__doc__)
    parser.add_argument(
        "--transcripts",
        type=Path,
        default=TRANSCRIPTS,
        metavar="DIR",
        help="folder of .jsonl or .jsonl.gz files (default: the demo's session)",
    )
    parser.add_argument(
        "--chained", type=int, default=4, metavar="N", help="long sessions to build from them (default 4)"
    )
    parser.add_argument(
        "--arms",
        nargs="+",
        metavar="NAME",
        help="only these arms, shell patterns allowed; the client always counts",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers")
    parser.add_argument("--losses", type=Path, metavar="FILE", help="write one JSON line per unmet token")
    parser.add_argument(
        "--losses-arm",
        default="",
        metavar="NAME",
        help="whose losses (default: client + handoff, else the client)",
    )
    options = parser.parse_args(argv)
    if options.chained < 0:
        parser.error("--chained: a number from 0 on")
    for file in (options.json, options.losses):
        if file is not None and not file.parent.is_dir():
            parser.error(f"{file}: there is no such folder")
    return options


def main(argv: list[str] | None = None) -> int:
    """Run, print the tables, write the files; 2 without transcripts."""
    options = arguments(argv)
    began = time.monotonic()
    found = list(measure.sessions(options.transcripts)) if options.transcripts.is_dir() else []
    if not found:
        print(f"no transcripts in {options.transcripts}; name a folder with --transcripts", file=sys.stderr)
        return 2
    parts: tuple[tuple[str, bool, Iterable[tuple[str, Session]]], ...] = (
        ("Real sessions", False, found),
        ("Chained sessions", True, measure.chains(found, options.chained)),
    )
    results: dict[str, measure.Result] = {}
    for title, chained, sources in parts:
        total = measure.Result([], [], [])
        for repository, session in sources:
            one = measure.run(repository, session, chained=chained, wanted=options.arms, lossy=options.losses_arm)
            total.rows += one.rows
            total.lost += one.lost
            total.late += one.late
        results["chained" if chained else "real"] = total
        if total.rows or not chained:
            print(report.report(title, total))
    if options.json:
        options.json.write_text(measure.as_json(results), encoding="utf-8")
    if options.losses:
        lost = [row for result in results.values() for row in result.lost]
        options.losses.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in lost), encoding="utf-8")
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return 2 if _unknown(options, {row.arm for result in results.values() for row in result.rows}) else 0


def _unknown(options: argparse.Namespace, arms: set[str]) -> bool:
    """Say which wanted arms there are none of."""
    wished = [*(options.arms or ()), *([options.losses_arm] if options.losses_arm else ())]
    unknown = [name for name in wished if arms and not fnmatch.filter(arms, name)]
    for name in unknown:
        print(f"no arm is called {name}; there are {', '.join(sorted(arms))}", file=sys.stderr)
    return bool(unknown)


if __name__ == "__main__":
    sys.exit(main())
