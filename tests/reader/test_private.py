"""Nothing private reaches the bottle or the disk, wherever in a transcript it stands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from endless_mode.bottle.session import render_session
from endless_mode.ingest import ingest_file
from endless_mode.store import Store
from tests.reader.checker import conversation, slots
from tests.reader.world import World

NAME = "0f0f0f0f-0000-4000-8000-000000000000.jsonl"
MARKER = "zq7Marker"
loose = settings(deadline=None, suppress_health_check=list(HealthCheck))

OPEN = [
    "<private>",
    "<PRIVATE>",
    "<Private >",
    '<private reason="x">',
    "<private\n>",
    "<system-reminder>",
    "<claude-mem-context>",
]
CLOSE = [
    "</private>",
    "</PRIVATE>",
    "</private >",
    "</ private>",
    "</private\n>",
    "</system-reminder>",
    "</claude-mem-context>",
]


@st.composite
def hiding(draw: Any) -> str:
    """A text with the marker inside a private stretch: nested, in any case, closed or not."""
    n = draw(st.integers(0, len(OPEN) - 1))
    name = 0 if n < 5 else n - 4
    end = draw(st.sampled_from(CLOSE[:5])) if name == 0 else CLOSE[4 + name]
    inner = draw(
        st.sampled_from(
            [MARKER, f"a {MARKER}\nb", f"<private>x</private> {MARKER}", f"<b>{MARKER}</b>", f"\n\n{MARKER}\n"]
        )
    )
    body = OPEN[n] + inner + draw(st.sampled_from([end, "", end, f"<private>{MARKER}</private>{end}"]))
    before, after = draw(st.sampled_from(["", "before ", "line\n"])), draw(st.sampled_from(["", " after", "\nline"]))
    return before + body + (after if body.endswith(end) else "")


def held(world: World, agent: bytes = b"") -> tuple[str, bytes]:
    """The bottle, and every byte the database leaves on disk, before and after it is put in order."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "transcript", NAME)
        path.parent.mkdir()
        path.write_bytes(world.bytes())
        if agent:
            beside = path.with_suffix("") / "subagents"
            beside.mkdir(parents=True)
            (beside / "agent-a1.jsonl").write_bytes(agent)
        home = Path(folder, "home")
        home.mkdir()
        with Store.open(home / "endless.db") as store:
            text = render_session(store, ingest_file(store, path).session, 0).text
            disk = b"".join(file.read_bytes() for file in home.iterdir())
        disk += b"".join(file.read_bytes() for file in home.iterdir())
        return text, disk


def edit(text: str, patch: list[str]) -> dict[str, Any]:
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": len(patch), "lines": patch}
    return {"filePath": "/home/dev/proj/x.py", "oldString": "a", "newString": text, "structuredPatch": [hunk]}


def notice(world: World, summary: str, result: str) -> None:
    world.call("Bash", {"command": "sleep 5", "run_in_background": True})
    world.result("Command running in background with ID: b1", {"stdout": "", "backgroundTaskId": "b1"})
    note = f"<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n<summary>{summary}</summary>\n"
    world.user(f"{note}<result>{result}</result>\n</task-notification>", origin={"kind": "task-notification"})


def tool(
    name: str, arguments: dict[str, Any], result: Any = "ok", detail: Any = None, error: bool = False
) -> Callable[[World], None]:
    def write(world: World) -> None:
        world.call(name, arguments)
        world.result(result, detail, error)

    return write


def queued(world: World, text: str, *how: str) -> None:
    world.operation("enqueue", text)
    for operation in how:
        world.operation(operation)


REFUSAL = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
#: Every place of a transcript that text can stand in.
PLACES: dict[str, Callable[[World, str], Any]] = {
    "prompt": lambda w, t: w.typed(f"see {t}"),
    "prompt in blocks": lambda w, t: w.typed([{"type": "text", "text": "see"}, {"type": "text", "text": t}]),
    "slash command": lambda w, t: w.typed(f"<command-name>/fix</command-name><command-args>x {t}</command-args>"),
    "shell": lambda w, t: (w.typed(f"<bash-input>echo {t}</bash-input>"), w.user(f"<bash-stdout>x {t}</bash-stdout>")),
    "assistant": lambda w, t: w.said({"type": "text", "text": t}),
    "tool input": lambda w, t: tool("Bash", {"command": f"echo {t}", "description": t})(w),
    "tool output": lambda w, t: tool("Bash", {"command": "env"}, t, {"stdout": t, "stderr": t})(w),
    "tool output in blocks": lambda w, t: tool("Bash", {"command": "env"}, [{"type": "text", "text": t}])(w),
    "failed tool": lambda w, t: tool("Bash", {"command": "env"}, f"Exit code 1\n{t}", f"Error: {t}", True)(w),
    "edit": lambda w, t: tool("Edit", {"file_path": "/home/dev/proj/x.py", "old_string": t, "new_string": t}, "ok", edit(t, []))(w),
    "patch": lambda w, t: tool("Edit", {"file_path": "/home/dev/proj/x.py", "old_string": "a", "new_string": "b"}, "ok",
                               edit("b", [f"+{line}" for line in f"x = 1\n{t}".split("\n")]))(w),
    "patch with a tag of its own line": lambda w, t: tool("Edit", {"file_path": "/home/dev/proj/x.py", "old_string": "a", "new_string": "b"}, "ok",
                               edit("b", ["-old", "+<private>", f"+{MARKER} = {MARKER}()", "+</private>"]))(w),
    "write": lambda w, t: tool("Write", {"file_path": f"/home/dev/proj/{t}.py", "content": t}, "ok", {"type": "create", "content": t})(w),
    "read": lambda w, t: tool("Read", {"file_path": "/home/dev/proj/x.py"}, "1\tx\n2\t" + t.replace("\n", "\n3\t"), None)(w),
    "grep": lambda w, t: tool("Grep", {"pattern": t}, f"x.py:3:{t}", {"mode": "content", "content": t, "filenames": [t]})(w),
    "todo": lambda w, t: tool("TodoWrite", {"todos": [{"content": t, "status": "pending", "activeForm": t}]})(w),
    "task": lambda w, t: tool("TaskCreate", {"subject": t, "description": t}, t, {"task": {"id": "1", "subject": t}})(w),
    "agent": lambda w, t: tool("Task", {"description": t, "prompt": t, "subagent_type": "x"}, t, {"status": "completed", "content": t})(w),
    "unknown tool": lambda w, t: tool("mcp__x__y", {"a": {"b": [t]}, t: 1}, t, [{"type": "text", "text": t}])(w),
    "question": lambda w, t: tool("AskUserQuestion", {"questions": [{"question": t, "header": t, "options": [{"label": t, "description": t}]}]},
                                  t, {"answers": {t: t}, "annotations": {t: {"notes": t}}})(w),
    "plan": lambda w, t: tool("ExitPlanMode", {"plan": f"# Plan\n{t}"}, f"## Approved Plan:\n{t}", {"plan": t, "filePath": t})(w),
    "refusal": lambda w, t: tool("Write", {"file_path": "/x", "content": "y"}, f"{REFUSAL}no {t}", None, True)(w),
    "queued": lambda w, t: queued(w, f"also {t}"),
    "queued and taken back": lambda w, t: queued(w, f"also {t}", "popAll"),
    "queued and delivered": lambda w, t: (queued(w, f"also {t}", "remove"), w.chain(
        "attachment", attachment={"type": "queued_command", "prompt": f"also {t}", "commandMode": "prompt"})),
    "hook": lambda w, t: w.chain("attachment", attachment={"type": "hook_success", "hookEvent": "SessionStart", "content": t, "stdout": t}),
    "our hook": lambda w, t: w.chain("attachment", attachment={
        "type": "hook_success", "hookEvent": "SessionStart", "content": f"# [claude-mem] Endless Mode\n{t}\n(Endless Mode handoff abc)"}),
    "summary": lambda w, t: w.user(f"This session is being continued. {t}", isCompactSummary=True),
    "titles": lambda w, t: w.lines.extend([{"type": "ai-title", "aiTitle": t}, {"type": "summary", "summary": t}, {"type": "custom-title", "customTitle": t}]),
    "notification": lambda w, t: notice(w, t, t),
    "notification across fields": lambda w, t: notice(w, "done <private>", f"{MARKER}</private>"),
    "branch and directory": lambda w, t: w.said({"type": "text", "text": "x"}) or w.lines[-1].update(gitBranch=t, cwd=f"/home/{t}", version=t),
    "unknown entry": lambda w, t: w.lines.append({"type": "news", "content": t, "uuid": "n1"}),
    "no entry": lambda w, t: w.lines.append({"type": "system", "subtype": "informational", "content": t, "uuid": "n2"}),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@given(hiding())
@example(f"<private>{MARKER}</private>")
@example(f"x <private>\n{MARKER}\n</private> y")
@settings(loose, max_examples=25)
def test_private_text_is_neither_in_the_bottle_nor_on_disk(place: str, text: str) -> None:
    world = World()
    world.typed("begin")
    PLACES[place](world, text)
    world.said({"type": "text", "text": "The end."})
    world.typed("and on")
    bottle, disk = held(world)
    assert MARKER not in bottle
    assert MARKER.encode() not in disk
    assert "and on" in bottle


#: Places whose text is kept nowhere: taken back or not, what is of no use is not stored.
NOT_KEPT = {
    "hook",
    "our hook",
    "unknown entry",
    "no entry",
    "patch with a tag of its own line",
    "notification across fields",
}


@pytest.mark.parametrize("place", [p for p in PLACES if p not in NOT_KEPT])
def test_the_same_text_without_a_tag_does_reach_the_disk(place: str) -> None:
    world = World()
    world.typed("begin")
    PLACES[place](world, MARKER)
    assert MARKER.encode() in held(world)[1]


def work(world: World) -> None:
    """What a turn may hold; all of it carries the marker, none of it a tag."""
    world.said(
        {"type": "text", "text": f"I do {MARKER}"},
        {"type": "tool_use", "id": "t0", "name": "Bash", "input": {"command": MARKER}},
    )
    world.answer_call("t0", MARKER, {"stdout": MARKER}, False)
    for place in ("edit", "question", "plan", "refusal", "todo", "notification", "titles"):
        PLACES[place](world, MARKER)
    inner = {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "id": "p1", "name": "Write", "input": {"file_path": MARKER}}]},
    }
    world.chain("progress", data={"type": "agent_progress", "message": inner})


TURNS: dict[str, Callable[[World, str], Any]] = {
    "prompt": lambda w, t: w.typed(t),
    "blocks": lambda w, t: w.typed([{"type": "text", "text": t}]),
    "with an open file": lambda w, t: w.typed(
        [{"type": "text", "text": "<ide_opened_file>The user opened the file /a/b.py in the IDE.</ide_opened_file>"}, {"type": "text", "text": t}]),
    "with an image": lambda w, t: w.typed([{"type": "image", "source": {}}, {"type": "text", "text": t}]),
    "shell": lambda w, t: (w.typed(f"<bash-input>{t}</bash-input>"), w.user(f"<bash-stdout>{MARKER}</bash-stdout>")),
    "delivered in mid-turn": lambda w, t: queued(w, t, "remove"),
    "delivered in mid-turn with a line of its own": lambda w, t: (queued(w, t, "remove"), w.chain(
        "attachment", attachment={"type": "queued_command", "prompt": t, "commandMode": "prompt"})),
    "queued and sent": lambda w, t: (queued(w, t, "dequeue"), w.typed(t)),
    "sent twice": lambda w, t: (w.typed(t), w.lines.append(w.lines[-1])),
}  # fmt: skip


@pytest.mark.parametrize("kind", TURNS)
@pytest.mark.parametrize(
    "text",
    [f"<private>{MARKER}</private>", f" <PRIVATE>{MARKER}", f"<private>{MARKER}</private>\n<private>x</private>"],
)
@pytest.mark.parametrize("also", ["", "typed in between"])
def test_a_wholly_private_prompt_hides_its_turn_and_one_mark_remains(kind: str, text: str, also: str) -> None:
    world = World()
    world.typed("begin")
    world.said({"type": "text", "text": "Begun."})
    TURNS[kind](world, text)
    work(world)
    if also:
        queued(world, also, "remove")
        world.chain("attachment", attachment={"type": "queued_command", "prompt": also, "commandMode": "prompt"})
        work_again = {"type": "text", "text": f"More of {MARKER}"}
        world.said(work_again)
    world.typed("and on")
    world.said({"type": "text", "text": "Onwards."})
    bottle, disk = held(world)
    assert MARKER not in bottle
    assert MARKER.encode() not in disk
    said = [s.text for s in slots(bottle)]
    assert said == ["begin", "Begun.", *([also] if also else []), "and on", "Onwards."]
    marks = [line for line in conversation(bottle)[0] if line.startswith("*— private:")]
    assert len(marks) == 1


def test_what_a_subagent_did_for_a_private_prompt_stays_out_too() -> None:
    world = World()
    world.typed("begin", promptId="p-open")
    world.typed(f"<private>{MARKER}</private>", promptId="p-private")
    world.typed("and on", promptId="p-later")

    def agent(prompt: str, word: str) -> bytes:
        call = {
            "type": "tool_use",
            "id": f"toolu_{word}",
            "name": "Write",
            "input": {"file_path": f"/home/dev/proj/{word}.py", "content": word},
        }
        result = [{"type": "tool_result", "tool_use_id": f"toolu_{word}", "content": "ok"}]
        lines = [
            {"type": "user", "isSidechain": True, "promptId": prompt, "message": {"content": f"task {word}"}},
            {"type": "assistant", "isSidechain": True, "message": {"content": [call]}},
            {"type": "user", "isSidechain": True, "promptId": prompt, "message": {"content": result}},
        ]
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    _, disk = held(world, agent("p-open", "opened") + agent("p-private", MARKER) + agent("p-later", "later"))
    assert MARKER.encode() not in disk
    assert b"opened.py" in disk and b"later.py" in disk


def test_an_answer_that_is_one_plain_text_is_cleaned_like_any_other() -> None:
    world = World()
    world.typed("begin")
    message = {
        "id": "m1",
        "model": "m",
        "role": "assistant",
        "content": "shown <private>/srv/merger_plan.csv</private> on",
    }
    world.chain("assistant", message=message)
    text, disk = held(world)
    assert "shown" in text and "merger_plan" not in text and b"merger_plan" not in disk


def test_what_is_put_together_from_clean_parts_is_cleaned() -> None:
    world = World()
    world.typed("begin")
    secret = "Zx9vQ2mK7pLw4RtY88aa"
    questions = [
        {
            "question": "Which one?",
            "header": "DB password",
            "options": [{"label": "DB_PASSWORD", "description": secret}],
        },
        {"question": "And then?", "header": "Next", "options": [{"label": "Stop", "description": "now"}]},
    ]
    world.call("AskUserQuestion", {"questions": questions})
    world.result("answered", {"questions": questions, "answers": {"Which one?": secret, "And then?": "Stop"}})
    world.typed("go on")
    with TemporaryDirectory() as folder:
        path = Path(folder, NAME)
        path.write_bytes(world.bytes())
        with Store.open(Path(folder, "endless.db")) as store:
            text = render_session(store, ingest_file(store, path).session, 0).text
            said = store.read(lambda db: db.execute("SELECT text FROM messages WHERE role = 'user'").fetchall())
    assert "Stop" in text and secret not in text
    assert secret not in str(said)


SECRET = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
#: Outputs in which a secret only comes together when colours or line breaks go, and what must not be left of it.
PUT_TOGETHER = {
    "a colour in it": f"\x1b[35m.env\x1b[m\x1b[36m:\x1b[m3:GH=\x1b[01;31m\x1b[Kghp_\x1b[m\x1b[K{SECRET}",
    # Where an excerpt is kept, but neither names nor the outcome are taken from.
    "a colour in it, far inside": "a line\n" * 185 + f"GH=\x1b[1mghp_\x1b[m{SECRET}\n" + "a line\n" * 400,
    "a line that is written over": f"x\rGH=\x1b[1mghp_\x1b[m{SECRET}",
    "its name on the line above": f"Exit code 1\nError: api_key:\n{SECRET}",
}


@pytest.mark.parametrize("how", PUT_TOGETHER)
@pytest.mark.parametrize("name", ["Bash", "Task", "WebFetch", "mcp__x__y"])
def test_nothing_secret_is_put_together(how: str, name: str) -> None:
    world = World()
    world.typed("look")
    given = {
        "command": "grep -rn ghp_ .",
        "description": "look",
        "prompt": "look",
        "url": "https://a.b/c",
        "query": "x",
    }
    tool(name, given, PUT_TOGETHER[how], None, "Exit" in PUT_TOGETHER[how])(world)
    world.said({"type": "text", "text": "found"})
    text, disk = held(world)
    assert SECRET not in text
    assert f"ghp_{SECRET}".encode() not in disk and f"api_key: {SECRET}".encode() not in disk


def test_what_a_cut_directory_makes_a_tag_takes_its_own_line_alone() -> None:
    world = World()
    world.typed("look")
    tool("Bash", {"command": "git fetch all_targets"}, "done")(world)  # stands below the next, which is newer
    tool("Bash", {"command": "echo '<pri/home/dev/proj/vate>hid'"}, "done")(world)
    text, _ = held(world)
    assert "<private>" not in text and "git fetch all_targets" in text.partition("## Where things stand")[2]
