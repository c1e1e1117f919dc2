"""What the model would have after the compaction, one text per arm."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.continuity import product
from bench.continuity.calls import WRITERS, bare_line, target
from bench.continuity.cuts import Cut, visible
from bench.continuity.reader import Event
from bench.continuity.tokens import estimate

BASE = "client"
RESTORED_FILES = 5
RESTORED_TOKENS = 5_000
PAGE_BUDGETS = (2_000, 5_000, 10_000, 20_000, 30_000)
TAIL_CHARACTERS = (6_000, 24_000, 80_000)
_NOTE = "Note: {} was read before the last conversation was summarized, but the contents are too large to include."


def arm_texts(cut: Cut, wanted: Callable[[str], bool] = lambda _: True) -> dict[str, str]:
    """Arm name → text, for the wanted names. The product's arms are missing where it is not connected."""
    kept = "\n".join(visible(e) for e in cut.preserved)
    summary = f"{cut.summary}\n{kept}"
    client = f"{summary}\n{restored(cut.before)}"
    lines = [line for e in cut.before if (line := _line(e, calls=True))]
    tools = "\n".join(bare_line(e) for e in cut.before if e.kind == "call")
    arms = {
        "summary": summary,
        BASE: client,
        "conversation": "\n\n".join(line for e in cut.before if (line := _line(e, calls=False))),
        "conversation + lines": "\n".join(lines),
    }
    arms["client + conversation + lines"] = f"{client}\n{arms['conversation + lines']}"
    for size in TAIL_CHARACTERS:
        arms[f"client + last {size // 1000}k chars of lines"] = f"{client}\n{tools[-size:]}"
    arms.update(_ours(cut, client, wanted))
    if not cut.chained:
        arms["everything"] = "\n".join(visible(e) for e in cut.before)
    return {name: text for name, text in arms.items() if wanted(name)}


def restored(before: list[Event]) -> str:
    """Imitation of the files the client re-attaches: the five newest read or written, up to 5k tokens each.

    The client reads them from disk again, so a file is put together from all that its Reads showed, and the
    edits made since are applied where their old string is found. Where a part was seen, that part is given.
    """
    touched = (_touched(e) for e in reversed(before))
    newest = list(dict.fromkeys(path for path in touched if path))[:RESTORED_FILES]
    parts = []
    for path in newest:
        content, whole = _on_disk(path, before)
        estimated = estimate(content) if content else 0
        fits = estimated / max(whole, 0.01) <= RESTORED_TOKENS
        parts.append(f"{path}\n{content}" if fits else _NOTE.format(path))
    return "\n\n".join(parts)


def _touched(event: Event) -> str:
    if event.kind == "result" and event.file and event.name == "Read" and not event.error:
        return event.file.path
    return target(event) if event.kind == "call" and event.name in WRITERS else ""


def _on_disk(path: str, before: list[Event]) -> tuple[str, float]:
    """The file's text as far as it was seen, and which share of its lines that is."""
    lines: dict[int, str] = {}
    total = 1
    for event in before:
        if event.kind == "result" and event.file and event.file.path == path:
            if event.file.total != total:
                lines, total = {}, event.file.total
            lines.update(enumerate(event.file.content.split("\n"), event.file.start))
        elif event.kind == "call" and target(event) == path:
            text = _edited("\n".join(lines[n] for n in sorted(lines)), event)
            numbers = sorted(lines)
            contiguous = len(numbers) == total or event.name == "Write"
            if contiguous:
                lines = dict(enumerate(text.split("\n"), 1))
                total = len(lines)
            else:
                lines = {(numbers[0] if numbers else 1) + i: line for i, line in enumerate(text.split("\n"))}
    return "\n".join(lines[n] for n in sorted(lines)), min(1.0, len(lines) / max(total, 1))


def _edited(text: str, event: Event) -> str:
    if event.name == "Write":
        return str(event.input.get("content") or "")
    steps = event.input.get("edits") if event.name == "MultiEdit" else [event.input]
    for step in steps if isinstance(steps, list) else ():
        old, new = str(step.get("old_string") or ""), str(step.get("new_string") or "")
        if event.name in ("Edit", "MultiEdit") and old:
            text = text.replace(old, new, -1 if step.get("replace_all") else 1)
    return text


def _line(event: Event, *, calls: bool) -> str:
    if event.kind in ("user", "assistant"):
        return event.text
    return bare_line(event) if calls and event.kind == "call" else ""


def _ours(cut: Cut, client: str, wanted: Callable[[str], bool]) -> dict[str, str]:
    """The product's arms. In chained sessions only two budgets, because the files are long."""
    budgets = (PAGE_BUDGETS[2], PAGE_BUDGETS[3], PAGE_BUDGETS[-1]) if cut.chained else PAGE_BUDGETS
    recent = {f"client + last {b // 1000}k tokens of conversation": b for b in budgets}
    planned = {f"client + handoff + pages {b // 1000}k": b for b in budgets}
    arms: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{cut.session.name}.jsonl"
        path.write_bytes(cut.prefix)
        with contextlib.suppress(NotImplementedError):
            if any(map(wanted, ("bottle", "client + bottle", *recent))):
                whole = product.bottle(path)
                arms |= {"bottle": whole, "client + bottle": f"{client}\n{whole}"}
                talk = conversation_of(whole)
                arms |= {name: f"{client}\n{tail(talk, budget)}" for name, budget in recent.items()}
        with contextlib.suppress(NotImplementedError):
            if not any(map(wanted, ("handoff", "client + handoff", *planned))):
                return arms
            for name, budget in planned.items():
                text, pages = product.handoff(path, budget)
                arms.setdefault("handoff", text)
                arms.setdefault("client + handoff", f"{client}\n{text}")
                arms[name] = f"{client}\n{text}\n{pages}"
    return arms


def conversation_of(bottle: str) -> str:
    """The bottle up to its closing part: what plain recency has to choose from."""
    return (
        bottle.rpartition("\n## Where things stand\n")[0].rpartition("\n## Index\n")[0]
        or bottle.rpartition("\n## Where things stand\n")[0]
    )


def tail(text: str, budget: int) -> str:
    """The last lines of `text` that fit in `budget` tokens."""
    kept: list[str] = []
    spent = 0
    for line in reversed(text.split("\n")):
        spent += estimate(line) + 1
        if spent > budget:
            break
        kept.append(line)
    return "\n".join(reversed(kept))
