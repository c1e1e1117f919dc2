"""Tools that speak with the user: questions, plans, and what was refused."""

from __future__ import annotations

import re

from endless_mode.clients.claude_code.digest.texts import (
    argument,
    clip,
    detail_of,
    entries,
    first_line,
    flat,
    mapping,
    result_of,
    text,
)
from endless_mode.model import Digest, ToolEvent
from endless_mode.privacy import clean

_ANSWER = re.compile(r'"([^"\n]{1,600})"="([^"]{0,1200})"')
_HEADING = re.compile(r"^#+ *(.{1,200})", re.MULTILINE)


def question(event: ToolEvent) -> Digest:
    """AskUserQuestion: what was asked with its options, and the answers."""
    asked = [mapping(q) for q in entries(mapping(event.input).get("questions"))[:6]]
    questions = [flat(text(q.get("question")), 400) for q in asked]
    digest = Digest("question", "", target=clip(" / ".join(q for q in questions if q), 900))
    digest.names = [flat(text(mapping(o).get("label")), 80) for q in asked for o in entries(q.get("options"))[:6]][:16]
    answers = [(text(k), text(v)) for k, v in list(mapping(detail_of(event).answers).items())[:8]]
    if not answers:
        answers = [(m[1], m[2]) for m in _ANSWER.finditer(result_of(event)[:8_000])][:8]
    headers = {text(q.get("question")): text(q.get("header")) for q in asked}
    # What is put together here can read as something that none of its parts is.
    digest.words = clean("\n".join(flat(a, 600) for _, a in answers if a))
    many = len(answers) > 1
    said = [f"{flat(headers.get(q) or q, 60)}: {flat(a, 240)}" if many else flat(a, 380) for q, a in answers if a]
    digest.outcome = clip(clean("; ".join(said)), 400)
    return digest


def exit_plan(event: ToolEvent) -> Digest:
    """ExitPlanMode: the plan was approved, or refused with words."""
    detail = detail_of(event)
    plan = argument(event, "plan") or text(detail.plan)
    heading = _HEADING.search(plan[:2_000])
    digest = Digest("plan", "", target=flat(heading[1] if heading else first_line(plan), 200))
    digest.outcome = "approved by the user" if event.status == "ok" else ""
    path = text(detail.file_path)
    digest.paths = [clip(path, 400)] if path else []
    digest.excerpt = clip(plan, 3_000)
    return digest


def enter_plan(event: ToolEvent) -> Digest:
    return Digest("plan", "", target="plan mode", outcome="entered" if event.status == "ok" else "")
