"""What the store says about where a session stands: facts only, newest first."""

from __future__ import annotations

import sqlite3

from msgspec import Struct, field

from endless_mode.bottle.escape import flatten
from endless_mode.bottle.programs import programs
from endless_mode.bottle.view import Done, Said, SessionRow, Told, digests, latest
from endless_mode.model import ASKING, Digest, Todo

#: How far back the packing and the checks look, in tool events and in messages.
EVENTS_SEEN = 500
MESSAGES_SEEN = 400
#: Checks, and failures, told of.
IN_HAND = 3
#: A failure that many tool events ago is no longer work in hand.
FAILURES_SEEN = 80
#: How many of the newest pieces of code and names of a file are kept; older ones are never shown.
HUNKS_KEPT, SYMBOLS_KEPT = 4, 48

#: How a look at a background task says that it is over.
_OVER = ("completed", "failed", "killed", "stopped")


class FileState(Struct, gc=False):
    """What happened to one file: lines added and removed, names touched, newest first."""

    path: str
    added: int = 0
    removed: int = 0
    edits: int = 0
    created: bool = False
    by_agent: bool = False
    symbols: dict[str, None] = field(default_factory=dict)
    hunks: list[str] = field(default_factory=list)
    age: int = 0


class Seen(Struct, frozen=True, gc=False):
    """A tool event of interest with its age in events (0 = newest)."""

    age: int
    event: Done
    told: Told

    @property
    def digest(self) -> Digest:
        """What is kept of the event."""
        return self.told.digest


class Standing(Struct):
    """The facts the closing part is written from."""

    messages: list[Said]
    events: list[Seen]
    files: dict[str, FileState]
    todos: list[Todo]
    running: list[Seen]
    checks: list[Seen]
    failing: list[Seen]
    pending: list[Seen]

    def in_hand(self) -> list[Seen]:
        """The checks and failures that are told of in every closing part, newest first each."""
        return [*self.checks[:IN_HAND], *self.failing[:IN_HAND]]


def standing(db: sqlite3.Connection, session: SessionRow) -> Standing:
    """Gather the facts of a session's main line."""
    told = Standing(latest(db, session, MESSAGES_SEEN), [], {}, [], [], [], [], [])
    todos: dict[str, Todo] = {}
    lists: dict[str, int] = {}
    whole_seen = False
    commands = _Commands(told)
    over: set[str] = set()
    went_on = _went_on(told.messages)
    for age, (event, noted) in enumerate(digests(db, session, EVENTS_SEEN)):
        by_agent = bool(event.kind)
        seen, digest = Seen(age, event, noted), noted.digest
        if age < EVENTS_SEEN and not by_agent:
            told.events.append(seen)
        _file(told.files, seen, session.cwd, by_agent)
        if digest.kind == "todo" and not whole_seen and digest.status == "ok":
            for todo in digest.todos:
                _merge(todos, todo, lists)
                if event.name == "TaskCreate":
                    lists[todo.id] = lists.get(todo.id, 0) + 1
            whole_seen = digest.todos_whole
        if digest.outcome.startswith(_OVER):
            over |= {digest.task_id, digest.target}
        if event.status == "background" and digest.task_id and digest.task_id not in over:
            told.running.append(seen)
        if event.state in ("pending", "claimed") or (event.status == "open" and (by_agent or event.offset > went_on)):
            told.pending.append(seen)
        if digest.kind == "shell" and digest.command and event.status in ("ok", "failed"):
            commands.add(seen)
    told.todos = list(todos.values()) if whole_seen else list(reversed(todos.values()))
    return told


def _went_on(messages: list[Said]) -> int:
    """Where the session last spoke: a call before it that has no result will never have one."""
    return next((s.offset for s in messages if s.kind in ("text", "prompt", "command")), -1)


def asks(said: Said) -> bool:
    """Whether the message asks for something to be done."""
    return said.role == "user" and said.kind in ASKING


def relative(path: str, cwd: str) -> str:
    """A path as the session would write it: relative inside its directory."""
    return path[len(cwd) + 1 :] if cwd and path.startswith(cwd + "/") else path


def _merge(todos: dict[str, Todo], older: Todo, lists: dict[str, int]) -> None:
    """An older word on an item gives what newer ones left open: an update may name only what it changed.

    What is older than an item's creation speaks of another item: ``lists`` counts the creations met so far by id.
    """
    key = f"{older.id}~{lists.get(older.id, 0)}" if older.id else older.text
    newer = todos.get(key)
    if newer is None:
        todos[key] = older
    elif not newer.text or not newer.status:
        todos[key] = Todo(newer.text or older.text, newer.status or older.status, newer.id)


def _file(files: dict[str, FileState], seen: Seen, cwd: str, by_agent: bool) -> None:
    digest = seen.digest
    if digest.kind not in ("read", "edit", "write") or not digest.target or digest.status not in ("ok", "open"):
        return
    path = flatten(relative(digest.target, cwd))
    state = files.get(path)
    if state is None:
        state = files[path] = FileState(path, age=seen.age)
    _named(state, digest.symbols)
    if digest.kind == "read":
        return
    state.edits += 1
    state.added += digest.added
    state.removed += digest.removed
    state.by_agent = state.by_agent or by_agent
    state.created = state.created or digest.outcome.startswith("created")
    if len(state.hunks) < HUNKS_KEPT:
        state.hunks.extend(digest.hunks)
    _named(state, digest.names)


def _named(state: FileState, names: list[str]) -> None:
    if len(state.symbols) < SYMBOLS_KEPT:
        state.symbols.update(dict.fromkeys(names))


class _Commands:
    """Goes through the commands, newest first: the last run of each check, and what else failed and is not settled.

    A failure is settled when the same program ended well since: the run after a fix is seldom the same to the letter.
    A check is known by its whole command, because another one of the same program may look at other things.
    """

    def __init__(self, told: Standing) -> None:
        self._told = told
        self._known: set[str] = set()
        self._well: set[str] = set()

    def add(self, seen: Seen) -> None:
        """Take in one command that has ended."""
        names = programs(seen.digest.command)
        settled = bool(names) and names[-1] in self._well
        if seen.event.status == "ok":
            self._well.update(names)
        head = " ".join(seen.digest.command.split())[:80]
        if head in self._known:
            return
        self._known.add(head)
        if seen.digest.check:
            self._told.checks.append(seen)
        elif seen.event.status == "failed" and seen.age < FAILURES_SEEN and not settled:
            self._told.failing.append(seen)
