"""How much smaller bottles are than the sessions they keep: visible tokens ÷ bottle tokens.

Run as `python -m bench.size [--transcripts DIR] [--json FILE]`. Visible is what the model saw of the
session: texts, inputs of tool calls, contents of tool results; not `toolUseResult`, progress, thinking or
sidechains. Both sides are counted with the same class-weighted estimate, good to about a quarter.
"""

import argparse
import gzip
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import product
from bench.shares import objects
from bench.tokens import estimate_tokens

ROOT = Path(__file__).resolve().parents[1]
MANY = ROOT.parent / "shared" / "transcripts"
DEFAULT = MANY if MANY.is_dir() else ROOT / "tests" / "fixtures" / "transcripts" / "public"


def visible_texts(path: Path) -> Iterator[str]:
    """What the model saw, first copy of each uuid, main line only."""
    seen: set[str] = set()
    for _, found in objects(path):
        for entry in found:
            uuid = entry.get("uuid")
            if entry.get("isSidechain") or entry.get("type") not in ("user", "assistant") or uuid in seen:
                continue
            seen.add(str(uuid))
            message = entry.get("message")
            yield from _texts(message.get("content") if isinstance(message, dict) else None)


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for block in content if isinstance(content, list) else ():
        match block:
            case {"type": "text", "text": str(text)}:
                yield text
            case {"type": "tool_use", "input": given}:
                yield json.dumps(given, ensure_ascii=False)
            case {"type": "tool_result", "content": inner}:
                yield from _texts(inner)


def bottle_text(path: Path, directory: Path) -> str:
    """The bottle of one transcript, through the same calls as everywhere."""
    plain = directory / path.name.removesuffix(".gz")
    with path.open("rb") as raw, plain.open("wb") as out:
        shutil.copyfileobj(gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw, out)
    ingested = product.Ingested(plain, directory / f"{plain.name}.db")
    ingested.ingest()
    text = ingested.text()
    ingested.close()
    return text


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.size", description="Visible tokens ÷ bottle tokens.")
    parser.add_argument("--transcripts", type=Path, default=DEFAULT)
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args(argv)
    files = sorted([*args.transcripts.glob("*.jsonl.gz"), *args.transcripts.glob("*.jsonl")])
    if not files:
        print(f"no transcripts in {args.transcripts}", file=sys.stderr)
        return 1
    lacking = product.missing()
    if lacking:
        print(f"bottles left out: {lacking}", file=sys.stderr)
    rows = []
    print(f"{'':45}{'visible':>10}{'bottle':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory(prefix="endless-bench-") as directory:
        for path in files:
            seen = sum(map(estimate_tokens, visible_texts(path)))
            kept = 0 if lacking else estimate_tokens(bottle_text(path, Path(directory)))
            rows.append({"file": path.name, "visible": seen, "bottle": kept})
            shown = f"{kept:10,}{seen / kept:8.1f}" if kept else ""
            print(f"{path.name:45}{seen:10,}{shown}")
    seen, kept = sum(row["visible"] for row in rows), sum(row["bottle"] for row in rows)
    print(f"{'pooled':45}{seen:10,}" + (f"{kept:10,}{seen / kept:8.1f}" if kept else ""))
    if kept:
        ratios = [row["visible"] / row["bottle"] for row in rows if row["bottle"]]
        print(f"{'median ratio':45}{statistics.median(ratios):28.1f}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
