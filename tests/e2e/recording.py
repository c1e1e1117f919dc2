"""Grow a real transcript: the real client talks to a script, and the file it writes is the product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.get_client import clients

from .answers import Answer, Step, Tool, bash, call, say
from .client import Client
from .home import Home
from .messages_api import MessagesApi


@dataclass(frozen=True)
class Turn:
    """One prompt and the model's answers to it; the last one must end the turn (no tools)."""

    prompt: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Recording:
    """A recorded session: its id, its transcript, and the result object of every turn."""

    session_id: str
    transcript: Path
    results: list[dict[str, Any]]


def turn(prompt: str, *calls: Tool | Answer, end: str = "Done.", compact: bool = False) -> Turn:
    """A turn whose model makes `calls` one after the other and ends with the words `end`.

    With `compact` its last tool call fills the context, so that the client compacts within the
    turn. The client does so only when at least one round came before that call in the session.
    """
    steps = [one if isinstance(one, Answer) else call(one) for one in calls or (bash("true"),)]
    if compact:
        steps[-1] = steps[-1].full()
    return Turn(prompt, (*steps, say(end)))


def record_session(
    client: Client,
    api: MessagesApi,
    turns: Sequence[Turn],
    *,
    resume: str = "",
    seconds: float = 60.0,
) -> Recording:
    """Play `turns` in one client process and return what it wrote.

    Tools run without asking. `seconds` is the deadline of each turn. Ends the client cleanly, so that
    its transcript is complete.
    """
    results: list[dict[str, Any]] = []
    with client.stream(resume=resume, skip_permissions=True) as stream:
        for one in turns:
            api.script(one.steps)
            results.append(stream.ask(one.prompt, seconds))
            if api.steps_left:
                raise AssertionError(f"{api.steps_left} steps unused after {one.prompt!r}")
        session_id = stream.session_id
        stream.finish()
    return Recording(session_id, client.home.transcript(session_id), results)


@contextmanager
def laboratory(version: str = "2.1.197") -> Iterator[tuple[Client, MessagesApi]]:
    """A client in a fresh home with its API, for use outside of tests (benches, fixtures).

    Run from the repository's root. Raises FileNotFoundError when the version is not installed.
    """
    path = next((pinned.path() for pinned in clients() if pinned.version == version), None)
    if path is None:
        raise FileNotFoundError(f"client {version} is not installed: run tools/get_client.py")
    with MessagesApi() as api:
        home = Home(api.url)
        try:
            yield Client(version, path, home), api
        finally:
            home.close()
