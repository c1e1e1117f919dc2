"""What the closing part may say beside its fixed lines: every line that could be needed next, and how much."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

from endless_mode.bottle.escape import flatten
from endless_mode.bottle.need import (
    ARGUMENT,
    ASKED,
    BROUGHT,
    NAMES,
    READ,
    REPORTED,
    SPOKEN,
    WRITTEN,
    Candidate,
    Weights,
    fading,
    named,
)
from endless_mode.bottle.rows import NEXT_NAME
from endless_mode.bottle.short import cut
from endless_mode.bottle.specifics import parts_of, specifics
from endless_mode.bottle.standing import HUNKS_KEPT, SYMBOLS_KEPT, FileState, Seen, Standing, relative
from endless_mode.bottle.view import Told
from endless_mode.model import Digest
from endless_mode.observe.wording import inside

#: What a new line is worth beside its names: that a file was changed, a command run, anything else done. A name of the
#: newest argument weighs 0.28, so most changed files and a few commands come in whatever they name.
CHANGED, RAN, DONE = 0.3, 0.4, 0.1
#: Tool uses after which half of that is left: of a changed file, of anything else.
CHANGED_FADES, DONE_FADES = 400, 10
#: How many tokens are offered singly, and how many more by the row, of which the late parts have room for many.
NAMES_OFFERED, ROWS_OFFERED, IN_ROW = 900, 1_000, 16
#: Characters of a command, of its outcome, and of a search's line.
COMMAND_SHOWN, OUTCOME_SHOWN, SEARCH_SHOWN = 300, 60, 260
#: Files whose lines are offered, newest first.
FILES_OFFERED = 250


def weigh(told: Standing, cwd: str) -> Weights:
    """How likely each specific token of the session is needed next."""
    weights = Weights()
    for seen in told.events:
        left = fading(seen.age)
        for tokens, place in _places(seen.told, cwd):
            weights.add(tokens, place * left)
    scale = max(1, len(told.events)) / max(1, len(told.messages))
    for n, said in enumerate(told.messages):
        place = ASKED if said.role == "user" else SPOKEN
        weights.add(specifics(inside(said.text, cwd)), place * fading(int(n * scale)))
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
        told.memo[key] = [(tokens, place) for text, place in texts if (tokens := specifics(inside(text, cwd)))]
    found: list[tuple[tuple[str, ...], float]] = told.memo[key]
    return found


def candidates(told: Standing, cwd: str, weights: Weights) -> list[Candidate]:
    """Everything worth a line: files with their names, commands, searches, names spoken of."""
    found: list[Candidate] = []
    for order, state in enumerate(islice(told.files.values(), FILES_OFFERED)):
        found += _file(state, order)
    known = {stated.key for seen in told.in_hand() if (stated := _event(seen, cwd)) is not None}
    for seen in told.events:
        candidate = _event(seen, cwd)
        if candidate is not None and candidate.key not in known:
            known.add(candidate.key)
            found.append(candidate)
    found += _names(weights)
    return found


def _file(state: FileState, order: int) -> list[Candidate]:
    key = f"file:{state.path}"
    did = f" +{state.added} −{state.removed}" if state.edits else ""
    made = " new" if state.created else ""
    who = " by a subagent" if state.by_agent else ""
    bonus = CHANGED / (1 + state.age / CHANGED_FADES) if state.edits else 0.0
    base = Candidate("Files", key, f"{state.path}{made}{did}{who}", order, bonus=bonus)
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
    if not section:
        return None
    bonus = (RAN if section == "Commands" else DONE) / (1 + seen.age / DONE_FADES)
    return Candidate(section, name, text, seen.age, bonus=bonus)


def _line(digest: Digest, cwd: str) -> tuple[str, str, str]:
    """Section, key and text of what an event offers; empty for nothing."""
    if digest.status == "denied":
        return "", "", ""
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


def _names(weights: Weights) -> list[Candidate]:
    """Single tokens, for what no line holds; most needed first, and the many less needed ones by the row."""
    rates = [worth / (len(token) + 2) for token, worth in weights.of.items()]
    most = NAMES_OFFERED + ROWS_OFFERED
    least = sorted(rates)[-most] if len(rates) > most else 0.0
    kept = sorted(((rate, t) for rate, t in zip(rates, weights.of, strict=True) if rate >= least), reverse=True)
    best = [token for _, token in kept if len(token) <= 160 and token.isprintable()]
    found = [
        Candidate(NAMES, named(token), token, n, tokens=parts_of(token)) for n, token in enumerate(best[:NAMES_OFFERED])
    ]
    for n in range(NAMES_OFFERED, len(best), IN_ROW):
        text = NEXT_NAME.join(best[n : n + IN_ROW])
        found.append(Candidate(NAMES, named(text), text, n))
    return found


def hunks(told: Standing) -> list[Candidate]:
    """Code the session wrote lately, per file."""
    found: list[Candidate] = []
    for order, state in enumerate(islice(told.files.values(), FILES_OFFERED)):
        for n, hunk in enumerate(state.hunks[:HUNKS_KEPT]):
            found.append(Candidate("Code", f"hunk:{state.path}:{n}", _code(state.path, hunk), order))
    return found


@lru_cache(maxsize=1024)
def _code(path: str, hunk: str) -> str:
    lines = "\n".join("    " + flatten(line) for line in hunk.rstrip("\n").split("\n"))
    return f"{path}, as written:\n{lines}"


def freed(c: Candidate) -> Candidate:
    """A candidate whose forerunner stands in an earlier part needs it no more, but must name its file."""
    if c.section != "Files":
        return Candidate(c.section, c.key, c.text, c.order, bonus=c.bonus)
    path = c.needs.removeprefix("file:").rsplit(":", 1)[0] if c.needs.count(":") > 1 else c.needs[5:]
    return Candidate(c.section, c.key, f"{path}: {c.text}", c.order)
