"""Tool uses of Claude Code: what a result says about how the use ended, and what in it is conversation."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from endless_mode.clients.claude_code import wording
from endless_mode.model import Status, ToolEvent
from endless_mode.privacy import clean, clean_value, is_clean

_OWN_COMMAND = re.compile(
    r"\s*(?:\S*/)?endless\s+(?:show|search|bottle|handoff|status|resume|sessions)\b[^\n;&|<>`$]*\s*\Z"
)
_OWN_FILE = re.compile(r"/endless/bottles/(?:archive/)?[A-Za-z0-9._-]+\.md\Z")


def is_own(event: ToolEvent) -> bool:
    """Whether a tool use is our own traffic: reading a bottle, ``endless`` commands, our MCP tools."""
    if event.name == "Read":
        path = event.input.get("file_path")
        return isinstance(path, str) and _OWN_FILE.search(path) is not None
    if event.name == "Bash":
        command = event.input.get("command")
        return isinstance(command, str) and _OWN_COMMAND.match(command) is not None
    return event.name.startswith(("mcp__endless", "mcp__plugin_endless"))


def result_text(content: Any) -> str:
    """What the model saw of a tool result: its text, with marks for images."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts: list[str] = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict):
            if isinstance(text := block.get("text"), str):
                parts.append(text)
            elif block.get("type") == "image":
                parts.append("[image]")
            elif isinstance(name := block.get("tool_name"), str):
                parts.append(name)
    return "\n".join(parts)


def outcome_of(event: ToolEvent, is_error: bool) -> tuple[Status, str]:
    """How a use ended, and the user's words when it was refused with some."""
    text = event.result
    words = wording.refusal(text)
    if words is not None:
        return "denied", words
    detail = event.detail
    if text.lstrip().startswith((wording.INTERRUPTED, wording.CUT_OFF)) or getattr(detail, "interrupted", None) is True:
        return "interrupted", ""
    if is_error:
        return "failed", ""
    launched = getattr(detail, "status", None) == "async_launched" or getattr(detail, "is_async", None) is True
    if launched or getattr(detail, "background_task_id", None):
        return "background", ""
    return "ok", ""


def plan_of(event: ToolEvent) -> str:
    """The plan that ExitPlanMode offers for approval."""
    plan = event.input.get("plan")
    return plan if isinstance(plan, str) else ""


def question_of(event: ToolEvent) -> str:
    """The questions of an AskUserQuestion call with their options, as text."""
    parts: list[str] = []
    for asked in _questions(event):
        options = asked.get("options")
        lines = [_string(asked.get("question"))]
        for option in options if isinstance(options, list) else ():
            if isinstance(option, dict):
                label, description = _string(option.get("label")), _string(option.get("description"))
                lines.append(f"- {label}: {description}" if description else f"- {label}")
        parts.append("\n".join(line for line in lines if line))
    return "\n\n".join(parts)


def answers_of(event: ToolEvent) -> str:
    """The user's answers: alone when one question was asked, else each behind its question's header."""
    answers = getattr(event.detail, "answers", None)
    if not isinstance(answers, dict):
        return ""
    notes = getattr(event.detail, "annotations", None)
    headers = {_string(q.get("question")): _string(q.get("header")) for q in _questions(event)}
    lines: list[str] = []
    for question, answer in answers.items():
        text = ", ".join(_string(a) for a in answer) if isinstance(answer, list) else _string(answer)
        note = notes.get(question) if isinstance(notes, dict) else None
        remark = _string(note.get("notes")) if isinstance(note, dict) else ""
        if remark and remark not in text:
            text = f"{text} ({remark})"
        head = headers.get(question) or question
        lines.append(text if len(answers) == 1 else f"{head}: {text}")
    return "\n".join(line for line in lines if line)


def approved_plan(event: ToolEvent) -> str:
    """The plan as the result of ExitPlanMode states it (newer clients keep it in a file, the call has none)."""
    plan = getattr(event.detail, "plan", None)
    if isinstance(plan, str) and plan.strip():
        return plan
    return event.result.partition("## Approved Plan:\n")[2]


def clean_event(event: ToolEvent) -> ToolEvent:
    """The event with everything in it cleaned; the same object when nothing had to change."""
    return clean_result(clean_call(event))


def clean_call(event: ToolEvent) -> ToolEvent:
    """The event with its input and its name cleaned."""
    if is_clean(event.input, event.cwd, event.name):
        return event
    cleaned, name = clean_value(event.input), clean(event.name)
    return msgspec.structs.replace(
        event, input=cleaned if isinstance(cleaned, dict) else {}, cwd=clean(event.cwd), name=name
    )


def clean_result(event: ToolEvent) -> ToolEvent:
    """The event with its result cleaned."""
    result = clean(event.result)
    if result is not event.result:
        # Most results that are not clean hold a reminder of the client's, and nothing else about them is not.
        event = msgspec.structs.replace(event, result=result, words=clean(event.words))
        if is_clean(event.detail):
            return event
    elif is_clean(event.detail, event.words):
        return event
    return msgspec.structs.replace(event, words=clean(event.words), detail=_clean_detail(event.detail))


def _clean_detail(detail: Any) -> Any:
    if isinstance(detail, msgspec.Struct):
        cleaned = type(detail)(**{f: _clean_detail(getattr(detail, f)) for f in detail.__struct_fields__})
        if isinstance(patch := getattr(detail, "structured_patch", None), list):
            cleaned.structured_patch = [_clean_hunk(hunk) for hunk in patch]  # type: ignore[attr-defined]
        return cleaned
    return clean_value(detail)


def _clean_hunk(hunk: Any) -> Any:
    """A patch's lines are one text cut up: a private stretch may begin in one of them and end in another."""
    cleaned = clean_value(hunk)
    if isinstance(hunk, dict) and isinstance(lines := hunk.get("lines"), list):
        cleaned["lines"] = clean("\n".join(line for line in lines if isinstance(line, str))).split("\n")
    return cleaned


def _questions(event: ToolEvent) -> list[dict[str, Any]]:
    asked = event.input.get("questions")
    return [q for q in asked if isinstance(q, dict)] if isinstance(asked, list) else []


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
