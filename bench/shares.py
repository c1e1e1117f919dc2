"""What a transcript consists of: shares of lines and characters, rates, and the chain's validity.

Run as `python -m bench.shares FILE...`.
"""

import gzip
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DECODER = json.JSONDecoder()
# Rates from 241 public files, 61,009 lines. Sizes from 28 main sessions among them, 50.7 MB, which is what
# an ingest reads: all 241 files have shorter lines (many are subagents' and say little). None: no count.
TARGETS: dict[str, float | None] = {
    "toolUseResult, % of characters": 41,
    "  of which originalFile, %": 50,
    "tool_use + tool_result, % of characters": 21,
    "progress, % of lines": 31,
    "progress, % of characters": 15,
    "failed results, %": 8,
    "timestamps that step back, % of lines": 6,
    "lines with two objects, per 100k lines": 10,
    "repeated uuids, per 100k lines": 20,
    "compactions, per 1000 lines": 0.82,
    "tool calls, % of lines": 20,
    "tool calls, per MB": 61,
    "typed prompts, % of lines": 1.8,
    "non-ASCII, % of characters": 0.44,
    "mean line, characters": 3267,
    "parents not in the file": None,
    "longest line, characters": None,
}


def objects(path: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each line with the objects on it; text that does not parse gives none."""
    with path.open("rb") as raw:
        file = io.TextIOWrapper(
            gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw, "utf-8", "replace", newline="\n"
        )
        for line in file:
            found, at, text = [], 0, line.strip()
            while at < len(text):
                try:
                    value, at = DECODER.raw_decode(text, at)
                except ValueError:
                    break
                if isinstance(value, dict):
                    found.append(value)
            yield line, found


def size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def measure(*paths: Path) -> dict[str, float]:
    """The figures named in TARGETS, pooled over `paths`."""
    n: Counter[str] = Counter()
    for path in paths:
        seen: set[str] = set()
        last = ""
        for line, found in objects(path):
            n["lines"] += 1
            n["characters"] += len(line)
            n["longest"] = max(n["longest"], len(line))
            n["non-ascii"] += 0 if line.isascii() else sum(c > "\x7f" for c in line)
            n["two"] += len(found) > 1
            for entry in found:
                last = _count(n, entry, len(line), seen, last)
    lines, characters = max(n["lines"], 1), max(n["characters"], 1)
    values = (
        100 * n["tur"] / characters,
        100 * n["original"] / max(n["tur"], 1),
        100 * n["tools"] / characters,
        100 * n["progress"] / lines,
        100 * n["progress characters"] / characters,
        100 * n["failed"] / max(n["results"], 1),
        100 * n["back"] / lines,
        100_000 * n["two"] / lines,
        100_000 * n["repeated"] / lines,
        1000 * n["compactions"] / lines,
        100 * n["calls"] / lines,
        1_000_000 * n["calls"] / characters,
        100 * n["prompts"] / lines,
        100 * n["non-ascii"] / characters,
        characters / lines,
        n["orphans"],
        n["longest"],
    )
    return dict(zip(TARGETS, values, strict=True))


def _count(n: Counter[str], entry: dict[str, Any], length: int, seen: set[str], last: str) -> str:
    """Count one entry; returns the timestamp to compare the next with."""
    uuid, parent = entry.get("uuid"), entry.get("parentUuid")
    if uuid:
        n["repeated"] += uuid in seen
        seen.add(uuid)
        n["orphans"] += bool(parent) and parent not in seen
    if entry.get("type") == "progress":
        n["progress"] += 1
        n["progress characters"] += length
    n["compactions"] += entry.get("subtype") == "compact_boundary"
    record = entry.get("toolUseResult")
    if record is not None:
        n["tur"] += size(record)
        if isinstance(record, dict) and record.get("originalFile"):
            n["original"] += size(record["originalFile"])
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("tool_use", "tool_result"):
            n["tools"] += size(block)
            n["calls"] += kind == "tool_use"
            n["results"] += kind == "tool_result"
            n["failed"] += block.get("is_error") is True
    typed = isinstance(content, str) and entry.get("type") == "user" and not content.startswith(("<", "["))
    n["prompts"] += typed and not entry.get("isMeta") and not entry.get("isCompactSummary")
    stamp = str(entry.get("timestamp") or "")
    n["back"] += bool(stamp and last and stamp < last)
    return stamp or last


def report(figures: dict[str, float], style: str = "old") -> str:
    """A table of figures beside the targets (progress has none in the newer style)."""
    rows = [f"{'':44}{'here':>12}{'target':>12}"]
    for name, value in figures.items():
        target = None if style == "new" and name.startswith("progress") else TARGETS[name]
        rows.append(f"{name:44}{value:12,.2f}{'–' if target is None else format(target, 'g'):>12}")
    return "\n".join(rows)


if __name__ == "__main__":
    print(report(measure(*map(Path, sys.argv[1:]))))
