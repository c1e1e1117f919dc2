"""A home of its own per test, with real hooks and real workers in it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from endless_mode.home import Home
from endless_mode.hook.slow import listens
from endless_mode.worker.client import WorkerClient
from tests.processes import LONG, Processes, eventually

HERE = Path(__file__).parent
HOOK = HERE.parents[1] / "src/endless_mode/hook/run.py"


STAND_IN = """
import sys, types

class Live(types.ModuleType):
    def __getattr__(self, name):
        if name != "LiveService":
            raise AttributeError(name)
        from tests.worker.recording import RecordingService
        return RecordingService

sys.modules["endless_mode.worker.live"] = Live("endless_mode.worker.live")
"""


def make_interpreter(root: Path) -> Path:
    """Make a virtual environment in which the worker that a hook starts has the recording service.

    So these tests are about processes alone, and the command lines in them are the product's.
    """
    site = root / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    site.mkdir(parents=True)
    (root / "bin").mkdir()
    real = Path(os.path.realpath(sys.executable))
    (root / "bin/python").symlink_to(real)
    (root / "pyvenv.cfg").write_text(f"home = {real.parent}\n")
    (site / "stand_in.py").write_text(STAND_IN)
    repository = HERE.parents[1]
    paths = [str(repository / "src"), str(repository), *(p for p in sys.path if p.endswith("site-packages"))]
    (site / "stand_in.pth").write_text("\n".join([*paths, "import stand_in", ""]))
    return root / "bin/python"


class Place(Processes):
    """A user's home directory with a data directory in it."""

    def __init__(self, root: Path, **environ: str) -> None:
        self.root = root
        self.data = root / "data"
        self.projects = root / ".claude/projects/p"
        self.projects.mkdir(parents=True)
        self.python = make_interpreter(root / "py")
        self.environ = {
            "HOME": str(root),
            "PATH": os.environ["PATH"],
            "CLAUDE_MEM_DATA_DIR": str(self.data),
            **environ,
        }
        self.children: list[subprocess.Popen[bytes]] = []

    @property
    def home(self) -> Home:
        return Home(self.data, {os.fsencode(k): os.fsencode(v) for k, v in self.environ.items()})

    @property
    def client(self) -> WorkerClient:
        return WorkerClient(self.home)

    def payload(self, event: str = "UserPromptSubmit", prompt: str = "", **more: object) -> bytes:
        base = {
            "session_id": "s-1",
            "transcript_path": str(self.projects / "s-1.jsonl"),
            "cwd": "/tmp",
            "hook_event_name": event,
            "prompt": prompt,
        }
        return json.dumps({**base, **more}, separators=(",", ":")).encode()

    def command(self, event: str, *arguments: str) -> list[str]:
        return [str(self.python), "-I", "-S", str(HOOK), "claude-code", event, *arguments]

    def hook(self, event: str, payload: bytes | None = None, **options: Any) -> subprocess.CompletedProcess[bytes]:
        given = self.payload(event) if payload is None else payload
        environ = {**self.environ, **options.pop("environ", {})}
        return subprocess.run(
            self.command(event, *options.pop("arguments", ())),
            input=given, capture_output=True, timeout=60, check=False, env=environ, **options,
        )  # fmt: skip

    def hook_process(self, event: str, payload: bytes | None = None) -> subprocess.Popen[bytes]:
        return super().hook_process(event, self.payload(event) if payload is None else payload)

    def worker_process(self, *arguments: str, **environ: str) -> subprocess.Popen[bytes]:
        """Start a recording worker as a child of this process."""
        child = subprocess.Popen(
            [sys.executable, "-I", str(HERE / "recording.py"), "--foreground", *arguments],
            env={**self.environ, **environ},
        )
        self.children.append(child)
        return child

    def worker(self, *arguments: str, **environ: str) -> subprocess.Popen[bytes]:
        """Start a recording worker and wait until it listens, or has ended."""
        child = self.worker_process(*arguments, **environ)
        eventually(lambda: self.listening() or child.poll() is not None)
        return child

    def listening(self) -> bool:
        return listens(os.fsencode(self.home.socket))

    def calls(self, call: str = "hook") -> list[dict[str, Any]]:
        path = self.data / "calls.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [entry for entry in map(json.loads, lines) if entry["call"] == call]

    def served(self, *names: str) -> list[dict[str, Any]]:
        """Log entries of events that reached the service, alive or kept."""
        return [entry for entry in self.log() if entry["name"] in (names or ("hook", "spooled_hook", "failed"))]

    def connect(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(LONG)
        sock.connect(os.fsencode(self.home.socket))
        return sock

    def exchange(self, message: bytes) -> bytes:
        """Send raw bytes to the worker and return all it answers."""
        with self.connect() as sock:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                sock.sendall(message)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while chunk := sock.recv(65536):
                    answer += chunk
            return answer


@contextlib.contextmanager
def place_in(root: Path, **environ: str) -> Iterator[Place]:
    """A place that is cleared of its processes at the end."""
    place = Place(root, **environ)
    try:
        yield place
    finally:
        place.close()
