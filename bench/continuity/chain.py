"""Long sessions made of real ones: legs of several sessions of one repository, joined into one transcript.

Each session keeps its own boundaries and summaries; its last leg and the first leg of the next session become
one leg. The working directories are renamed to one, uuids are derived anew, times move forward, and the first
line of a session hangs on the last of the one before.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from bench.continuity.reader import Session, objects, parse

LEGS = (5, 10)
_NAMESPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
_UUIDS = ("uuid", "parentUuid", "logicalParentUuid", "leafUuid", "messageId", "sourceToolAssistantUUID")
_GAP = timedelta(hours=1)


def boundaries(session: Session) -> int:
    """How many compactions the session has."""
    return sum(e.kind == "boundary" for e in session.events)


def plan(groups: dict[str, list[Session]], count: int) -> list[tuple[str, list[Session]]]:
    """(repository, sessions) of `count` chains of 5 to 10 legs: a repository's sessions in turned order."""
    found: list[tuple[str, list[Session]]] = []
    for turn in range(max((len(g) for g in groups.values()), default=0)):
        for repository, sessions in sorted(groups.items()):
            if turn >= len(sessions):
                continue
            chosen: list[Session] = []
            for session in sessions[turn:] + sessions[:turn]:
                if sum(map(boundaries, chosen)) + boundaries(session) < LEGS[1]:
                    chosen.append(session)
            if len(chosen) > 1 and sum(map(boundaries, chosen)) + 1 >= LEGS[0]:
                found.append((repository, chosen))
    return found[:count]


def join(name: str, sessions: Sequence[Session]) -> Session:
    """One session out of several."""
    root = _root(sessions[0])
    lines: list[str] = []
    last: str | None = None
    clock: datetime | None = None
    for part, session in enumerate(sessions):
        shift: timedelta | None = None
        text = session.data.decode("utf-8", "replace").replace(_root(session), root)
        for _, entry in objects(text.encode()):
            if isinstance(entry.get("timestamp"), str):
                moment = datetime.fromisoformat(entry["timestamp"].replace("Z", "+00:00"))
                if shift is None:
                    shift = clock + _GAP - moment if clock else timedelta()
                moment += shift
                clock = max(clock, moment) if clock else moment
                entry["timestamp"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            first_of_part = "uuid" in entry and entry.get("parentUuid") is None and "logicalParentUuid" not in entry
            _rename(entry, f"{name}/{part}")
            if first_of_part and part and not entry.get("isSidechain"):
                entry["parentUuid"] = last
            last = entry.get("uuid", last)
            if "sessionId" in entry:
                entry["sessionId"] = str(uuid.uuid5(_NAMESPACE, name))
            lines.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
    return parse(name, ("\n".join(lines) + "\n").encode("utf-8", "replace"))


def _root(session: Session) -> str:
    """The working directory most lines name."""
    counts = Counter(str(d["cwd"]) for _, d in objects(session.data) if d.get("cwd"))
    return counts.most_common(1)[0][0] if counts else "/"


def _rename(entry: dict[str, Any], salt: str) -> None:
    for key in _UUIDS:
        if isinstance(entry.get(key), str):
            entry[key] = str(uuid.uuid5(_NAMESPACE, f"{salt}/{entry[key]}"))
    kept = (entry.get("compactMetadata") or {}).get("preservedMessages") or {}
    for key in ("uuids", "allUuids"):
        if isinstance(kept.get(key), list):
            kept[key] = [str(uuid.uuid5(_NAMESPACE, f"{salt}/{u}")) for u in kept[key]]
