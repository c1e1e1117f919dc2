"""Speed of ingest and render beside `wc -l` and a plain `json.loads` loop.

Run as `python -m bench.ingest [--mb 50 1024] [--repeats N] [--json FILE]`. Every measurement is a fresh
process; the kinds are interleaved and the median is printed. The file is in the page cache for all of them.
On a machine that does other things too, the processor's time (the best of the runs) says more than the clock's.
Nothing is asserted: targets stand beside the results.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import product

MB = 1_000_000
APPEND_KB = 100
APPENDS = 7
TARGET_APPEND_MS = 20.0
TARGET_RENDER_MS_PER_MB = 20.0
Figures = dict[str, Any]


# -- inside a measured process ------------------------------------------------------------------------


def own_peak_mb() -> float:
    """Peak resident memory of this process (Linux: of this program, not of the one that forked it)."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    import resource

    return _megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _megabytes(maxrss: int) -> float:
    return maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)


def child_json(path: Path, _: Path) -> Figures:
    """The plain loop everybody writes first; a line with two objects counts as bad."""
    bad = 0
    began, busy = time.perf_counter(), time.process_time()
    with path.open("rb") as file:
        for line in file:
            try:
                json.loads(line)
            except ValueError:
                bad += 1
    return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - busy, "bad": bad}


def child_library(path: Path, database: Path) -> Figures:
    product.missing()  # imports it; whole processes are compared in the row of the command
    began, busy = time.perf_counter(), time.process_time()
    ingested = product.Ingested(path, database)
    ingested.ingest()
    middle, half = time.perf_counter(), time.process_time()
    bottle = ingested.render()
    ended, busy_until = time.perf_counter(), time.process_time()
    ingested.close()
    return {
        "seconds": ended - began,
        "cpu": busy_until - busy,
        "cpu ingest": half - busy,
        "ingest": middle - began,
        "render": ended - middle,
        "cpu render": busy_until - half,
        "bottle": bottle,
    }


def child_append(path: Path, database: Path) -> Figures:
    """Grow the file a few times; each growth is ingested in-process and timed alone, and so is the render after it."""
    from bench.synthetic import append

    ingested = product.Ingested(path, database)
    ingested.ingest()
    ingested.render()
    times, sizes, renders, spent = [], [], [], []
    for seed in range(APPENDS):
        sizes.append(append(path, APPEND_KB, seed))
        began, busy = time.perf_counter(), time.process_time()
        ingested.ingest()
        times.append(time.perf_counter() - began)
        spent.append(time.process_time() - busy)
        busy = time.process_time()
        bottle = ingested.render()
        renders.append(time.process_time() - busy)
    ingested.close()
    return {"increments": times, "spent": spent, "sizes": sizes, "renders": renders, "bottle": bottle}


CHILDREN: dict[str, Callable[[Path, Path], Figures]] = {
    "json": child_json,
    "library": child_library,
    "append": child_append,
}


# -- around it ----------------------------------------------------------------------------------------


def spawn(argv: list[str], home: Path) -> tuple[float, float, str]:
    """Run to the end: wall seconds, peak MB as the kernel reports it, stdout. Raises if it fails."""
    env = os.environ | {"CLAUDE_MEM_DATA_DIR": str(home), "HOME": str(home)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        process = subprocess.Popen(argv, stdout=out, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{argv[0]} ended with {process.returncode}")
        out.seek(0)
        return took, _megabytes(usage.ru_maxrss), out.read().decode()


def measured(kind: str, path: Path, database: Path) -> Figures:
    """One child of CHILDREN in a fresh interpreter."""
    argv = [sys.executable, "-m", "bench.ingest", "--child", kind, str(path), str(database)]
    wall, _, out = spawn(argv, path.parent)
    figures: Figures = json.loads(out)
    return figures | {"wall": wall}


def run_wc(path: Path, _: Path) -> Figures:
    wall, peak, out = spawn(["wc", "-l", str(path)], path.parent)
    return {"wall": wall, "seconds": wall, "peak": peak, "lines": int(out.split()[0])}


def run_json(path: Path, scratch: Path) -> Figures:
    return measured("json", path, scratch)


def run_command(path: Path, scratch: Path) -> Figures:
    out = scratch.with_suffix(".md")
    wall, peak, _ = spawn(product.bottle_command(path, out), path.parent)
    return {"wall": wall, "seconds": wall, "peak": peak, "bottle": out.stat().st_size}


def run_library(path: Path, scratch: Path) -> Figures:
    for old in scratch.parent.glob(scratch.name + "*"):
        old.unlink()
    return measured("library", path, scratch)


def kinds() -> dict[str, Callable[[Path, Path], Figures]]:
    """What can be run here, in the order of one round."""
    found: dict[str, Callable[[Path, Path], Figures]] = {"wc -l": run_wc, "json.loads": run_json}
    if product.missing():
        print(f"product left out: {product.missing()}", file=sys.stderr)
        return found
    if product.command():
        found["endless bottle"] = run_command
    else:
        print("command left out: no `endless` beside this interpreter", file=sys.stderr)
    found["library"] = run_library
    return found


def compare(mb: float, repeats: int, seed: int, style: str, directory: Path) -> Figures:
    """All kinds over one file of `mb` megabytes, then the increments."""
    path, scratch = directory / "session.jsonl", directory / "bench.db"
    generator = [sys.executable, "-m", "bench.synthetic", str(path), "--mb", str(mb), "--seed", str(seed)]
    # A large file has one very long line, as a pasted screenshot makes it.
    spawn([*generator, "--style", style, *(["--long-line-mb", "12"] if mb >= 500 else [])], directory)
    size = path.stat().st_size
    chosen = kinds()
    runs: dict[str, list[Figures]] = {name: [] for name in chosen}
    for _ in range(repeats):
        for name, run in chosen.items():
            runs[name].append(run(path, scratch))
    after = measured("append", path, scratch) if "library" in chosen else {}
    return {"mb": size / MB, "repeats": repeats, "style": style, "runs": runs, "after": after}


def middle(runs: list[Figures], key: str) -> float:
    return float(statistics.median(run[key] for run in runs))


def least(runs: list[Figures], key: str) -> float:
    return float(min(run[key] for run in runs))


def table(result: Figures) -> str:
    """The comparison as text. A ratio above 1 is slower than the thing compared with."""
    mb, runs, after = result["mb"], result["runs"], result["after"]
    bad = runs["json.loads"][0]["bad"]
    lines = runs["wc -l"][0]["lines"]
    out = [f"{mb:.0f} MB, {lines:,} lines, median of {result['repeats']}, style {result['style']}"]
    out.append(f"{'':22}{'seconds':>9}{'MB/s':>8}{'× json.loads':>14}{'by CPU':>8}{'× wc -l':>10}{'peak MB':>9}")
    rows = [(name, each, "seconds") for name, each in runs.items()]
    if "library" in runs:
        rows.append(("  of it ingest", runs["library"], "ingest"))
    for name, each, key in rows:
        cpu = "cpu ingest" if key == "ingest" else "cpu"
        # The command is a whole process and is compared with whole processes.
        of = "wall" if name == "endless bottle" else "seconds"
        took = middle(each, key)
        against_json, against_wc = took / middle(runs["json.loads"], of), took / middle(runs["wc -l"], of)
        peak = f"{middle(each, 'peak'):9.0f}" if key == "seconds" else ""
        by_cpu = f"{least(each, cpu) / least(runs['json.loads'], 'cpu'):8.2f}" if cpu in each[0] else f"{'–':>8}"
        out.append(f"{name:22}{took:9.3f}{mb / took:8.0f}{against_json:14.2f}{by_cpu}{against_wc:10.1f}{peak}")
    out.append(f"json.loads could not read {bad} lines (two objects on a line)")
    if after:
        bottle = after["bottle"] / MB
        best, worst = 1000 * statistics.median(after["increments"]), 1000 * max(after["increments"])
        grown = statistics.median(after["sizes"]) / 1000
        again = 1000 * statistics.median(after["renders"]) / bottle
        first = 1000 * least(runs["library"], "cpu render") / (runs["library"][0]["bottle"] / MB)
        out.append(
            f"increment of {grown:.0f} kB: {best:.1f} ms median, {worst:.1f} ms worst of {APPENDS},"
            f" {1000 * statistics.median(after['spent']):.1f} ms of the processor"
            f"   (target {TARGET_APPEND_MS:g} ms)"
        )
        out.append(
            f"render: {again:.1f} ms of the processor per MB of bottle after the file grew, {first:.1f} the first time,"
            f" bottle {bottle:.2f} MB   (target {TARGET_RENDER_MS_PER_MB:g} ms/MB)"
        )
    return "\n".join(out)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.ingest", description="Speed of ingest and render.")
    parser.add_argument("--mb", type=float, nargs="+", default=[50, 1024])
    parser.add_argument("--repeats", type=int, default=0, help="default 5, from 500 MB on 2")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--style", choices=("old", "new"), default="old")
    parser.add_argument("--dir", type=Path, help="where the files go (default: the system's)")
    parser.add_argument("--json", type=Path, help="write all single results here")
    parser.add_argument("--child", nargs=3, metavar=("KIND", "FILE", "DB"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child:
        kind, path, database = args.child
        figures = CHILDREN[kind](Path(path), Path(database))
        print(json.dumps(figures | {"peak": own_peak_mb()}))
        return 0
    results = []
    for mb in args.mb:
        with tempfile.TemporaryDirectory(prefix="endless-bench-", dir=args.dir) as directory:
            repeats = args.repeats or (2 if mb >= 500 else 5)
            results.append(compare(mb, repeats, args.seed, args.style, Path(directory)))
        print(table(results[-1]), end="\n\n", flush=True)
    machine = {"python": platform.python_version(), "system": platform.platform(), "cpus": os.cpu_count()}
    print(f"Python {machine['python']}, {machine['system']}, {machine['cpus']} CPUs")
    if args.json:
        args.json.write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
