"""Write an invented transcript of any size, shaped like real ones.

Run as `python -m bench.synthetic OUT --mb 50 --seed 1 [--style old|new] [--long-line-mb 12] [--report]`.

Deterministic: the same arguments give the same bytes. `old` stands for clients up to 2.1.81 (with
progress lines), `new` for later ones (attachments, empty thinking, preserved segments).
"""

import argparse
import re
import sys
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from random import Random

from bench.lines import Lines, Start
from bench.texts import Texts
from bench.turns import Session

MB = 1_000_000
COMPACT_MB = 2.5  # public transcripts: 50 compactions in 61,009 lines


def generate(
    path: Path,
    mb: float,
    seed: int = 1,
    style: str = "old",
    long_line_mb: float = 0,
    compact_mb: float = COMPACT_MB,
) -> int:
    """Write about `mb` megabytes (10^6 bytes) to `path`; returns the exact size in bytes."""
    rng, texts = Random(f"session-{seed}"), Texts(seed)
    session_id = f"{rng.getrandbits(32):08x}-0000-4000-a000-{rng.getrandbits(48):012x}"
    limit, compact_at, long_at = int(mb * MB), compact_mb * MB, mb * MB * 0.4
    with path.open("wb", buffering=1 << 20) as out:
        lines = Lines(rng, style, out.write, Start(session_id), texts.root)
        session = Session(lines, texts, lambda: lines.size >= limit)
        while lines.size < limit:
            session.turn()
            if long_line_mb and lines.size >= long_at:
                session.screenshot(long_line_mb)
                long_line_mb = 0
            if lines.size >= compact_at and lines.size < limit:
                session.compact()
                compact_at = lines.size + compact_mb * MB
    return lines.size


def append(path: Path, kb: float, seed: int = 2) -> int:
    """Grow an existing transcript by about `kb` kilobytes as its client would; returns the bytes added.

    Continues session id, uuid chain, clock and style of the file, which must end with a whole line.
    """
    start, style = _last(path)
    rng, texts = Random(f"append-{seed}"), Texts(seed)
    limit = int(kb * 1000)
    with path.open("ab") as out:
        lines = Lines(rng, style, out.write, start, texts.root)
        session = Session(lines, texts, lambda: lines.size >= limit)
        while lines.size < limit:
            session.turn()
    return lines.size


def session_of(data: bytes) -> bytes:
    """The session id that most lines of a transcript bear."""
    return max(Counter(re.findall(rb'"sessionId":"([^"]+)"', data)).items(), key=lambda pair: pair[1])[0]


def leaf(path: Path) -> str:
    """The uuid of the last entry."""
    return _last(path)[0].parent or ""


def _last(path: Path) -> tuple[Start, str]:
    """Session id, leaf and clock, and the client's style, at the end of `path`."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 2 * MB))
        tail = file.read()
    session = re.findall(rb'"sessionId":"([^"]+)"', tail)[-1].decode()
    uuid, at = re.findall(rb'"uuid":"([0-9a-f-]{36})","timestamp":"([^"]+)"', tail)[-1]
    clock = int(datetime.fromisoformat(at.decode()).timestamp() * 1000)
    return Start(session, uuid.decode(), clock), "new" if b'"entrypoint":"cli"' in tail else "old"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.synthetic", description="Write an invented transcript.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=float, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--style", choices=("old", "new"), default="old")
    parser.add_argument("--long-line-mb", type=float, default=0, help="one line of this size (base64 image)")
    parser.add_argument("--compact-mb", type=float, default=COMPACT_MB, help="megabytes between compactions")
    parser.add_argument("--report", action="store_true", help="print the achieved shares beside the targets")
    args = parser.parse_args(argv)
    began = time.perf_counter()
    size = generate(args.out, args.mb, args.seed, args.style, args.long_line_mb, args.compact_mb)
    took = time.perf_counter() - began
    print(f"{args.out}: {size / MB:.1f} MB in {took:.2f} s ({size / MB / took:.0f} MB/s)", file=sys.stderr)
    if args.report:
        from bench.shares import measure, report

        print(report(measure(args.out), args.style))
    return 0


if __name__ == "__main__":
    sys.exit(main())
