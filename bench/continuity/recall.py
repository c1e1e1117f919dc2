"""What stood in the session before the boundary, as items that an arm holds or has lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bench.continuity.calls import WRITERS, arguments, target
from bench.continuity.cuts import Cut
from bench.continuity.reader import Event
from bench.continuity.specifics import Haystack, specifics

MEASURES = (
    "user sentences",
    "assistant sentences",
    "last assistant message",
    "commands",
    "commands whole",
    "failed commands",
    "error lines",
    "changed files",
    "read files",
    "answers",
    "refusals",
    "plans",
    "open todos",
    "decisions",
    "specifics",
)
COMMAND_START = 80
ERROR_LINE = 160
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LEAD = re.compile(r"^[\s>\\#*|•-]+", re.M)
_BREAKS = re.compile(r"(?:\\n|[\s⏎↵])+")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+")
_ERROR = re.compile(
    r"error|fail|panic|exception|traceback|cannot|can't|not found|denied|no such|undefined|invalid|fatal",
    re.I,
)
_NO_ERROR = re.compile(r"^(Exit code \d+|</?tool_use_error>|\s*)$")
_ANSWER = re.compile(r'"(?:[^"\\]|\\.)*"="((?:[^"\\]|\\.)+)"')
_SAID = re.compile(r"the user (?:said|provided the following reason[^:]*):\s*(.+)", re.S | re.I)
_REFUSED = "doesn't want to proceed"
#: What the client says for a person who dismissed a question: nobody's words.
_CLARIFY = "The user wants to clarify these questions."
#: Between the ways in which one item may stand.
OR = "\0"
_COMMAND = re.compile(r"<command-name>\s*/?(.*?)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.S)
_STEERING = frozenset("clear compact model exit context ide plugin mcp release-notes config cost help login".split())
_LISTED = re.compile(r"#(\d+) \[(\w+)\] ([^\n\[]+)")
_TASK = re.compile(r"Task #(\d+) created")


def flat(text: str) -> str:
    """White space as single spaces, terminal colours gone."""
    return _BREAKS.sub(" ", _ANSI.sub("", text)).strip()


def plain(text: str) -> str:
    """Like `flat`, with marks at the beginning of lines (quote, list, heading, escape) gone."""
    return flat(_LEAD.sub("", text))


def sentences(text: str) -> Iterator[str]:
    """Sentences and lines of some substance: 12 characters, or 6 in other scripts."""
    for line in text.splitlines():
        for part in _SENTENCE.split(line):
            sentence = plain(part)
            if len(sentence) >= 12 or (len(sentence) >= 6 and not sentence.isascii()):
                yield sentence


class Text:
    """An arm's text, prepared for looking items up."""

    def __init__(self, text: str) -> None:
        self._flat = flat(text)
        self._plain = plain(text)
        self._sentences = set(sentences(text))
        self.tokens = Haystack(text)

    def holds(self, item: str) -> bool:
        """Whether the item stands in the text, white space and line marks aside; of alternatives, any."""
        return any(i in self._sentences or i in self._plain or i in self._flat for i in item.split(OR))


def items(cut: Cut) -> dict[str, list[str]]:
    """Distinct items per measure, `specifics` aside (they are looked up as tokens)."""
    before = cut.before
    spoken = [e.text for e in before if e.kind == "assistant"]
    runs = [flat(str(e.input.get("command") or "")) for e in before if e.kind == "call" and e.name == "Bash"]
    failed = _failed(before)
    found: dict[str, Iterable[str]] = {
        "user sentences": (s for e in before if e.kind == "user" for s in sentences(e.text)),
        "assistant sentences": (s for text in spoken for s in sentences(text)),
        "last assistant message": sentences(spoken[-1]) if spoken else (),
        "commands": (c[:COMMAND_START].strip() for c in runs),
        "commands whole": runs,
        "failed commands": (flat(c)[:COMMAND_START].strip() for c, _ in failed),
        "error lines": (either(line, shortened(cut, line)) for _, text in failed if (line := error_line(text))),
        "changed files": (inside(cut, target(e)) for e in before if e.kind == "call" and e.name in WRITERS),
        "read files": (inside(cut, target(e)) for e in before if e.kind == "call" and e.name == "Read"),
        "answers": answers(before),
        "refusals": refusals(before),
        "plans": plans(before),
        "open todos": open_todos(before),
    }
    kept = {name: [i for i in dict.fromkeys(values) if i] for name, values in found.items()}
    kept["decisions"] = [i for name in ("answers", "refusals", "plans", "open todos") for i in kept[name]]
    return kept


def either(*ways: str) -> str:
    """One item that may stand in several ways."""
    return OR.join(dict.fromkeys(ways))


def shortened(cut: Cut, line: str) -> str:
    """A line with the session's working directories cut off its paths, which the client states to the model."""
    for root in sorted((f"{c.rstrip('/')}/" for c in cut.session.cwds if c), key=len, reverse=True):
        line = line.replace(root, "")
    return line


def inside(cut: Cut, path: str) -> str:
    """The path relative to a working directory of the session, whole where it lies elsewhere."""
    roots = sorted((f"{c.rstrip('/')}/" for c in cut.session.cwds), key=len, reverse=True)
    return next((path.removeprefix(root) for root in roots if path.startswith(root)), path)


def said_specifics(cut: Cut) -> list[str]:
    """Specific tokens of the conversation and of tool arguments (no code bodies, no results)."""
    found: dict[str, str] = {}
    for event in cut.before:
        if event.kind in ("user", "assistant"):
            found |= specifics(event.text)
        elif event.kind == "call":
            found |= specifics(arguments(event))
    return list(found)


def score(arm: Text, wanted: dict[str, list[str]], tokens: list[str]) -> dict[str, tuple[int, int]]:
    """Measure → (held, all)."""
    result = {name: (sum(arm.holds(i) for i in values), len(values)) for name, values in wanted.items()}
    result["specifics"] = (sum(t in arm.tokens for t in tokens), len(tokens))
    return result


def error_line(text: str) -> str:
    """The first line that names an error, else the first line that says anything; cut at 160 characters."""
    lines = [line for line in _ANSI.sub("", text).splitlines() if not _NO_ERROR.match(line.strip())]
    chosen = next((line for line in lines if _ERROR.search(line)), lines[0] if lines else "")
    return plain(re.sub(r"</?tool_use_error>", "", chosen))[:ERROR_LINE].strip()


def _failed(before: list[Event]) -> list[tuple[str, str]]:
    commands = {e.call_id: str(e.input.get("command") or "") for e in before if e.kind == "call" and e.name == "Bash"}
    return [
        (commands[e.call_id], e.text)
        for e in before
        if e.kind == "result" and e.error and e.call_id in commands and _REFUSED not in e.text[:200]
    ]


def answers(before: list[Event]) -> list[str]:
    """What the user chose or wrote in answer to the model's questions."""
    texts = [e.text for e in before if e.kind == "result" and e.name == "AskUserQuestion" and not e.error]
    return [flat(a.replace('\\"', '"')) for text in texts for a in _ANSWER.findall(text)]


def refusals(before: list[Event]) -> list[str]:
    """The words a person gave with a refusal."""
    found = (_SAID.search(e.text) for e in before if e.kind == "result" and _REFUSED in e.text)
    words = [match.group(1) for match in found if match]
    return [s for text in words if not text.startswith(_CLARIFY) for s in sentences(text)]


def plans(before: list[Event]) -> list[str]:
    """Sentences of the plans: proposed, handed in by the client, or in a plan file (its last version).

    A plan file gives way to the plan proposed after it was written.
    """
    latest: dict[str, str] = {}
    for n, event in enumerate(before):
        if event.kind == "plan":
            latest[f"client {n}"] = event.text
        elif event.kind == "call" and event.name == "ExitPlanMode" and event.input.get("plan"):
            latest = {name: text for name, text in latest.items() if "/" not in name}
            latest[f"proposed {n}"] = str(event.input["plan"])
        elif event.kind == "call" and event.name == "Write" and "/.claude/plans/" in target(event):
            latest[target(event)] = str(event.input.get("content") or "")
    return [s for text in latest.values() for s in sentences(text)]


def requests(cut: Cut) -> list[str]:
    """What was asked for: prompts, and slash commands with their arguments unless they only steer the client."""
    found: list[str] = []
    for event in cut.before:
        if event.kind == "user":
            found.append(event.text)
        elif event.kind == "injected" and event.text.lstrip().startswith(("<command-name>", "<command-message>")):
            name, args = _COMMAND.search(event.text), _ARGUMENTS.search(event.text)
            if name and name.group(1) not in _STEERING:
                found.append(f"/{name.group(1)} {args.group(1) if args else ''}".strip())
    return found


def in_force(cut: Cut) -> list[str]:
    """Answers and refusals of this leg and the one before, and the headings of the last plan."""
    marks = [n for n, e in enumerate(cut.before) if e.kind == "boundary"]
    recent = cut.before[marks[-2] + 1 :] if len(marks) > 1 else cut.before
    headings: list[str] = []
    for event in cut.before:
        text = str(event.input.get("plan") or "") if event.kind == "call" and event.name == "ExitPlanMode" else ""
        text = event.text if event.kind == "plan" else text
        if text:
            headings = [plain(line) for line in text.splitlines() if re.match(r"#{1,3} ", line)]
    return [i for i in dict.fromkeys([*answers(recent), *refusals(recent), *headings]) if i]


def open_todos(before: list[Event]) -> list[str]:
    """The todos still open: of the last TodoWrite, and tasks created and neither completed nor deleted."""
    todos: list[str] = []
    subjects: dict[str, str] = {}
    pending: dict[str, str] = {}
    done: set[str] = set()
    for event in before:
        if event.kind == "call" and event.name == "TodoWrite":
            given = event.input.get("todos")
            rows = [t for t in given if isinstance(t, dict)] if isinstance(given, list) else []
            todos = [flat(str(t.get("content") or "")) for t in rows if t.get("status") != "completed"]
        elif event.kind == "call" and event.name == "TaskCreate":
            pending[event.call_id] = flat(str(event.input.get("subject") or ""))
        elif event.kind == "result" and event.name == "TaskList" and (listed := _LISTED.findall(event.text)):
            subjects = {number: flat(subject) for number, _, subject in listed}
            done = {number for number, state, _ in listed if state in ("completed", "deleted")}
        elif event.kind == "result" and event.call_id in pending and (match := _TASK.search(event.text)):
            subjects[match.group(1)] = pending[event.call_id]
            done.discard(match.group(1))
        elif (
            event.kind == "call"
            and event.name == "TaskUpdate"
            and event.input.get("status") in ("completed", "deleted")
        ):
            done.add(str(event.input.get("taskId")))
    return todos + [subject for number, subject in subjects.items() if number not in done]
