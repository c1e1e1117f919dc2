"""The transcripts to test with: the fixtures always, the larger sets when they are there."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "transcripts"
SHARED = ROOT.parent / "shared"
SETS = {"recorded": SHARED / "claude-code" / "transcripts", "public": SHARED / "transcripts"}


def fixtures() -> list[Path]:
    return sorted(p for p in FIXTURES.rglob("*") if p.name.endswith((".jsonl", ".jsonl.gz")))


def everything() -> list[Path]:
    """The larger sets where they are, else the fixtures."""
    found: list[Path] = []
    for name, folder in SETS.items():
        base = folder if folder.is_dir() else FIXTURES / name
        found += sorted(p for p in base.rglob("*") if p.name.endswith((".jsonl", ".jsonl.gz")))
    return found


def label(path: Path) -> str:
    for base in (FIXTURES, *SETS.values()):
        if path.is_relative_to(base):
            return str(path.relative_to(base))
    return path.name


def table(path: Path) -> dict[str, dict[str, str]]:
    """A TSV file's rows by the name in their first column."""
    head, *rows = [line.split("\t") for line in path.read_text().splitlines()]
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}
