"""Replay a real session through the real hooks and a real worker, in a temporary home, and show what comes out."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import endless_mode

HERE = Path(__file__).resolve().parent
HOOK = Path(endless_mode.__file__).parent / "hook" / "run.py"
#: Lines of a page and of the bottle's parts that are shown.
SHOWN = 24


class Stage:
    """A temporary home with a transcript that grows, and the hooks that see it."""

    def __init__(self, root: Path, session: str) -> None:
        self.root = root
        self.data = root / "data"
        self.project = root / "project"
        self.project.mkdir()
        folder = root / "config" / "projects" / "-demo"
        folder.mkdir(parents=True)
        self.session = session
        self.transcript = folder / f"{self.session}.jsonl"
        self.environment = {
            **os.environ,
            "CLAUDE_CONFIG_DIR": str(root / "config"),
            "CLAUDE_MEM_DATA_DIR": str(self.data),
        }
        self.command = [sys.executable, "-I", "-S", str(HOOK), "claude-code"]
        self.times: list[float] = []

    def hook(self, event: str, **fields: object) -> str:
        """Call a hook as the client does: JSON on stdin; what it prints is what the model would see."""
        payload = {
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "hook_event_name": event,
            **fields,
        }
        began = time.perf_counter()
        done = subprocess.run(
            [*self.command, event, str(self.data)],
            input=json.dumps(payload).encode(),
            capture_output=True,
            env=self.environment,
            timeout=60,
            check=False,
        )
        self.times.append(time.perf_counter() - began)
        if done.returncode or done.stderr:
            raise SystemExit(f"the hook {event} failed: exit {done.returncode} {done.stderr.decode()}")
        return done.stdout.decode()

    def grow(self, lines: list[bytes]) -> None:
        """Append lines, as the client's writer does."""
        with self.transcript.open("ab") as file:
            file.writelines(lines)

    def endless(self, *words: str) -> str:
        """Run the command line in this home."""
        done = subprocess.run(
            [sys.executable, "-m", "endless_mode", *words],
            capture_output=True,
            env=self.environment,
            timeout=60,
            check=False,
        )
        return done.stdout.decode() or done.stderr.decode()


INTRODUCTION = """When a coding session's context is full, the client replaces the conversation by a summary, and
the model forgets what it ran, what was decided and where it was. Endless Mode keeps a record beside the session,
the bottle, and hands it to the model right after. Here a real session is replayed up to its compaction, with the
real hooks and a real worker, in a temporary home. No model is called, and nothing leaves the machine."""

CLOSING = """With your own sessions: `uv tool install .` (or `pipx install .`), then `endless install`.
Any transcript as a bottle: `.venv/bin/endless bottle demo/session.jsonl.gz --stdout`."""


def main() -> int:
    """Run the demo; return the exit code."""
    lines = gzip.decompress((HERE / "session.jsonl.gz").read_bytes()).splitlines(keepends=True)
    entries = [json.loads(line) for line in lines]
    cut = next(n for n, e in enumerate(entries) if e.get("subtype") == "compact_boundary")
    root = Path(tempfile.mkdtemp(prefix="endless-demo-"))
    stage = Stage(root, next(str(e["sessionId"]) for e in entries if e.get("sessionId")))
    try:
        _play(stage, lines, entries, cut)
        return 0
    finally:
        stage.endless("worker", "stop")
        shutil.rmtree(root, ignore_errors=True)


def _play(stage: Stage, lines: list[bytes], entries: list[dict[str, object]], cut: int) -> None:
    print(f"\n{INTRODUCTION}")
    title("1. A session runs; hooks start a worker, which follows the transcript")
    stage.hook("SessionStart", source="startup")
    done = 0
    prompts = [n for n, e in enumerate(entries[:cut]) if _is_prompt(e)]
    for number, place in enumerate(prompts, 1):
        stage.grow(lines[done:place])
        done = place
        printed = stage.hook("UserPromptSubmit", prompt="(as in the transcript)")
        print(f"   prompt {number} of {len(prompts)}: {place} lines so far, the hook printed {len(printed)} characters")
    stage.grow(lines[done:cut])

    title("2. The context is full: the client compacts. PreCompact seals, SessionStart hands over, once")
    sealed = stage.hook("PreCompact", trigger="auto", custom_instructions=None)
    seal_ms = stage.times[-1] * 1000
    handoff = stage.hook("SessionStart", source="compact")
    again = stage.hook("SessionStart", source="compact")
    stage.grow(lines[cut : cut + 2])
    later = stage.hook("UserPromptSubmit", prompt="go on")
    print(f"   PreCompact printed {len(sealed)} characters (must be 0), {seal_ms:.0f} ms")
    print(
        f"   SessionStart printed {len(handoff)} characters;"
        f" a second one {len(again)}, the next prompt {len(later)} (must be 0)"
    )
    title("3. The numbers")
    _numbers(stage, sum(map(len, lines[: cut + 2])), cut + 2, handoff)

    title("4. What the model is handed: the handoff")
    print(handoff)

    bottle = stage.data / "endless" / "bottles" / f"{stage.session}.md"
    text = bottle.read_text()
    title("5. The pages its plan names, as the model reads them (their beginnings)")
    for call in [line for line in handoff.splitlines() if line.startswith("Read(")]:
        print(call.replace(str(bottle), bottle.name))
        _show(_page(text, call))

    title("6. The bottle: one of its lines expanded with `endless show ID`, and where that line stands")
    place, number = _a_line(text)
    print("\n".join(stage.endless("show", number).splitlines()[: SHOWN // 2]) + "\n…\n")
    _show(text.splitlines()[max(place - SHOWN * 2 // 3, 0) :])
    print(f"\n{CLOSING}")


def _numbers(stage: Stage, size: int, count: int, handoff: str) -> None:
    about = json.loads(stage.endless("bottle", str(stage.transcript), "--json", "-o", str(stage.root / "again.md")))
    print(f"   transcript {size / 1e6:.2f} MB, {count} lines", end="")
    print(f" → bottle {about['bytes'] / 1e3:.0f} KB, ≈{about['tokens']:,} tokens")
    print(
        f"   {about['user_messages']} user and {about['assistant_messages']} assistant messages, verbatim;"
        f" mode {about['mode']}"
    )
    print(f"   handoff {len(handoff):,} characters of at most 9,000")
    print(f"   hooks: median {sorted(stage.times)[len(stage.times) // 2] * 1000:.0f} ms, none on tool calls")


def title(text: str) -> None:
    """A heading between the parts."""
    print(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n=== {text}\n")


def _is_prompt(entry: dict[str, object]) -> bool:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return (
        entry.get("type") == "user"
        and not entry.get("isMeta")
        and isinstance(content, str)
        and not content.startswith("<")
    )


def _page(text: str, call: str) -> list[str]:
    words = dict(part.split("=") for part in call.rstrip(")").split(", ")[1:])
    start, limit = int(words.get("offset", 1)), int(words.get("limit", 10**9))
    return text.splitlines()[start - 1 : start - 1 + limit]


def _a_line(text: str) -> tuple[int, str]:
    """Where a line of the bottle stands that tells of a command, and its id."""
    lines = enumerate(text.splitlines())
    place, line = next((n, line) for n, line in lines if line.startswith("- [#") and "Ran" in line)
    return place, line[4:].split("]")[0].split("–")[0]


def _show(lines: list[str]) -> None:
    for line in lines[:SHOWN]:
        print("   │ " + (line if len(line) <= 150 else line[:149] + "…"))
    if len(lines) > SHOWN:
        print(f"   │ … {len(lines) - SHOWN} more lines")


if __name__ == "__main__":
    sys.exit(main())
