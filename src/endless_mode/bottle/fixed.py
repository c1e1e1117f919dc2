"""The lines every closing part has: what was asked for, said and decided, and what is being worked on."""

from __future__ import annotations

from endless_mode.bottle.escape import flatten
from endless_mode.bottle.short import both_ends, clock, cut, quote
from endless_mode.bottle.standing import IN_HAND, Seen, Standing, asks
from endless_mode.bottle.view import Said

_REQUEST, _ORIGINAL, _WORDS, _PLAN, _DECISIONS, _TODOS, _CHECKS = 700, 300, 500, 900, 1800, 800, 600


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
        f"Plan {_plan_state(told, plan)} ({clock(plan.at)}; whole in the bottle): {cut(quote(heads, _PLAN), _PLAN)}"
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
    if said.kind == "refusal":
        return f"- refused: {quote(said.text, 400)}"
    if said.kind != "answer":
        return ""
    text = quote(said.text, 400)
    question = next((s.text for s in messages[n + 1 :] if s.kind == "question"), "")
    asked = cut(flatten(question.split("\n", 1)[0]), question_chars) if question_chars else ""
    return f"- {asked} → {text}" if asked else f"- {text}"


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
        f"- {cut(flatten(_brief(s)), 160)}{_stale(told, s)} → {cut(flatten(s.digest.outcome or s.digest.error or s.event.status), 140)}"
        for s in told.checks[:IN_HAND]
    ]
    lines += [
        f"- failed: {cut(flatten(_brief(s)), 160)}{_stale(told, s)} → {cut(flatten(s.digest.error or s.digest.outcome), 140)}"
        for s in told.failing[:IN_HAND]
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
