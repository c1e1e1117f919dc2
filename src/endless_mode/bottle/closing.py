"""Where things stand: the closing part, derived from the store, never generated.

Two pieces. The *state* (at most 6,000 UTF-16 units) also stands in every handoff, so that a model that never reads the
bottle has it: requests, decisions, todos, checks, and the lines most likely needed next. The *working set* goes on where
the state's packing stopped, in parts of growing size, most needed first; the reading plan reads as many as it can pay.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice

from msgspec import Struct

from endless_mode.bottle.escape import flatten
from endless_mode.bottle.need import ARGUMENT, BROUGHT, READ, REPORTED, SPOKEN, WRITTEN, Candidate, Packer, Weights
from endless_mode.bottle.predecessor import goes_on_from
from endless_mode.bottle.specifics import specifics
from endless_mode.bottle.standing import HUNKS_KEPT, SYMBOLS_KEPT, FileState, Seen, Standing, asks, relative, standing
from endless_mode.bottle.view import Said, SessionRow
from endless_mode.observe.wording import inside

#: UTF-16 units of the state.
STATE_UNITS = 6_000
#: Characters of the parts of the working set.
PARTS = (6_000, 10_000, 18_000, 36_000)
#: The working set's share of the conversation's characters: a short session is read whole and needs little of it.
PARTS_SHARE = 0.35

#: Messages and tool events whose tokens are offered one by one, and how many of the tokens.
SPOKEN_SEEN, BROUGHT_SEEN, NAMES_OFFERED = 120, 300, 900
#: Characters of a command, of its outcome, and of a search's line.
COMMAND_SHOWN, OUTCOME_SHOWN, SEARCH_SHOWN = 300, 60, 260
#: Characters of a row of names.
NAMES_ROW = 400
#: Files whose lines are offered, newest first.
FILES_OFFERED = 250

_REQUEST, _ORIGINAL, _WORDS, _PLAN, _DECISIONS, _TODOS, _CHECKS = 700, 300, 500, 900, 1800, 800, 600


class Closing(Struct, frozen=True):
    """The closing part in its pieces."""

    state: str
    working_set: list[str]

    @property
    def text(self) -> str:
        """The whole, as it stands in the bottle."""
        parts = [f"### Working set, part {n}\n{text}" for n, text in enumerate(self.working_set, 1)]
        return "\n\n".join([self.state, *parts])


def closing(db: sqlite3.Connection, session: SessionRow) -> Closing:
    """The closing part of a session's bottle."""
    told = standing(db, session)
    weights = weigh(told, session.cwd)
    fixed = "\n".join(part for part in (_fixed(told), goes_on_from(db, session)) if part)
    offered = candidates(told, session.cwd, weights)
    packer = Packer(weights, specifics(fixed), _freed)
    packer.offer(offered)
    taken = packer.take(max(STATE_UNITS - units(fixed) - 150, 0))
    taken += packer.take(STATE_UNITS - units(_fit(fixed, taken)) - 40, "Names")
    state = _fit(fixed, taken)
    packer.offer(hunks(told))
    parts: list[str] = []
    left = int(spoken_chars(db, session) * PARTS_SHARE)
    for size in PARTS:
        if left < PARTS[0] // 2:
            break
        taken = packer.take(min(size, left))
        left -= size
        if not taken:
            break
        parts.append(_sections(taken))
    return Closing(state, parts)


def spoken_chars(db: sqlite3.Connection, session: SessionRow) -> int:
    """About how long the conversation part is: its messages and the lines between them."""
    (said,) = db.execute(
        "SELECT coalesce(sum(length(text)), 0) FROM messages WHERE session_id = ? AND gen = ?",
        (session.id, session.gen),
    ).fetchone()
    (lines,) = db.execute(
        "SELECT coalesce(sum(length(title)), 0) FROM observations WHERE session_id = ?", (session.id,)
    ).fetchone()
    return int(said) + int(lines)


def units(text: str) -> int:
    """Length in UTF-16 code units, which is how the client counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


# What is needed next


def weigh(told: Standing, cwd: str) -> Weights:
    """How likely each specific token of the session is needed next."""
    weights = Weights()
    for seen in told.events:
        digest, age = seen.digest, seen.age
        weights.add(f"{digest.command} {relative(digest.target, cwd)} {digest.scope} {digest.task_id}", ARGUMENT, age)
        weights.add(" ".join(digest.hunks), WRITTEN, age)
        weights.add(" ".join(digest.symbols), WRITTEN, age)
        brought = f"{digest.outcome} {digest.error} {' '.join(digest.paths)} {' '.join(digest.names)}"
        weights.add(brought, REPORTED if digest.kind == "agent" else BROUGHT, age)
        weights.add(" ".join(digest.seen), READ, age)
    scale = max(1, len(told.events)) / max(1, len(told.messages))
    for n, said in enumerate(told.messages):
        weights.add(said.text, SPOKEN, int(n * scale))
    return weights


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
    digest = seen.digest
    if digest.kind == "shell" and digest.command:
        command = flatten(" ".join(inside(digest.command, cwd).split()))
        shown = _cut(command, COMMAND_SHOWN)
        outcome = inside(flatten(digest.error if digest.status == "failed" else digest.outcome), cwd)
        tail = f" — {_cut(outcome, OUTCOME_SHOWN)}" if outcome else ""
        return Candidate("Commands", f"run:{command[:120]}", f"`{shown}`{tail}", seen.age)
    if digest.kind in ("search", "list", "fetch", "websearch"):
        where = f" in {relative(digest.scope, cwd)}" if digest.scope else ""
        brought = ", ".join(relative(p, cwd) for p in digest.paths[:6])
        text = f"{digest.tool} {relative(digest.target, cwd)}{where}{': ' + brought if brought else ''}"
        return Candidate(
            "Searches", f"find:{digest.target}:{digest.scope}", _cut(flatten(text), SEARCH_SHOWN), seen.age
        )
    if digest.kind in ("agent", "mcp", "skill", "other") and digest.target:
        text = f"{digest.tool} {digest.target}{' — ' + digest.outcome if digest.outcome else ''}"
        return Candidate("Other tools", f"tool:{digest.tool}:{digest.target[:80]}", _cut(flatten(text), 220), seen.age)
    return None


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


def _freed(c: Candidate) -> Candidate:
    """A candidate whose forerunner stands in an earlier part needs it no more, but must name its file."""
    if c.section != "Files":
        return Candidate(c.section, c.key, c.text, c.order, bonus=c.bonus)
    path = c.needs.removeprefix("file:").rsplit(":", 1)[0] if c.needs.count(":") > 1 else c.needs[5:]
    return Candidate(c.section, c.key, f"{path}: {c.text}", c.order)


# The fixed lines


def _fixed(told: Standing) -> str:
    asked = [s for s in told.messages if asks(s)]
    lines: list[str] = []
    if asked:
        last = asked[0]
        state = _answered(told, last)
        lines.append(f"Last request ({_clock(last.at)}, {state}): {_quote(last.text, _REQUEST)}")
        first = asked[-1]
        if first is not last:
            lines.append(f"Original request: {_quote(first.text, _ORIGINAL)}")
    spoken = next((s for s in told.messages if s.role == "assistant" and s.kind == "text"), None)
    if spoken is not None:
        lines.append(f"Last words to the user ({_clock(spoken.at)}): {_both_ends(spoken.text, _WORDS)}")
    lines += _plan(told)
    lines += _decisions(told)
    lines += _todos(told)
    lines += _work(told)
    return "\n".join(lines)


def _answered(told: Standing, request: Said) -> str:
    """How far the last request has come: nothing said, work going on, or an answer at the end."""
    spoken = next((s.offset for s in told.messages if s.role == "assistant"), -1)
    worked = max((s.event.offset for s in told.events[:1]), default=-1)
    if max(spoken, worked) < request.offset:
        return "not answered yet"
    return "answered" if spoken >= worked else "being worked on"


def _plan(told: Standing) -> list[str]:
    plan = next((s for s in told.messages if s.kind == "plan"), None)
    if plan is None:
        return []
    steps = [line.strip() for line in plan.text.split("\n") if line.lstrip().startswith("#")]
    heads = flatten(" / ".join(s.lstrip("# ") for s in steps)) or plan.text
    return [
        f"Plan {_plan_state(told, plan)} ({_clock(plan.at)}; whole in the bottle): {_cut(_quote(heads, _PLAN), _PLAN)}"
    ]


def _plan_state(told: Standing, plan: Said) -> str:
    """What became of a plan: the user's own is in force, another one when the user approved it."""
    if plan.role == "user":
        return "in force"
    offered = next((s for s in told.events if s.digest.kind == "plan" and s.digest.target != "plan mode"), None)
    if offered is None or offered.event.offset < plan.offset:
        return "drafted, not approved yet"
    states = {"ok": "in force", "denied": "refused by the user"}
    return states.get(offered.event.status, "offered, not approved yet")


def _decisions(told: Standing) -> list[str]:
    """Answers, refusals and approvals, newest first; questions are shortened when they do not all fit."""
    for question_chars in (160, 60, 0):
        lines = [
            line for n, said in enumerate(told.messages) if (line := _decision(told.messages, n, said, question_chars))
        ]
        if sum(map(len, lines)) <= _DECISIONS:
            break
    return ["Decisions of the user, newest first:", *_within(lines, _DECISIONS)] if lines else []


def _decision(messages: list[Said], n: int, said: Said, question_chars: int) -> str:
    text = _quote(said.text, 400)
    if said.kind == "refusal":
        return f"- refused a tool use: {text}"
    if said.kind != "answer":
        return ""
    question = next((s.text for s in messages[n + 1 :] if s.kind == "question"), "")
    asked = _cut(flatten(question.split("\n", 1)[0]), question_chars) if question_chars else ""
    return f"- {asked} → {text}" if asked else f"- {text}"


def _todos(told: Standing) -> list[str]:
    still = [t for t in told.todos if t.status in ("pending", "in_progress")]
    lines = [f"- [{'in progress' if t.status == 'in_progress' else ' '}] {flatten(t.text)}" for t in still]
    done = sum(t.status == "completed" for t in told.todos)
    return [f"Todos still open ({done} done):", *_within(lines, _TODOS)] if lines else []


def _work(told: Standing) -> list[str]:
    lines = [f"- ⏳ {flatten(_brief(s))}" for s in told.pending[:5]]
    lines += [
        f"- running in the background, {flatten(s.digest.task_id)}: {_cut(flatten(_brief(s)), 120)}"
        for s in told.running[:4]
    ]
    lines += [
        f"- {_cut(flatten(_brief(s)), 160)}{_stale(told, s)} → {_cut(flatten(s.digest.outcome or s.digest.error or s.event.status), 140)}"
        for s in told.checks[:3]
    ]
    lines += [
        f"- failed: {_cut(flatten(_brief(s)), 160)} → {_cut(flatten(s.digest.error or s.digest.outcome), 140)}"
        for s in told.failing[:3]
    ]
    return ["Work in hand:", *_within(lines, _CHECKS)] if lines else []


def _stale(told: Standing, check: Seen) -> str:
    """Said of a check that ran before the newest change of a file."""
    changed = next(
        (s.age for s in told.events if s.digest.kind in ("edit", "write") and s.event.status == "ok"), check.age
    )
    return " (before the last edits)" if changed < check.age else ""


def _brief(seen: Seen) -> str:
    digest = seen.digest
    return f"`{' '.join(digest.command.split())}`" if digest.command else f"{digest.tool} {digest.target}"


def _within(lines: list[str], budget: int) -> list[str]:
    """As many lines as fit, and how many did not."""
    kept: list[str] = []
    for n, line in enumerate(lines):
        budget -= len(line) + 1
        if budget < 0:
            return [*kept, f"- … {len(lines) - n} more in the bottle"]
        kept.append(line)
    return kept


# Text


def _fit(fixed: str, taken: list[Candidate]) -> str:
    """Fixed lines and packed sections, never past the limit."""
    kept = list(taken)
    while True:
        text = "\n".join(part for part in (fixed, _sections(kept)) if part)
        if units(text) <= STATE_UNITS or not kept:
            return text if units(text) <= STATE_UNITS else text[: STATE_UNITS // 2]
        kept.pop()


_ORDER = ("Files", "Commands", "Searches", "Other tools", "Names", "Code")


def _sections(taken: Iterable[Candidate]) -> str:
    by_section: dict[str, list[Candidate]] = {}
    for candidate in taken:
        by_section.setdefault(candidate.section, []).append(candidate)
    parts: list[str] = []
    for section in _ORDER:
        members = sorted(by_section.get(section, ()), key=lambda c: c.order)
        if not members:
            continue
        if section == "Names":
            parts.append("\n".join(_rows([c.text for c in members])))
        else:
            parts.append("\n".join([f"{section}, newest first:", *_joined(members)]))
    return "\n".join(parts)


def _rows(names: list[str]) -> list[str]:
    """Names in rows of a few hundred characters, so that one can be dropped without the others."""
    rows = ["Names: "]
    for name in names:
        if len(rows[-1]) + len(name) > NAMES_ROW:
            rows.append("Names: ")
        rows[-1] += name if rows[-1].endswith(": ") else f", {name}"
    return rows


def _joined(members: list[Candidate]) -> list[str]:
    """Lines of a section; what hangs on another candidate goes behind it on its line."""
    lines: dict[str, str] = {}
    root: dict[str, str] = {}
    for c in members:
        home = root.get(c.needs, "")
        if home:
            lines[home] += (": " if c.needs == home else ", ") + c.text
            root[c.key] = home
        else:
            lines[c.key] = f"- {c.text}"
            root[c.key] = c.key
    return list(lines.values())


def _quote(text: str, limit: int) -> str:
    return _cut(" ".join(flatten(text).split()), limit)


def _both_ends(text: str, limit: int) -> str:
    flat = " ".join(flatten(text).split())
    if len(flat) <= limit:
        return flat
    return f"{flat[: limit // 3]} […] {flat[-(limit - limit // 3) :]}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def _clock(at: int | None) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M") if at is not None else "time unknown"
