"""A transcript cut at its compactions: what stood before, what the client said, what came after."""

from __future__ import annotations

from dataclasses import dataclass

from bench.continuity.calls import arguments, bodies
from bench.continuity.reader import Event, Session
from bench.continuity.specifics import mentions, specifics


@dataclass(slots=True)
class Cut:
    """One compaction. `before` and `after` are events; `end` is the byte offset of the boundary's line."""

    session: Session
    repository: str
    leg: int
    before: list[Event]
    summary: str
    after: list[Event]
    preserved: list[Event]
    end: int
    context_tokens: int
    chained: bool = False

    @property
    def name(self) -> str:
        """`session#leg`, leg 1 ends at the first boundary."""
        return f"{self.session.name}#{self.leg}"

    @property
    def prefix(self) -> bytes:
        """The file as PreCompact finds it."""
        return self.session.data[: self.end]


def visible(event: Event) -> str:
    """The text of an event as the model saw it."""
    return f"{arguments(event)}\n{bodies(event)}" if event.kind == "call" else event.text


def cuts(session: Session, repository: str, *, chained: bool = False) -> list[Cut]:
    """Every compaction of the session that has a summary, in order."""
    events = session.events
    marks = [i for i, e in enumerate(events) if e.kind == "boundary"]
    found: list[Cut] = []
    for leg, at in enumerate(marks, 1):
        stop = marks[leg] if leg < len(marks) else len(events)
        later = events[at + 1 : stop]
        summary = next((e.text for e in later if e.kind == "summary"), "")
        if not summary:
            continue
        kept = set(events[at].preserved)
        before = events[:at]
        tokens = next((t for o, t in reversed(session.usage) if o < events[at].offset), 0)
        found.append(
            Cut(
                session,
                repository,
                leg,
                before,
                summary,
                [e for e in later if e.kind != "summary"],
                [e for e in before if e.uuid and e.uuid in kept],
                events[at].offset,
                tokens,
                chained,
            )
        )
    return found


class Memory:
    """When a token first stood in a session: one pass serves all cuts of the session.

    Paths are taken relative to the session's working directories, which the client states to the model.
    """

    def __init__(self, session: Session) -> None:
        self._roots = sorted((f"{c.rstrip('/')}/" for c in session.cwds), key=len, reverse=True)
        self._first: dict[str, int] = {}
        for i, event in enumerate(session.events):
            for token in mentions(self.relative(visible(event))):
                self._first.setdefault(token, i)

    def relative(self, text: str) -> str:
        """`text` with the working directories cut off its paths."""
        for root in self._roots:
            text = text.replace(root, "")
        return text

    def stood_before(self, token: str, index: int) -> bool:
        """Whether the token stood in one of the first `index` events."""
        return self._first.get(token, index) < index


@dataclass(frozen=True, slots=True)
class Use:
    """The first use of a token in a later leg that nothing had given back: a need."""

    token: str
    kind: str
    where: str
    tool: str
    at: int


SCOPES = ("all", "no bodies", "arguments")


def needs(cut: Cut, memory: Memory) -> dict[str, list[Use]]:
    """Needs per scope: `all` (text, arguments, code bodies), `no bodies`, `arguments`.

    In each scope only uses of that scope count and the first of them decides. The working directories and the
    branch are never needed: the client's system prompt states them.
    """
    known = set(cut.session.cwds) | set(cut.session.branches)
    found: dict[str, list[Use]] = {scope: [] for scope in SCOPES}
    used: dict[str, set[str]] = {scope: set(known) for scope in SCOPES}
    given: set[str] = set()
    for event in cut.preserved:
        given |= mentions(memory.relative(visible(event)))
    size = len(cut.before)
    for at, event in enumerate(cut.after):
        if event.kind in ("user", "result", "injected", "plan"):
            given |= mentions(memory.relative(event.text))
            continue
        for where, text in _spoken(event):
            scopes = {"text": SCOPES[:2], "argument": SCOPES, "body": SCOPES[:1]}[where]
            for token, kind in specifics(memory.relative(text)).items():
                fresh = [s for s in scopes if token not in used[s]]
                if not fresh:
                    continue
                need = memory.stood_before(token, size) and token not in given
                for scope in fresh:
                    used[scope].add(token)
                    if need:
                        found[scope].append(Use(token, kind, where, event.name, at))
    return found


def _spoken(event: Event) -> tuple[tuple[str, str], ...]:
    if event.kind == "assistant":
        return (("text", event.text),)
    if event.kind == "call":
        return (("argument", arguments(event)), ("body", bodies(event)))
    return ()
