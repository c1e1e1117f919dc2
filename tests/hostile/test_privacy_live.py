"""No private word reaches a byte of the home, or anything that is printed, by way of the real hooks and worker."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.live.parts import Living, Session, is_handoff
from tests.live.transcript import Transcript
from tests.processes import eventually

WORD = "zqHiddenWord"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
PRIVATE = f"<private>{WORD}</private>"
BOTH = f"{PRIVATE} token {TOKEN}"


def told(s: Session) -> None:
    """A session with something to hide in every place a transcript has for text."""
    t = s.t
    t.line({"type": "custom-title", "customTitle": f"Title {BOTH}", "sessionId": t.session})
    t.line({"type": "ai-title", "aiTitle": f"Title {BOTH}", "sessionId": t.session})
    t.line({"type": "last-prompt", "lastPrompt": f"x {BOTH}", "sessionId": t.session})
    t.prompt(f"Fix the parser. {BOTH}")
    t.bash(f"grep {BOTH} .", f"found {BOTH}")
    uses: dict[str, dict[str, Any]] = {
        "Read": {"file_path": f"/tmp/{PRIVATE}/{TOKEN}.py"},
        "Write": {"file_path": f"/tmp/{TOKEN}.py", "content": f"a = 1\n{BOTH}"},
        "Edit": {"file_path": "/tmp/b.py", "old_string": f"x {BOTH}", "new_string": f"def f(): pass\n{BOTH}"},
        "Grep": {"pattern": BOTH, "path": f"/tmp/{TOKEN}"},
        "WebFetch": {"url": f"https://a.b/?t={TOKEN}", "prompt": BOTH},
        "TodoWrite": {"todos": [{"content": BOTH, "status": "pending", "activeForm": BOTH}]},
        "mcp__x__y": {BOTH: BOTH},
        f"odd{TOKEN}": {"query": BOTH},
        "AskUserQuestion": {
            "questions": [
                {"question": f"Which? {BOTH}", "header": "h", "options": [{"label": BOTH, "description": BOTH}]}
            ]
        },
        "ExitPlanMode": {"plan": f"# Plan\n{BOTH}"},
    }
    for name, given in uses.items():
        t.result(t.call(name, **given), f"1\u2192{BOTH}\n2\u2192def g(): pass\n{BOTH}")
    t.result(t.call("Bash", command="make"), f"Error: {BOTH}", error=True)
    t.result(t.call("Bash", command=f"sleep {TOKEN}", run_in_background=True), f"running {BOTH}")
    told = f"<status>completed</status>\n<summary>s {BOTH}</summary>\n<result>{BOTH}</result>"
    note = f"<task-notification>\n<task-id>b1</task-id>\n{told}\n</task-notification>"
    t.chained("user", message={"role": "user", "content": note}, promptSource="system")
    t.line(
        {
            "type": "queue-operation",
            "operation": "enqueue",
            "content": f"queued {BOTH}",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "sessionId": t.session,
        }
    )
    t.chained("user", message={"role": "user", "content": f"<bash-input>echo {BOTH}</bash-input>"})
    t.chained(
        "user", message={"role": "user", "content": f"<bash-stdout>{BOTH}</bash-stdout><bash-stderr></bash-stderr>"}
    )
    t.chained("attachment", attachment={"type": "queued_command", "prompt": f"more {BOTH}", "commandMode": "prompt"})
    t.say(f"Done, as you said. {BOTH}")
    use = t.agent(f"look {BOTH}")
    agent = Transcript(t.path.parent / t.session / "subagents" / "agent-a1.jsonl", t.session)
    agent.line(
        {
            **agent.entry("user", message={"role": "user", "content": f"look {BOTH}"}),
            "isSidechain": True,
            "agentId": "a1",
        }
    )
    t.result(use, f"Agent says {BOTH}")
    t.prompt(PRIVATE)  # a wholly private turn: nothing of it is kept, tokens or not
    t.bash(f"cat {WORD}.txt", f"{WORD} everywhere")
    t.say(f"It says {WORD}.")
    t.stopped()
    t.prompt("and on")
    t.say("Going on.")
    t.stopped()


def fired(s: Session) -> str:
    """All hooks with something to hide in each value."""
    more = {
        "custom_instructions": f"keep {BOTH}",
        "prompt": BOTH,
        "extra": BOTH,
        "cwd": f"/tmp/{TOKEN}",
        "session_title": BOTH,
    }
    printed = s.fire("SessionStart", source="startup", **more)
    printed += s.fire("UserPromptSubmit", **more)
    printed += s.fire("PreCompact", trigger="manual", **more)
    printed += s.fire("SessionStart", source="compact", model=TOKEN, **more)
    printed += s.fire("PostCompact", trigger="manual", compact_summary=f"<summary>{BOTH}</summary>", **more)
    s.t.boundary(summary=BOTH)
    printed += s.fire("UserPromptSubmit", **more)
    printed += s.fire("Stop", last_assistant_message=BOTH, **more)
    printed += s.fire("Nonsense", **more)
    return printed


def clean(name: str, data: bytes) -> None:
    for word in (WORD, TOKEN):
        assert word.encode() not in data, (name, word, around(data, word))


def around(data: bytes, word: str) -> bytes:
    at = data.find(word.encode())
    return data[max(at - 200, 0) : at + 80]


def clean_home(living: Living) -> int:
    """Every name and every byte below the data directory; returns how many files there were."""
    files = list(living.data.rglob("*"))
    for path in files:
        clean("a name", str(path).encode())
        if path.is_file() and not path.is_symlink():
            clean(str(path), path.read_bytes())
    return len(files)


def endless(living: Living, *words: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "endless_mode", *words],
        capture_output=True,
        cwd=living.home.root,  # what a command writes there is looked at with the home
        env={**living.environ, "CLAUDE_CONFIG_DIR": str(living.root / ".claude")},
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def test_nothing_private_is_in_any_byte_or_answer(living: Living) -> None:
    s = living.session()
    living.start()
    told(s)
    printed = fired(s)
    assert is_handoff(printed)
    clean("handoff", printed.encode())
    assert "Fix the parser." in (living.home.bottles / "s-1.md").read_text()
    assert clean_home(living) > 5
    for (event,) in living.rows("SELECT min(o.id) FROM observations o GROUP BY event_id"):
        clean(f"show {event}", endless(living, "show", str(event)))
    for words in (
        ("search", "parser"),
        ("search", "plan"),
        ("handoff", "s-1", "--follow"),
        ("bottle", "s-1"),
        ("bottle", str(s.t.path)),
        ("bottle", str(s.t.path), "--json", "-o", str(living.data / "again.md")),
        ("status", "--json"),
        ("sessions",),
        ("doctor",),
    ):
        out = endless(living, *words)
        assert out, words
        clean(" ".join(words), out)
    clean("drain", living.client.request("GET", "/api/sessions/drain-status?contentSessionId=s-1"))
    dry = json.dumps({"selection": {"text": "parser"}}).encode()
    clean("forget", living.client.request("POST", "/api/forget", dry, {"Content-Type": "application/json"}))
    s.ended()
    living.kill()
    clean_home(living)


def test_nothing_private_is_left_by_a_worker_that_is_killed(living: Living) -> None:
    s = living.session()
    living.start()
    told(s)
    s.pre_compact()
    living.kill()
    clean_home(living)
    living.start()
    assert is_handoff(s.compacted())
    clean_home(living)


def test_what_is_kept_while_no_worker_runs_holds_nothing_private(living: Living) -> None:
    s = living.session()
    told(s)
    living.home.create()
    (living.home.run / "failed").touch()  # no worker is started: events wait in the spool
    for event in ("UserPromptSubmit", "PreCompact", "Stop", "SessionEnd"):
        s.fire(event, prompt=BOTH, custom_instructions=BOTH, last_assistant_message=BOTH, title=BOTH, reason="other")
    assert list(living.home.spool.iterdir())
    clean_home(living)
    (living.home.run / "failed").unlink()
    living.start()
    eventually(lambda: not list(living.home.spool.iterdir()))
    clean_home(living)
