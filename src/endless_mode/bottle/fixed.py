"""The lines every closing part has: what was asked for, said and decided, and what is being worked on."""

from __future__ import annotations

from itertools import islice

from endless_mode.bottle.escape import flatten
from endless_mode.bottle.short import both_ends, clock, cut, fitting, quote, units
from endless_mode.bottle.standing import IN_HAND, Seen, Standing, asks
from endless_mode.bottle.view import Said

#: User messages that tell how far a request has come.
_ENDS = ("interrupt", "answer", "approval", "refusal")
_REQUEST, _ORIGINAL, _WORDS, _PLAN, _DECISIONS, _TODOS, _CHECKS = 700, 300, 500, 900, 1800, 800, 600

#: So many decisions are looked at; more never fit.
_DECIDED = 300


def fixed_lines(told: Standing) -> str:
    """Requests, last words, plan, decisions, todos and work in hand."""
    asked = [s for s in told.messages if asks(s)]
    lines: list[str] = []
    if asked:
        last = asked[0]
        state = _answered(told, last)
        lines.append(f"Last request ({clock(last.at)}, {state}): {quote(last.text, _REQUEST)}")
        first = asked[-1]
        if first is not last:
            lines.append(f"Original request: {quote(first.text, _ORIGINAL)}")
    spoken = next((s for s in told.messages if s.role == "assistant" and s.kind == "text"), None)
    if spoken is not None:
        lines.append(f"Last words to the user ({clock(spoken.at)}): {both_ends(spoken.text, _WORDS)}")
    lines += _plan(told)
    lines += _decisions(told)
    lines += _todos(told)
    lines += _work(told)
    return "\n".join(lines)


def _answered(told: Standing, request: Said) -> str:
    """How far the last request has come: nothing said, work going on, broken off, a question back, or an answer."""
    newest = next((s for s in told.messages if s.role == "assistant" or s.kind in _ENDS), request)
    worked = max((s.event.offset for s in told.events[:1]), default=-1)
    if max(newest.offset, worked) <= request.offset:
        return "not answered yet"
    if newest.kind == "interrupt" and newest.offset >= worked:
        return "interrupted by the user"
    if newest.kind in ("question", "plan") and any(s.digest.kind == newest.kind for s in told.pending):
        return "waits for the user's answer"
    return "answered" if newest.kind == "text" and newest.offset >= worked else "being worked on"


def _plan(told: Standing) -> list[str]:
    plan = next((s for s in told.messages if s.kind == "plan"), None)
    if plan is None:
        return []
    steps = [line.strip() for line in plan.text.split("\n") if line.lstrip().startswith("#")]
    heads = flatten(" / ".join(s.lstrip("# ") for s in steps)) or plan.text
    later = sum(asks(s) for s in told.messages if s.offset > plan.offset)
    since = f", {later} request{'s' if later > 1 else ''} since" if later else ""
    return [
        f"Plan {_plan_state(told, plan)}{since} ({clock(plan.at)}; whole in the bottle): {cut(quote(heads, _PLAN), _PLAN)}"
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
    decided = [pair for pair in _with_questions(told) if pair[0].kind in ("answer", "refusal")]
    for question_chars in (160, 60, 0):
        lines = [_decision(told, said, question, question_chars) for said, question in islice(decided, _DECIDED)]
        if sum(map(units, lines)) <= _DECISIONS:
            break
    left_out = max(0, len(decided) - _DECIDED)
    return ["Decisions of the user, newest first:", *_within(lines, _DECISIONS, left_out)] if lines else []


def _with_questions(told: Standing) -> list[tuple[Said, str]]:
    """The messages, newest first, each with the question that was asked last before it."""
    found: list[tuple[Said, str]] = []
    question = ""
    for said in reversed(told.messages):
        found.append((said, question))
        if said.kind == "question":
            question = said.text
    return found[::-1]


def _decision(told: Standing, said: Said, question: str, question_chars: int) -> str:
    text = quote(said.text, 400)
    if said.kind == "refusal":
        return f"- refused {_refused(told, said)}: {text}"
    asked = cut(flatten(question.split("\n", 1)[0]), question_chars) if question_chars else ""
    return f"- {asked} → {text}" if asked else f"- {text}"


def _refused(told: Standing, said: Said) -> str:
    """What it was that the user refused: the newest refused use before their words."""
    denied = (s for s in told.events if s.event.status == "denied" and s.event.offset < said.offset)
    found = next(denied, None)
    return "a tool use" if found is None else cut(flatten(_brief(found)), 100)


def _todos(told: Standing) -> list[str]:
    still = [t for t in told.todos if t.status in ("pending", "in_progress")]
    lines = [f"- [{'in progress' if t.status == 'in_progress' else ' '}] {flatten(t.text)}" for t in still]
    done = sum(t.status == "completed" for t in told.todos)
    return [f"Todos still open ({done} done):", *_within(lines, _TODOS)] if lines else []


def _work(told: Standing) -> list[str]:
    lines = [f"- ⏳ {flatten(_brief(s))}" for s in told.pending[:5]]
    lines += [
        f"- running in the background, {flatten(s.digest.task_id)}: {cut(flatten(_brief(s)), 120)}"
        for s in told.running[:4]
    ]
    lines += [
        f"- {cut(flatten(_brief(s)), 160)}{_stale(told, s)} → {cut(_ended(s), 140)}" for s in told.checks[:IN_HAND]
    ]
    lines += [
        f"- failed: {cut(flatten(_brief(s)), 160)}{_stale(told, s)} → {cut(flatten(s.digest.error or s.digest.outcome), 140)}"
        for s in told.failing[:IN_HAND]
    ]
    return ["Work in hand:", *_within(lines, _CHECKS)] if lines else []


def _ended(check: Seen) -> str:
    """How a check ended: what failed first, when anything did."""
    digest = check.digest
    failing = f"failing: {', '.join(digest.symbols[:3])}" if digest.symbols else ""
    parts = (digest.error or failing, digest.outcome)
    return flatten("; ".join(filter(None, parts)) or check.event.status)


def _stale(told: Standing, check: Seen) -> str:
    """Said of a check that ran before the newest change of a file."""
    changed = next(
        (s.age for s in told.events if s.digest.kind in ("edit", "write") and s.event.status == "ok"), check.age
    )
    return " (before the last edits)" if changed < check.age else ""


def _brief(seen: Seen) -> str:
    digest = seen.digest
    return f"`{' '.join(digest.command.split())}`" if digest.command else f"{digest.tool} {digest.target}"


def _within(lines: list[str], budget: int, left_out: int = 0) -> list[str]:
    """As many lines as fit (UTF-16 units), and how many did not, with those left out before."""
    kept = fitting(lines, budget)
    more = len(lines) - len(kept) + left_out
    return [*kept, f"- … {more} more in the bottle"] if more else kept
