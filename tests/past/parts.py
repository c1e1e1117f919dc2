"""Past sessions: a client's directory with transcripts in it, the store read into, and its rows."""

from __future__ import annotations

import gzip
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from endless_mode.home import Home
from endless_mode.importing import Imported, import_all
from endless_mode.ingest import ingest_file
from endless_mode.store import Store
from tests.live.transcript import Transcript
from tests.reader.files import FIXTURES

DAY = 86_400.0


def session_id(name: str) -> str:
    return str(uuid5(NAMESPACE_URL, name))


def config_of(root: Path) -> Path:
    """A client's directory with the public fixtures as its sessions, subagents beside them."""
    config = root / ".claude"
    for n, source in enumerate(sorted((FIXTURES / "public").glob("*.jsonl.gz"))):
        name = source.name.removesuffix(".jsonl.gz")
        target = config / "projects" / "-home-dev" / f"{session_id(name)}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.decompress(source.read_bytes()))
        os.utime(target, (1_760_000_000 + n, 1_760_000_000 + n))
        for beside in (source.parent / name).rglob("*.jsonl.gz"):
            place = target.parent / target.stem / "subagents" / beside.name.removesuffix(".gz")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(gzip.decompress(beside.read_bytes()))
    return config


def talk(root: Path, name: str, *turns: str, cwd: str = "/home/dev/app", **more: Any) -> Transcript:
    """A session of a few turns under the client's directory of ``root``."""
    path = root / ".claude" / "projects" / "-home-dev-app" / f"{name}.jsonl"
    written = Transcript(path, name, cwd, **more)
    for turn in turns:
        written.turn(turn)
    return written


def read_into(store: Store, stretch: int = 4 << 20) -> Callable[..., int]:
    """Reads one transcript into a store, as an import wants it."""

    def read(session: str, path: Path, progress: Callable[[int, int], None]) -> int:
        return ingest_file(store, path, session_id=session, progress=progress, stretch=stretch).skipped

    return read


def imported(store: Store, config: Path, stretch: int = 4 << 20, **more: Any) -> Imported:
    return import_all(read_into(store, stretch), store.read, config, more.pop("excluded", lambda cwd: False), **more)


def rows_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Everything a database holds, by table, without when its tables were made."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        found = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in tables if name != "migrations"}
    db.close()
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def everywhere(home: Home, text: str) -> list[Path]:
    """The files of a home that hold a text, in whatever case: the index has words as lower-case stems."""
    sought = text.lower().encode()
    return [path for path in home.data_dir.rglob("*") if path.is_file() and sought in path.read_bytes().lower()]


def endless(environ: dict[str, str], *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "endless_mode", *words],
        env={**environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


__all__ = ["DAY", "config_of", "endless", "everywhere", "imported", "read_into", "rows_of", "session_id", "talk"]
