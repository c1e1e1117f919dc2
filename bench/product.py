"""The product as the benches use it: the only place that knows its names.

Modules are imported when first needed, so that the baselines run while a part is missing.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

NEEDED = ("endless_mode.store", "endless_mode.ingest", "endless_mode.bottle.write", "endless_mode.bottle.prefixes")


def missing() -> str:
    """Why the product cannot be measured; empty when it can."""
    for name, wanted in zip(NEEDED, ("Store", "ingest_file", "write_bottle", "Prefixes"), strict=True):
        try:
            if not hasattr(importlib.import_module(name), wanted):
                return f"{name} has no {wanted}"
        except ImportError as error:
            return str(error)
    return ""


def command() -> str:
    """The installed `endless` of this interpreter, or nothing."""
    beside = Path(sys.executable).with_name("endless")
    return str(beside) if beside.exists() else ""


def bottle_command(transcript: Path, out: Path) -> list[str]:
    return [command(), "bottle", str(transcript), "-o", str(out)]


class Ingested:
    """A transcript and the file database it goes into."""

    def __init__(self, transcript: Path, database: Path) -> None:
        self.transcript = transcript
        self._store: Any = importlib.import_module("endless_mode.store").Store.open(database)
        self._ingest: Any = importlib.import_module("endless_mode.ingest").ingest_file
        self._write: Any = importlib.import_module("endless_mode.bottle.write").write_bottle
        self._prefixes: Any = importlib.import_module("endless_mode.bottle.prefixes").Prefixes(self._store)
        self._bottles = database.parent / "bottles"
        self._session: Any = None

    def ingest(self) -> None:
        """Read what the cursor has not seen."""
        result = self._ingest(self._store, self.transcript)
        self._session = result.session

    def render(self) -> int:
        """Put the bottle on disk as the worker does, which remembers the one before; returns its size in bytes."""
        bottle = self._write(self._store, self._session, self._bottles, self._bottles, prefixes=self._prefixes)
        return int(bottle.text.shape.size)

    def text(self) -> str:
        """The whole bottle in memory."""
        bottle = self._write(self._store, self._session, self._bottles, self._bottles)
        text: str = bottle.text.whole()
        return text

    def close(self) -> None:
        self._store.close()
