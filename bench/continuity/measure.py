"""From transcripts to numbers: every arm at every cut."""

from __future__ import annotations

import fnmatch
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.continuity import chain
from bench.continuity.arms import BASE, arm_texts
from bench.continuity.cuts import SCOPES, Cut, Memory, cuts, needs
from bench.continuity.losses import losses
from bench.continuity.reader import Session, load, parse
from bench.continuity.recall import MEASURES, Text, flat, in_force, items, plain, requests, said_specifics, score
from bench.continuity.stats import Share, share
from bench.continuity.tokens import estimate

DEFAULT_LOSSES = "client + handoff"
LATE_LEG = 5
REQUEST_START = 160
REDUCTION = "unmet, less than client: "
NEED = "needed later: "
POINTS = "points more than client: "


@dataclass(slots=True)
class Row:
    """One arm at one cut: measure → (held, all), and the arm's tokens."""

    cut: str
    repository: str
    leg: int
    arm: str
    tokens: int
    scores: dict[str, tuple[float, float]]


def sessions(folder: Path) -> Iterator[tuple[str, Session]]:
    """(repository, session) of every transcript in the folder; its manifest names the repositories."""
    manifest = folder / "MANIFEST.tsv"
    origin: dict[str, str] = {}
    if manifest.exists():
        rows = (line.split("\t") for line in manifest.read_text(encoding="utf-8").splitlines()[1:])
        origin = {row[0]: row[1] for row in rows if len(row) > 1}
    else:
        print(f"no MANIFEST.tsv in {folder}: each file counts as a repository, so none are joined", file=sys.stderr)
    for path in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
        name = path.name.split(".jsonl")[0]
        try:
            data = load(path)
        except (OSError, EOFError, zlib.error) as error:
            print(f"{path.name} is left out: {error}", file=sys.stderr)
            continue
        yield origin.get(path.name, name), parse(name, data)


def chains(found: Sequence[tuple[str, Session]], count: int) -> Iterator[tuple[str, Session]]:
    """Long sessions built from those that have compactions."""
    groups: dict[str, list[Session]] = {}
    for repository, session in found:
        if chain.boundaries(session):
            groups.setdefault(repository, []).append(session)
    for n, (repository, chosen) in enumerate(chain.plan(groups, count), 1):
        yield repository, chain.join(f"chain-{n}", chosen)


@dataclass(slots=True)
class Result:
    """Rows per arm and cut, lost tokens of one arm, and checks of the handoff at late legs."""

    rows: list[Row]
    lost: list[dict[str, Any]]
    late: list[dict[str, Any]]


def run(repository: str, session: Session, *, chained: bool, wanted: Sequence[str] | None, lossy: str) -> Result:
    """Measure every cut of one session."""
    result = Result([], [], [])
    found = cuts(session, repository, chained=chained)
    memory = Memory(session) if found else None
    for cut in found:
        assert memory is not None
        needed = needs(cut, memory)
        wished, tokens = items(cut), said_specifics(cut)
        texts = arm_texts(cut, _matcher(wanted, lossy))
        chosen = lossy or (DEFAULT_LOSSES if DEFAULT_LOSSES in texts else BASE)
        for name, text in texts.items():
            arm = Text(text)
            scores: dict[str, tuple[float, float]] = {}
            if name != "everything":
                scores.update(score(arm, wished, tokens))
            for scope in SCOPES:
                met = sum(use.token in arm.tokens for use in needed[scope])
                scores[NEED + scope] = (met, len(needed[scope]))
            result.rows.append(Row(cut.name, repository, cut.leg, name, estimate(text), scores))
            if name == chosen:
                result.lost += losses(cut, memory, needed, arm.tokens, name)
            if name == "handoff" and cut.leg >= LATE_LEG:
                result.late.append(late_check(cut, arm, wished))
    return result


def late_check(cut: Cut, handoff: Text, wished: dict[str, list[str]]) -> dict[str, Any]:
    """What a handoff of a late leg must still say; requests by their first 160 characters.

    In force are the answers and the words of refusals of this leg and the one before, and the headings of the last
    plan. Older ones stand in the bottle.
    """
    asked = requests(cut)
    heads = [plain(text)[:REQUEST_START].strip() for text in asked] or [""]
    raw = [flat(text)[:REQUEST_START].strip() for text in asked] or [""]
    decisions = in_force(cut)
    return {
        "cut": cut.name,
        "leg": cut.leg,
        "last request": handoff.holds(heads[-1]) or handoff.holds(raw[-1]),
        "original request": handoff.holds(heads[0]) or handoff.holds(raw[0]),
        "decisions in force": [sum(handoff.holds(d) for d in decisions), len(decisions)],
        "open todos": [sum(handoff.holds(t) for t in wished["open todos"]), len(wished["open todos"])],
    }


def _matcher(wanted: Sequence[str] | None, lossy: str) -> Any:
    if wanted is None:
        return lambda _: True
    return lambda name: name in (BASE, lossy or DEFAULT_LOSSES) or any(fnmatch.fnmatchcase(name, w) for w in wanted)


def shares(rows: Sequence[Row]) -> dict[str, dict[str, Share]]:
    """Arm → measure → share; the reduction of unmet need counts against the client at the same cuts."""
    base = {row.cut: row for row in rows if row.arm == BASE}
    found: dict[str, dict[str, Share]] = {}
    for arm in dict.fromkeys(row.arm for row in rows):
        mine = [row for row in rows if row.arm == arm]
        repositories = [row.repository for row in mine]
        pairs = {m: [row.scores.get(m, (0, 0)) for row in mine] for m in (*MEASURES, *(NEED + s for s in SCOPES))}
        for scope in SCOPES:
            pairs[POINTS + scope] = [_gained(row, base[row.cut], NEED + scope) for row in mine]
            pairs[REDUCTION + scope] = [_saved(row, base[row.cut], NEED + scope) for row in mine]
        found[arm] = {m: s for m, p in pairs.items() if (s := share(p, repositories)) is not None}
    return found


def _gained(row: Row, base: Row, measure: str) -> tuple[float, float]:
    return row.scores[measure][0] - base.scores[measure][0], row.scores[measure][1]


def _saved(row: Row, base: Row, measure: str) -> tuple[float, float]:
    (met, total), (before, _) = row.scores[measure], base.scores[measure]
    return met - before, total - before


def as_json(results: dict[str, Result]) -> str:
    """All numbers, per part (`real`, `chained`): shares, rows, late checks."""
    return json.dumps(
        {
            part: {
                "shares": {a: {m: s.as_dict() for m, s in ms.items()} for a, ms in shares(result.rows).items()},
                "rows": [
                    {
                        "cut": r.cut,
                        "repository": r.repository,
                        "leg": r.leg,
                        "arm": r.arm,
                        "tokens": r.tokens,
                        "scores": r.scores,
                    }
                    for r in result.rows
                ],
                "late": result.late,
            }
            for part, result in results.items()
        },
        indent=1,
    )
