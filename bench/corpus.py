"""A client's directory full of past sessions: invented transcripts and copies of real ones, in sizes as they come.

``python -m bench.corpus OUT --sessions 1000 --mb 2000 [--real DIR] [--seed 1]``. Sizes are log-normal (many small, a few of tens of
megabytes) and scaled to the whole. With ``--real`` a third of the sessions are copies of the transcripts there (``*.jsonl``,
``*.jsonl.gz``, files of their subagents beside them), each under a new session id, as a fork of them would be.
Deterministic: the same arguments give the same files, times of change among them.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import time
from itertools import cycle
from pathlib import Path
from random import Random

from bench import synthetic

#: Of the log of the sizes; with it the largest of a thousand has some 40 times the mean.
SPREAD = 1.5
SMALLEST_MB, LARGEST_MB = 0.02, 80.0
REAL_SHARE = 1 / 3
PROJECTS = 12
#: The newest transcript's time of change; the others lie within the 29 days before it.
NEWEST = 1_796_000_000


def make(out: Path, sessions: int, mb: float, real: Path | None = None, seed: int = 1) -> int:
    """Fill ``out/projects`` with that many sessions of about so many megabytes in all; return the bytes."""
    rng = Random(f"corpus-{seed}")
    sources = _sources(real)
    copies = int(sessions * REAL_SHARE) if sources else 0
    total = n = 0
    for n, source in zip(range(copies), cycle(sources), strict=False):
        total += _copy(source, _place(out, rng, n), rng)
    left = max(mb - total / 1e6, (sessions - copies) * SMALLEST_MB)
    sizes = [rng.lognormvariate(0, SPREAD) for _ in range(sessions - copies)]
    scale = left / sum(sizes)
    for n, size in enumerate(sizes, copies):
        path = _place(out, rng, n)
        whole = min(max(size * scale, SMALLEST_MB), LARGEST_MB)
        total += synthetic.generate(path, whole, seed=seed * 100_000 + n, style=rng.choice(("old", "new")))
        _aged(path, rng)
    return total


def _place(out: Path, rng: Random, n: int) -> Path:
    path = out / "projects" / f"-home-dev-p{rng.randrange(PROJECTS)}" / f"{n:08x}-0000-4000-8000-{n:012x}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _sources(real: Path | None) -> list[Path]:
    if real is None or not real.is_dir():
        return []
    return sorted(path for path in real.iterdir() if path.name.endswith((".jsonl", ".jsonl.gz")))


def _copy(source: Path, path: Path, rng: Random) -> int:
    """A transcript and the files of its subagents under the session id that the file's name is."""
    name = source.name.removesuffix(".gz").removesuffix(".jsonl")
    data = _data(source)
    old = synthetic.session_of(data)
    written = _write(path, data, old)
    for beside in sorted((source.parent / name).glob("subagents/agent-*.jsonl*")):
        place = path.with_suffix("") / "subagents" / beside.name.removesuffix(".gz")
        place.parent.mkdir(parents=True, exist_ok=True)
        written += _write(place, _data(beside), old)
        _aged(place, rng)
    _aged(path, rng)
    return written


def _write(path: Path, data: bytes, old: bytes) -> int:
    new = path.stem if not path.name.startswith("agent-") else path.parents[1].name
    return path.write_bytes(data.replace(b'"sessionId":"' + old + b'"', b'"sessionId":"' + new.encode() + b'"'))


def _data(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()


def _aged(path: Path, rng: Random) -> None:
    at = NEWEST - rng.uniform(0, 29 * 86_400)
    os.utime(path, (at, at))


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.corpus", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--mb", type=float, default=2000)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.perf_counter()
    size = make(given.out, given.sessions, given.mb, given.real, given.seed)
    print(
        f"{given.out}: {given.sessions} sessions, {size / 1e6:.0f} MB, {time.perf_counter() - began:.0f} s",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
