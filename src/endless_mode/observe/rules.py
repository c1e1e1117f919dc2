"""The default observer: one line per tool use, made by rules from its digest.

A line is ``title — outcome``. It stands for the whole use when the session goes on without its past, so it
carries what is needed to act: whole commands and how they ended, paths with lines, names, errors, answers.
"""

from __future__ import annotations

from collections.abc import Callable

from endless_mode.model import Digest, DigestKind, Observation, ObservationType, Todo
from endless_mode.observe.wording import (
    OUTCOME,
    SHELL_TITLE,
    TITLE,
    clip,
    command_line,
    ended,
    inside,
    joined,
    one_line,
    relative,
    relatives,
    short_lines,
    written_by,
)

_NARRATIVE = 6_000
_TYPES: dict[DigestKind, ObservationType] = {
    "shell": "command",
    "read": "discovery",
    "edit": "change",
    "write": "change",
    "search": "discovery",
    "list": "discovery",
    "fetch": "discovery",
    "websearch": "discovery",
    "agent": "task",
    "todo": "task",
    "skill": "task",
    "plan": "decision",
    "question": "decision",
}
_MARKS = {"completed": "✔", "in_progress": "▶", "pending": "☐", "deleted": "✘"}


class Line:
    """The parts of a line while it is made: the title, what stands behind it, and how it collapses."""

    __slots__ = ("outcome", "run", "title")

    def __init__(self, title: str, outcome: list[str], run: str = "") -> None:
        self.title = title
        self.outcome = [part for part in outcome if part]
        self.run = run


class RulesObserver:
    """Pure and deterministic; see :class:`endless_mode.observe.base.InlineObserver`."""

    name = "rules"

    def observe(self, digest: Digest, cwd: str) -> Observation:
        line = _LINES.get(digest.kind, _other)(digest, cwd)
        subtitle = clip(one_line(line.title), SHELL_TITLE if digest.kind == "shell" else TITLE)
        if line.run:
            title = f"{line.run} {subtitle}"
        else:
            title, subtitle = subtitle, ""
        happened = digest.status in ("ok", "background", "open")
        modified = [digest.target] if digest.kind in ("edit", "write") and digest.target and happened else []
        if digest.kind == "shell" and happened:
            modified = written_by(digest.command)
        return Observation(
            type=_TYPES.get(digest.kind, "other"),
            title=title,
            subtitle=subtitle,
            narrative=_narrative(digest, line, cwd),
            facts=_facts(digest),
            concepts=short_lines((digest.symbols + digest.names)[:12], 100),
            files_read=[digest.target] if digest.kind == "read" and digest.target and digest.status == "ok" else [],
            files_modified=modified,
            run=line.run,
        )


def _narrative(digest: Digest, line: Line, cwd: str) -> str:
    outcome = "" if line.run else clip(one_line(inside("; ".join(line.outcome), cwd)), OUTCOME)
    rest = "\n…\n".join(digest.hunks) if digest.hunks else digest.excerpt
    if digest.kind == "shell" and len(digest.command) > 300:
        rest = f"$ {digest.command}\n{rest}"
    if digest.kind == "todo" and len(digest.todos) > 1:
        rest = "\n".join(f"{_MARKS.get(t.status, '☐')} {t.text}" for t in digest.todos)
    rest = rest.strip("\n")
    return clip(f"{outcome}\n{rest}" if rest else outcome, _NARRATIVE)


def _facts(digest: Digest) -> list[str]:
    facts = [f"exit {digest.exit_code}"] if digest.exit_code else []
    facts += filter(None, (ended(digest), digest.error, digest.outcome))
    return short_lines(facts, 300)


def _paths(digest: Digest, cwd: str, limit: int = 240) -> str:
    return joined(relatives(digest.paths, cwd), limit)


def _shell(digest: Digest, cwd: str) -> Line:
    command = command_line(digest.command)
    stands = ended(digest)
    if digest.status == "denied":
        return Line(f"Wanted to run `{command}`", [stands])
    if not command:
        title = f"Looked at task {digest.target}" if digest.outcome != "stopped" else f"Stopped task {digest.target}"
    elif digest.outcome == "stopped" and digest.target:
        return Line(f"Stopped `{command}`", [f"task {digest.target}"])
    elif digest.status == "background":
        title = f"Started `{command}`"
    else:
        title = f"Ran `{command}`"
    code = f"exit {digest.exit_code}" if digest.exit_code else ""
    if digest.status == "failed" and not code:
        code = "failed"
    lead = [stands, code, digest.outcome]
    failing = joined(digest.symbols, 220) if digest.check or digest.exit_code or digest.status == "failed" else ""
    if failing:
        lead.append(f"failing: {failing}")
    elif digest.symbols:
        lead.append(joined(digest.symbols, 140))
    lead.append(clip(digest.error, 240))
    if digest.check and not failing and not digest.error and digest.status == "ok":
        return Line(title, lead)
    return Line(title, lead + _brought(digest, cwd, lead))


def _brought(digest: Digest, cwd: str, lead: list[str]) -> list[str]:
    """Paths and names of an output, in the room that is left."""
    room = max(60, min(200, 330 - sum(map(len, lead))))
    said = joined(relatives(digest.paths, cwd), room) if digest.paths else ""
    room -= len(said)
    return [said, joined(digest.names, room) if digest.names and room > 30 else ""]


def _read(digest: Digest, cwd: str) -> Line:
    path = relative(digest.target, cwd)
    if digest.status != "ok":
        where = f" lines {digest.lines}" if digest.lines else ""
        return Line(f"Read `{path}`{where}", [ended(digest), _failed(digest)])
    where = f" {digest.lines}" if digest.lines and digest.outcome != "whole file" else ""
    what = (
        f"({digest.lines.partition('–')[2] or digest.lines} lines)"
        if digest.outcome == "whole file"
        else digest.outcome
    )
    names = joined(digest.symbols, 130)
    if len(names) < 60 and digest.names:
        names = "; ".join(p for p in (names, f"has {joined(digest.names, 70)}") if p)
    title = f"`{path}`{where}{' ' + what if what else ''}{': ' + names if names else ''}"
    return Line(title, [], run="Read")


def _failed(digest: Digest) -> str:
    return f"failed: {clip(digest.error, 300)}" if digest.status == "failed" else ""


def _changed(digest: Digest, cwd: str) -> Line:
    path = relative(digest.target, cwd)
    counts = f" (+{digest.added} −{digest.removed})" if digest.added or digest.removed else ""
    if digest.status == "denied":
        verb = "Wanted to write" if digest.kind == "write" else "Wanted to edit"
    elif digest.status == "failed":
        verb = "Could not write" if digest.kind == "write" else "Could not edit"
    else:
        verb = "Wrote" if digest.kind == "write" else "Edited"
    where = f":{digest.lines.replace(' ', '')}" if digest.lines else ""
    if digest.scope:
        where += f" {digest.scope}"
    names = joined(digest.symbols, 240)
    title = f"{verb} `{path}{where}`{counts}{': ' + names if names else ''}"
    fresh = f"new: {joined(digest.names, 220)}" if digest.names else ""
    said = [ended(digest), _failed(digest), digest.outcome, fresh]
    if digest.kind == "edit" and digest.status in ("ok", "open") and len(digest.symbols) + len(digest.names) < 4:
        said.append(clip(" ⏎ ".join(digest.excerpt.split("\n", 2)[:2]), 170))
    return Line(title, said)


def _search(digest: Digest, cwd: str) -> Line:
    verb = {"search": "Searched", "list": "Listed"}[digest.kind]
    scope = inside(relative(digest.scope, cwd), cwd)
    target = f"`{clip(digest.target, 300)}`" if digest.kind == "search" else f"`{relative(digest.target, cwd)}`"
    title = f"{target}{' in ' + scope if scope and scope != '.' else ''}"
    if digest.status == "ok" and not digest.paths and digest.outcome.startswith("no "):
        return Line(f"{title}: {digest.outcome}", [], run=verb)
    names = joined([*digest.symbols, *digest.names], 120)
    found = _paths(digest, cwd, 260)
    if scope and len(digest.paths) == 1 and found.startswith(f"{scope}:"):
        found = f"lines {found[len(scope) + 1 :]}"
    return Line(f"{verb} {title}", [ended(digest), _failed(digest), digest.outcome, found, names])


def _web(digest: Digest, _cwd: str) -> Line:
    title = f"Fetched {digest.target}" if digest.kind == "fetch" else f"Searched the web for “{digest.target}”"
    if digest.kind == "fetch" and digest.scope:
        title += f" ({clip(digest.scope, 160)})"
    return Line(title, [ended(digest), _failed(digest), digest.outcome, joined(digest.names, 180)])


def _agent(digest: Digest, cwd: str) -> Line:
    task, _, _ = digest.excerpt.partition("\n")
    asked = clip(task.removeprefix("Task: "), 260) if task.startswith("Task: ") else ""
    title = f"Agent {digest.scope or ''}".strip() + f" “{digest.target}”" + (f": {asked}" if asked else "")
    cost = f"({digest.lines})" if digest.lines else ""
    said = [ended(digest), _failed(digest), " ".join(p for p in (digest.outcome, cost) if p)]
    return Line(title, said + _brought(digest, cwd, said) if digest.status == "ok" else said)


def _todo(digest: Digest, _cwd: str) -> Line:
    if digest.todos_whole:
        order = {"in_progress": 0, "pending": 1, "completed": 2}
        items = sorted(digest.todos, key=lambda todo: order.get(todo.status, 3))
        return Line(f"Todos: {joined([_item(todo) for todo in items], 380, '; ')}", [digest.outcome])
    if digest.status != "ok":
        return Line(f"{digest.tool} {digest.target}".strip(), [ended(digest), _failed(digest)])
    if digest.tool == "TaskCreate":
        identity = digest.todos[0].id if digest.todos else ""
        return Line(f"#{identity} created: {digest.target}", [], run="Task")
    return Line(f"{digest.target} {digest.outcome}".strip(), [], run="Task")


def _item(todo: Todo) -> str:
    mark = _MARKS.get(todo.status, "☐")
    return f"{mark} #{todo.id} {todo.text}" if todo.id else f"{mark} {todo.text}"


def _question(digest: Digest, _cwd: str) -> Line:
    options = joined(digest.names, 200, " | ")
    answered = f"the user answered: {digest.outcome}" if digest.outcome else ""
    return Line(
        f"Asked: {clip(digest.target, 480)}{f' [{options}]' if options else ''}",
        [ended(digest), _failed(digest), answered],
    )


def _plan(digest: Digest, cwd: str) -> Line:
    if digest.tool == "EnterPlanMode":
        return Line("Entered plan mode", [ended(digest), _failed(digest)])
    return Line(
        f"Offered plan “{digest.target}”",
        [ended(digest), _failed(digest), digest.outcome, _paths(digest, cwd)],
    )


def _skill(digest: Digest, _cwd: str) -> Line:
    return Line(f"Used skill {digest.target}", [ended(digest), _failed(digest)])


def _other(digest: Digest, cwd: str) -> Line:
    name = digest.target if digest.kind == "mcp" else digest.tool
    scope = inside(digest.scope, cwd) if digest.scope else (digest.target if digest.kind != "mcp" else "")
    title = f"{name}{f' ({scope})' if scope else ''}" or "Tool"
    said = [ended(digest), _failed(digest), digest.outcome]
    return Line(title, said + _brought(digest, cwd, said) if digest.status == "ok" else said)


_LINES: dict[DigestKind, Callable[[Digest, str], Line]] = {
    "shell": _shell,
    "read": _read,
    "edit": _changed,
    "write": _changed,
    "search": _search,
    "list": _search,
    "fetch": _web,
    "websearch": _web,
    "agent": _agent,
    "todo": _todo,
    "question": _question,
    "plan": _plan,
    "skill": _skill,
    "mcp": _other,
    "other": _other,
}


#: The default observer; it has no state.
RULES = RulesObserver()
