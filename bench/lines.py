"""The envelope of transcript lines: uuid chain, timestamps, two client styles, damage at real rates."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

# Of 61,009 public lines: timestamps step back in 6 %, a minute or more in 0.08 %; two objects
# share a line in 0.01 %; a uuid is repeated in 0.02 %. (A step drawn here is not always one
# in the file: the line before may have stepped further.)
STEP_BACK, LONG_STEP_BACK = 0.085, 0.0008
TWO_ON_A_LINE, REPEATED = 0.0001, 0.0002
VERSIONS = {"old": "2.1.37", "new": "2.1.197"}


@dataclass(slots=True)
class Start:
    """Where a file stands: what the next line continues."""

    session: str
    parent: str | None = None
    clock: int = 1_770_542_000_000  # milliseconds since the epoch


@dataclass(slots=True)
class Lines:
    """Writes lines to `sink` and keeps chain, clock and counts."""

    rng: Random
    style: str
    sink: Callable[[bytes], object]
    start: Start
    cwd: str
    parent: str | None = None
    clock: int = 0
    size: int = 0
    count: int = 0
    _head: str = ""
    _tail: str = ""
    _day: tuple[int, str] = field(default=(-1, ""))

    def __post_init__(self) -> None:
        self.parent, self.clock = self.start.parent, self.start.clock
        shared = (
            f'"cwd":"{self.cwd}","sessionId":"{self.start.session}","version":"{VERSIONS[self.style]}",'
            '"gitBranch":"main"'
        )
        if self.style == "old":
            self._head = f'"isSidechain":false,"userType":"external",{shared},"slug":"quiet-folding-lantern",'
            self._tail = "}"
        else:
            self._head = '"isSidechain":false,'
            self._tail = f',"userType":"external","entrypoint":"cli",{shared}}}'

    def uuid(self) -> str:
        h = f"{self.rng.getrandbits(128):032x}"
        return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"

    def stamp(self, wait: float = 1.5) -> str:
        """The next timestamp, `wait` seconds on average after the last, now and then before it."""
        draw = self.rng.random()
        self.clock += int(self.rng.expovariate(1) * wait * 1000)
        at = self.clock
        if draw < LONG_STEP_BACK:
            at -= 60_000 + int(draw * 1e9)
        elif draw < STEP_BACK:
            at -= int(wait * 1000) + 400
        return self.format(at)

    def format(self, at: int) -> str:
        day, rest = divmod(at, 86_400_000)
        if day != self._day[0]:
            self._day = (day, datetime.fromtimestamp(day * 86_400, UTC).strftime("%Y-%m-%d"))
        seconds, ms = divmod(rest, 1000)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        return f"{self._day[1]}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"

    def raw(self, line: str, end: bytes = b"\n") -> None:
        data = line.encode() + end
        self.sink(data)
        self.size += len(data)
        self.count += end == b"\n"

    def chain(self, body: str, after: str = "", parent: str | None = "", wait: float = 1.5, uuid: str = "") -> str:
        """Write one entry of the chain and make it the leaf; returns its uuid.

        `body` begins with the type, `after` stands behind the timestamp. `parent` overrides the leaf.
        """
        if parent == "":
            parent = self.parent
        hangs = f'"{parent}"' if parent else "null"
        uuid = uuid or self.uuid()
        line = (
            f'{{"parentUuid":{hangs},{self._head}{body},"uuid":"{uuid}","timestamp":"{self.stamp(wait)}"'
            f"{after}{self._tail}"
        )
        draw = self.rng.random()
        if draw < TWO_ON_A_LINE:
            self.raw(line, b"")
            self.snapshot(uuid)
        else:
            self.raw(line)
            if draw < TWO_ON_A_LINE + REPEATED:
                self.raw(line)
        self.parent = uuid
        return uuid

    def snapshot(self, message: str, files: str = "") -> None:
        self.raw(
            f'{{"type":"file-history-snapshot","messageId":"{message}","snapshot":{{"messageId":"{message}",'
            f'"trackedFileBackups":{{{files}}},"timestamp":"{self.format(self.clock)}"}},"isSnapshotUpdate":false}}'
        )

    def queue(self, operation: str, content: str = "") -> None:
        told = f',"content":"{content}"' if content else ""
        self.raw(
            f'{{"type":"queue-operation","operation":"{operation}","timestamp":"{self.stamp()}",'
            f'"sessionId":"{self.start.session}"{told}}}'
        )
