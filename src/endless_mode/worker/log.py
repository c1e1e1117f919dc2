"""The worker's log: JSON lines that cannot hold what a user or a model said.

There is no free text in an entry: the caller chooses among named fields, and what comes from outside (a
session id) is let in only if it has the shape it should have. Exceptions leave their class and place,
never their message.
"""

from __future__ import annotations

import json
import os
import threading
import time
import traceback
from pathlib import Path

from endless_mode.names import is_session_id

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
MAX_BYTES = 1_000_000
KEPT = 3


class Log:
    """Append-only file, rotated by size, usable from every thread; a full disk silences it."""

    def __init__(self, path: Path, level: str = "info", max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self.level = level
        self.max_bytes = max_bytes
        self._guard = threading.Lock()

    def write(
        self,
        name: str,
        *,
        level: str = "info",
        session: str = "",
        client: str = "",
        event: str = "",
        code: str = "",
        size: int | None = None,
        answer: int | None = None,
        ms: float | None = None,
        count: int | None = None,
        status: int | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Write one entry. ``name``, ``client``, ``event`` and ``code`` are words of our own; sizes are
        bytes.
        """
        if LEVELS[level] < LEVELS.get(self.level, 20):
            return
        known = is_session_id(session) if session else False
        fields: dict[str, object] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()),
            "level": level,
            "name": name,
            "pid": os.getpid(),
            "session": session if known else ("?" if session else ""),
            "client": client,
            "event": event,
            "code": code,
            "size": size,
            "answer": answer,
            "ms": None if ms is None else round(ms, 1),
            "count": count,
            "status": status,
            **(_place(error) if error is not None else {}),
        }
        self._append(json.dumps({k: v for k, v in fields.items() if v not in (None, "")}).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        with self._guard:
            try:
                fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                try:
                    os.write(fd, line)
                    full = os.fstat(fd).st_size >= self.max_bytes
                finally:
                    os.close(fd)
                if full:
                    self._rotate()
            except OSError:
                return

    def _rotate(self) -> None:
        names = [self.path, *(self.path.with_name(f"{self.path.name}.{n}") for n in range(1, KEPT + 1))]
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            if newer.exists():
                newer.replace(older)


def _place(error: BaseException) -> dict[str, object]:
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return {"error": type(error).__name__, "where": where}
