"""What the closing part may say beside its fixed lines: every line that could be needed next, and how much."""

from __future__ import annotations

import heapq
from itertools import islice

from endless_mode.bottle.escape import flatten
from endless_mode.bottle.need import ARGUMENT, BROUGHT, READ, REPORTED, SPOKEN, WRITTEN, Candidate, Weights
from endless_mode.bottle.short import cut
from endless_mode.bottle.specifics import specifics
from endless_mode.bottle.standing import HUNKS_KEPT, SYMBOLS_KEPT, FileState, Seen, Standing, relative
from endless_mode.bottle.view import Told
from endless_mode.model import Digest
from endless_mode.observe.wording import inside

#: Messages and tool events whose tokens are offered one by one, and how many of the tokens.
SPOKEN_SEEN, BROUGHT_SEEN, NAMES_OFFERED = 120, 300, 900
#: Characters of a command, of its outcome, and of a search's line.
COMMAND_SHOWN, OUTCOME_SHOWN, SEARCH_SHOWN = 300, 60, 260
#: Files whose lines are offered, newest first.
FILES_OFFERED = 250


def weigh(told: Standing, cwd: str) -> Weights:
    """How likely each specific token of the session is needed next."""
    weights = Weights()
    for seen in told.events:
        for tokens, place in _places(seen.told, cwd):
            weights.add(tokens, place, seen.age)
    scale = max(1, len(told.events)) / max(1, len(told.messages))
    for n, said in enumerate(told.messages):
        weights.add(specifics(said.text), SPOKEN, int(n * scale))
    return weights


def _places(told: Told, cwd: str) -> list[tuple[tuple[str, ...], float]]:
    """The specific tokens of an event, and how much each place they stand in counts."""
    key = f"places:{cwd}"
    if key not in told.memo:
        digest = told.digest
        brought = f"{digest.outcome} {digest.error} {' '.join(digest.paths)} {' '.join(digest.names)}"
        texts = (
            (f"{digest.command} {relative(digest.target, cwd)} {digest.scope} {digest.task_id}", ARGUMENT),
            (" ".join(digest.hunks), WRITTEN),
            (" ".join(digest.symbols), WRITTEN),
            (brought, REPORTED if digest.kind == "agent" else BROUGHT),
            (" ".join(digest.seen), READ),
        )
        told.memo[key] = [(tokens, place) for text, place in texts if (tokens := specifics(text))]
    found: list[tuple[tuple[str, ...], float]] = told.memo[key]
    return found


def candidates(told: Standing, cwd: str, weights: Weights) -> list[Candidate]:
    """Everything worth a line: files with their names, commands, searches, names spoken of."""
    found: list[Candidate] = []
    for order, state in enumerate(islice(told.files.values(), FILES_OFFERED)):
        found += _file(state, order)
    known: set[str] = set()
    for seen in told.events:
        candidate = _event(seen, cwd)
        if candidate is not None and candidate.key not in known:
            known.add(candidate.key)
            found.append(candidate)
    found += _names(told, weights)
    return found


def _file(state: FileState, order: int) -> list[Candidate]:
    key = f"file:{state.path}"
    did = f" +{state.added} −{state.removed}" if state.edits else ""
    made = " new" if state.created else ""
    who = " by a subagent" if state.by_agent else ""
    base = Candidate("Files", key, f"{state.path}{made}{did}{who}", order, bonus=0.05 if state.edits else 0.0)
    names = list(state.symbols)
    more = [
        Candidate("Files", f"{key}:{n}", ", ".join(names[n : n + 6]), order, needs=key if n == 0 else f"{key}:{n - 6}")
        for n in range(0, min(len(names), SYMBOLS_KEPT), 6)
    ]
    return [base, *more]


def _event(seen: Seen, cwd: str) -> Candidate | None:
    key = f"line:{cwd}"
    memo = seen.told.memo
    if key not in memo:
        memo[key] = _line(seen.digest, cwd)
    section, name, text = memo[key]
    return Candidate(section, name, text, seen.age) if section else None


def _line(digest: Digest, cwd: str) -> tuple[str, str, str]:
    """Section, key and text of what an event offers; empty for nothing."""
    if digest.kind == "shell" and digest.command:
        command = flatten(" ".join(inside(digest.command, cwd).split()))
        shown = cut(command, COMMAND_SHOWN)
        outcome = inside(flatten(digest.error if digest.status == "failed" else digest.outcome), cwd)
        tail = f" — {cut(outcome, OUTCOME_SHOWN)}" if outcome else ""
        return "Commands", f"run:{command[:120]}", f"`{shown}`{tail}"
    if digest.kind in ("search", "list", "fetch", "websearch"):
        where = f" in {relative(digest.scope, cwd)}" if digest.scope else ""
        brought = ", ".join(relative(p, cwd) for p in digest.paths[:6])
        text = f"{digest.tool} {relative(digest.target, cwd)}{where}{': ' + brought if brought else ''}"
        return "Searches", f"find:{digest.target}:{digest.scope}", cut(flatten(text), SEARCH_SHOWN)
    if digest.kind in ("agent", "mcp", "skill", "other") and digest.target:
        text = f"{digest.tool} {digest.target}{' — ' + digest.outcome if digest.outcome else ''}"
        return "Other tools", f"tool:{digest.tool}:{digest.target[:80]}", cut(flatten(text), 220)
    return "", "", ""


def _names(told: Standing, weights: Weights) -> list[Candidate]:
    """Single tokens, for what no line holds: spoken of lately, or brought up by a result."""
    tokens: dict[str, int] = {}
    for n, said in enumerate(told.messages[:SPOKEN_SEEN]):
        for token in specifics(said.text):
            tokens.setdefault(token, n)
    for seen in told.events[:BROUGHT_SEEN]:
        for token in (*seen.digest.names, *seen.digest.paths, *seen.digest.seen):
            tokens.setdefault(token, seen.age)
    best = heapq.nlargest(NAMES_OFFERED, tokens, key=lambda t: weights.of.get(t, 0.0))
    return [
        Candidate("Names", f"name:{t}", t, tokens[t], tokens=(t,)) for t in best if len(t) <= 160 and t.isprintable()
    ]


def hunks(told: Standing) -> list[Candidate]:
    """Code the session wrote lately, per file."""
    found: list[Candidate] = []
    for order, state in enumerate(islice(told.files.values(), FILES_OFFERED)):
        for n, hunk in enumerate(state.hunks[:HUNKS_KEPT]):
            text = f"{state.path}, as written:\n{_indented(hunk)}"
            found.append(Candidate("Code", f"hunk:{state.path}:{n}", text, order))
    return found


def _indented(hunk: str) -> str:
    return "\n".join("    " + flatten(line) for line in hunk.rstrip("\n").split("\n"))


def freed(c: Candidate) -> Candidate:
    """A candidate whose forerunner stands in an earlier part needs it no more, but must name its file."""
    if c.section != "Files":
        return Candidate(c.section, c.key, c.text, c.order, bonus=c.bonus)
    path = c.needs.removeprefix("file:").rsplit(":", 1)[0] if c.needs.count(":") > 1 else c.needs[5:]
    return Candidate(c.section, c.key, f"{path}: {c.text}", c.order)
