"""The client's own record of what was typed: ``history.jsonl`` in its configuration directory.

The interactive client appends one line for each input; ``-p`` writes none. It outlives the transcripts. Observed with
2.0.30, 2.1.197 and 2.1.332 (``docs/formats.md``). Only read, line by line: a file of any size costs the prompts of one
session at most.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from endless_mode.clients.claude_code.wording import is_steering
from endless_mode.model import MessageKind
from endless_mode.names import is_session_id
from endless_mode.privacy import clean, is_wholly_private

FILE, PASTES = "history.jsonl", "paste-cache"
#: Bytes of the longest line and the longest paste, characters of one prompt, prompts and characters of one session that
#: are looked at.
MAX_LINE, MAX_PASTE, LONGEST, MOST_PROMPTS, MOST_CHARS = 4 << 20, 4 << 20, 200_000, 20_000, 16 << 20

_PLACE = re.compile(r"\[(?:\.\.\.)?(?:Pasted|Truncated) text #(\d{1,9})(?: \+\d+ lines?)?(?:\.\.\.)?\]")
_HASH = re.compile(r"[0-9a-f]{8,64}")
_COMMAND = re.compile(r"/[A-Za-z][\w:.-]*(?:[ \t][^\n]*)?")
_YEAR_9999 = 253_402_300_800_000


class Typed(Struct, frozen=True):
    """An input as it was typed, clean, with what was pasted in its place.

    ``cut_at``: so many characters survive of a longer one. ``lost`` counts pasted texts the client has not kept (or that are beyond all measure); their
    ``[Pasted text #1 +4 lines]`` stands in the text. A ``private`` one was nothing but private text.
    """

    text: str
    kind: MessageKind
    at: int | None
    project: str
    cut_at: int | None = None
    lost: int = 0
    private: bool = False


class Record(Struct, frozen=True):
    """The inputs of one session in their order; ``left_out`` older ones were too many."""

    prompts: tuple[Typed, ...] = ()
    left_out: int = 0


class Remembered(Struct, frozen=True):
    """A session in the record: its directory, when it was first and last typed in (ms), inputs, how it begins."""

    session_id: str
    project: str
    first: int | None
    last: int | None
    prompts: int
    begins: str


class Overview(Struct, frozen=True):
    """All sessions of a record, the last one first.

    ``nameless`` lines are inputs that name no session, ``unreadable`` ones nobody can read: both are left out.
    """

    sessions: tuple[Remembered, ...] = ()
    nameless: int = 0
    unreadable: int = 0


def record(config_dir: Path, session_id: str) -> Record:
    """What was typed in a session, as the client in ``config_dir`` has it; empty when there is no such record."""
    kept: deque[Typed] = deque()
    seen: set[tuple[int | None, str]] = set()
    chars = left_out = 0
    mark = session_id.encode()
    for line in _lines(config_dir / FILE):
        entry = _decoded(line) if mark in line else None
        if entry is None or entry.get("sessionId") != session_id:
            continue
        typed = _typed(entry, config_dir)
        if typed is None or (typed.at, typed.text) in seen:
            continue
        seen.add((typed.at, typed.text))
        kept.append(typed)
        chars += len(typed.text)
        while len(kept) > MOST_PROMPTS or chars > MOST_CHARS:
            chars -= len(kept.popleft().text)
            left_out += 1
    return Record(tuple(kept), left_out)


def overview(config_dir: Path) -> Overview:
    """The sessions of the record, with nothing of their texts but how they begin."""
    found: dict[str, Remembered] = {}
    nameless = unreadable = 0
    for line in _lines(config_dir / FILE):
        entry = _decoded(line)
        if entry is None or not isinstance(entry.get("display"), str):
            unreadable += bool(line.strip())
            continue
        name = entry.get("sessionId")
        if not isinstance(name, str) or not is_session_id(name):
            nameless += 1
            continue
        if (typed := _typed(entry, None)) is None:
            continue
        before = found.get(name)
        found[name] = Remembered(
            name,
            before.project if before else typed.project,
            before.first if before else typed.at,
            typed.at,
            (before.prompts if before else 0) + 1,
            (before.begins if before else "") or " ".join(typed.text.split())[:200],
        )
    ordered = sorted(found.values(), key=lambda one: (-(one.last or 0), one.session_id))
    return Overview(tuple(ordered), nameless, unreadable)


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file; of one that is too long ``?`` alone. A file that cannot be read has none."""
    try:
        if not path.is_file():  # a pipe would never end
            return
        with path.open("rb") as file:
            while line := file.readline(MAX_LINE):
                if len(line) == MAX_LINE and not line.endswith(b"\n"):
                    while (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                        pass
                    line = b"?"
                yield line
    except OSError:
        return


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        entry = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            entry = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None
    return entry if isinstance(entry, dict) else None


def _typed(entry: dict[str, Any], config_dir: Path | None) -> Typed | None:
    """An entry as what was typed; ``None`` when that only steers the client. Without a directory no paste is looked up."""
    display = entry.get("display")
    if not isinstance(display, str) or not display.strip():
        return None
    raw, lost = _with_pastes(display, entry.get("pastedContents"), config_dir)
    private = is_wholly_private(raw)
    # Cleaned before it is cut: half a secret is none that is known.
    text = "" if private else clean(raw).strip()
    cut_at = LONGEST if len(text) > LONGEST else None
    text = text[:LONGEST]
    if not text and not private:
        return None
    kind: MessageKind = "prompt"
    if text.startswith("!") and text[1:].strip():
        kind, text = "shell", text[1:].lstrip()
    elif _COMMAND.fullmatch(text):
        if is_steering(text):
            return None
        kind = "command"
    project = entry.get("project")
    return Typed(
        text,
        kind,
        _time(entry.get("timestamp")),
        clean(project) if isinstance(project, str) else "",
        cut_at,
        lost,
        private,
    )


def _with_pastes(display: str, pasted: Any, config_dir: Path | None) -> tuple[str, int]:
    """The input with pasted texts in the place of their marks, and how many the client has not kept.

    Without a directory only those are looked up that stand in the entry. All of them together are bounded.
    """
    lost, room = 0, MAX_PASTE

    def text_of(place: re.Match[str]) -> str:
        nonlocal lost, room
        content = _pasted(pasted.get(place[1]) if isinstance(pasted, dict) else None, config_dir)
        if content is None or len(content) > room:
            lost += 1
            return place[0]
        room -= len(content)
        return content

    return _PLACE.sub(text_of, display), lost


def _pasted(paste: Any, config_dir: Path | None) -> str | None:
    """A pasted text: small ones stand in the entry, larger ones in a file named by their hash."""
    if not isinstance(paste, dict):
        return None
    if isinstance(content := paste.get("content"), str):
        return content
    name = paste.get("contentHash")
    if config_dir is None or not isinstance(name, str) or not _HASH.fullmatch(name):
        return None
    try:
        with (config_dir / PASTES / f"{name}.txt").open("rb") as file:
            data = file.read(MAX_PASTE + 1)
    except OSError:
        return None
    return data.decode("utf-8", "replace") if len(data) <= MAX_PASTE else None


def _time(value: Any) -> int | None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return int(value) if fits and 0 < value < _YEAR_9999 else None
