"""The continuity bench: its reader, its measures and its command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from bench.continuity import arms, chain, measure, product, recall, stats, tokens
from bench.continuity.__main__ import main
from bench.continuity.calls import arguments, bare_line, bodies
from bench.continuity.cuts import Cut, Memory, cuts, needs
from bench.continuity.reader import Event, Session, load, parse
from bench.continuity.specifics import Haystack, specifics, stands

SHARED = Path(__file__).resolve().parents[2] / "shared" / "transcripts"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared transcripts are not here")


class Script:
    """Writes a transcript line by line; every line hangs on the one before."""

    def __init__(self, salt: str = "a", cwd: str = "/home/dev/proj") -> None:
        self.lines: list[str] = []
        self._ids = (f"{salt}{n}" for n in count(1))
        self._last: str | None = None
        self._cwd = cwd
        self._salt = salt

    def put(self, kind: str, **more: Any) -> str:
        uuid = next(self._ids)
        moment = f"2026-01-02T10:{len(self.lines) // 60:02}:{len(self.lines) % 60:02}.000Z"
        entry = {"type": kind, "uuid": uuid, "parentUuid": self._last, "timestamp": moment, "cwd": self._cwd}
        self.lines.append(json.dumps({**entry, "sessionId": self._salt, **more}))
        self._last = uuid
        return uuid

    def user(self, text: str, **more: Any) -> str:
        return self.put("user", message={"role": "user", "content": text}, **more)

    def says(self, text: str) -> str:
        return self.put("assistant", message={"id": "m", "content": [{"type": "text", "text": text}]})

    def calls(self, name: str, result: str, *, error: bool = False, file: Any = None, **given: Any) -> None:
        call = f"{self._salt}-call-{len(self.lines)}"
        block = {"type": "tool_use", "id": call, "name": name, "input": given}
        self.put("assistant", message={"id": "m", "content": [block]})
        answer = {"type": "tool_result", "tool_use_id": call, "content": result, "is_error": error}
        self.put("user", message={"content": [answer]}, toolUseResult={"file": file} if file else result)

    def reads(self, path: str, content: str, total: int | None = None) -> None:
        shown = {
            "filePath": path,
            "content": content,
            "startLine": 1,
            "totalLines": total or content.count("\n") + 1,
        }
        self.calls("Read", content, file=shown, file_path=path)

    def compacts(self, summary: str, preserved: tuple[str, ...] = ()) -> None:
        meta = {"trigger": "auto", "preservedMessages": {"uuids": list(preserved)}}
        last, self._last = self._last, None
        self.put("system", subtype="compact_boundary", logicalParentUuid=last, compactMetadata=meta)
        self.user(summary, isCompactSummary=True)

    def session(self, name: str = "s") -> Session:
        return parse(name, self.text().encode())

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def cut(self) -> Cut:
        return cuts(self.session(), "repo")[0]


def needed(script: Script, scope: str = "all") -> list[str]:
    session = script.session()
    return [use.token for use in needs(cuts(session, "repo")[0], Memory(session))[scope]]


def test_reader_takes_what_a_person_typed_and_nothing_the_client_wrote() -> None:
    script = Script()
    script.user("please fix it")
    script.user("a skill's body", isMeta=True)
    script.user("<task-notification>done</task-notification>")
    script.user("side", isSidechain=True)
    script.put("queue-operation", operation="enqueue", content="and the docs")
    script.put("queue-operation", operation="remove")
    script.put("queue-operation", operation="enqueue", content="never mind")
    script.put("queue-operation", operation="popAll")
    script.put("queue-operation", operation="enqueue", content="please fix it")
    assert [e.text for e in script.session().events if e.kind == "user"] == ["please fix it", "and the docs"]


def test_reader_survives_damage_and_counts_the_first_copy_of_a_uuid() -> None:
    script = Script()
    script.says("one")
    first = script.lines[0]
    data = f"{first}{first}\nnot json\n{first}\n" + json.dumps({"type": "summary"})
    assert [e.text for e in parse("s", data.encode()).events] == ["one"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("src/app/main.py", "path"),
        ("main.test.ts", "dotted"),
        ("load_user", "snake"),
        ("loadUser", "camel"),
        ("https://example.com/a?b=1", "url"),
        ("3fa9c1d0", "hash"),
        ("8123", "number"),
        ("2.14.3", "version"),
        ("ENOENT", "errno"),
        ("sha256sum", "mixed"),
        ("ticket-1234", "kebab"),
    ],
)
def test_specific_tokens_are_recognised_by_form(text: str, kind: str) -> None:
    assert specifics(f"see ({text}), then go on.") == {text: kind}


def test_plain_words_are_not_specific() -> None:
    assert specifics("Well-known words and/or JavaScript, e.g. 200 lines > /dev/null. Done. Then more") == {}


def test_a_token_stands_only_as_a_whole_word() -> None:
    assert stands("in src/load_user.py", "load_user")
    assert not stands("in reload_user", "load_user")
    assert stands("commit 3fa9c1d0aabbccdd", "3fa9c1d0")
    assert "app/main.py" in Haystack("edited /home/dev/proj/src/app/main.py")


def test_bodies_and_arguments_of_a_call_are_told_apart() -> None:
    bash = Event("call", "", 0, name="Bash", input={"command": "cat <<'EOF' > notes.txt\nsecret_body\nEOF"})
    assert "secret_body" in bodies(bash)
    assert "secret_body" not in arguments(bash)
    write = Event("call", "", 0, name="Write", input={"file_path": "/a/b.py", "content": "def inner_name(): ..."})
    assert (arguments(write), bodies(write)) == ("/a/b.py", "def inner_name(): ...")
    assert bare_line(write) == "- Write — /a/b.py"


def test_a_need_stood_before_is_used_later_and_was_not_given_back() -> None:
    script = Script()
    script.calls("Grep", "old_symbol other_symbol third_symbol", pattern="x")
    script.compacts("Summary: we worked.")
    script.user("look at other_symbol")
    script.says("using old_symbol, other_symbol and brand_new_symbol")
    script.calls("Bash", "third_symbol", command="rg old_symbol")
    script.says("third_symbol again")
    assert needed(script) == ["old_symbol"]
    assert needed(script, "arguments") == ["old_symbol"]


def test_needs_in_code_bodies_count_only_in_the_widest_scope() -> None:
    script = Script()
    script.calls("Bash", "helper_name", command="rg x")
    script.compacts("Summary.")
    script.calls("Edit", "ok", file_path="/home/dev/proj/z.py", old_string="helper_name()", new_string="y")
    assert needed(script) == ["helper_name"]
    assert needed(script, "no bodies") == []


def test_the_working_directory_is_never_needed_and_paths_are_relative_to_it() -> None:
    script = Script()
    script.reads("/home/dev/proj/src/load_it.py", "x")
    script.compacts("Summary: see src/load_it.py")
    script.calls("Bash", "", command="cd /home/dev/proj && ls /home/dev/proj/src/load_it.py")
    assert needed(script) == ["src/load_it.py"]
    assert "src/load_it.py" in Haystack(script.cut().summary)


def test_a_preserved_tail_is_given_to_the_client_and_needs_nothing() -> None:
    script = Script()
    script.says("lost_token stood here")
    kept = script.says("kept_token stood here")
    script.compacts("Summary.", preserved=(kept,))
    script.says("kept_token and lost_token")
    assert needed(script) == ["lost_token"]
    assert "kept_token" in arms.arm_texts(script.cut())["client"]


def test_the_client_gets_its_five_newest_files_back_as_they_are_now() -> None:
    script = Script()
    for n in range(6):
        script.reads(f"/home/dev/proj/file{n}.py", f"content number {n}\nsecond line")
    script.calls("Edit", "ok", file_path="/home/dev/proj/file5.py", old_string="content number 5", new_string="changed")
    script.reads("/home/dev/proj/large.py", "\n".join(f"line {n} = value_{n}" for n in range(3_000)))
    script.compacts("Summary.")
    text = arms.restored(script.cut().before)
    assert "content number 2" in text
    assert "content number 1" not in text
    assert "changed\nsecond line" in text
    assert "content number 5" not in text
    assert "large.py was read before" in text
    assert "value_7" not in text


def test_decisions_are_answers_refusals_plans_and_open_todos() -> None:
    script = Script()
    script.calls("AskUserQuestion", 'User has answered your questions: "Which?"="the blue one". Go on.', questions=[])
    refusal = "The user doesn't want to proceed with this tool use. The user said:\nnever touch the lock file"
    script.calls("Bash", refusal, error=True, command="rm lock")
    script.calls("ExitPlanMode", "ok", plan="# Plan\n- rewrite the parser first")
    todos = [
        {"content": "write the docs", "status": "pending"},
        {"content": "done already", "status": "completed"},
    ]
    script.calls("TodoWrite", "ok", todos=todos)
    script.calls("TaskCreate", "Task #7 created successfully: ship it", subject="ship the release")
    script.compacts("Summary.")
    found = recall.items(script.cut())
    assert found["answers"] == ["the blue one"]
    assert found["refusals"] == ["never touch the lock file"]
    assert found["plans"] == ["rewrite the parser first"]
    assert found["open todos"] == ["write the docs", "ship the release"]


def test_error_lines_are_the_first_line_that_names_an_error() -> None:
    assert recall.error_line("Exit code 1\nrunning\n\x1b[31mE  assert failed\x1b[0m\nmore") == "E assert failed"
    assert recall.error_line("Exit code 2\nnothing to see") == "nothing to see"


def test_recall_sees_through_quotes_lists_and_line_breaks() -> None:
    text = recall.Text("> \\# Heading of the message\n- run `make\n  test` twice")
    assert text.holds(recall.plain("# Heading of the message"))
    assert text.holds("run `make test` twice")
    assert not text.holds("run `make lint` twice")


def test_everything_meets_every_need_and_its_reduction_is_whole() -> None:
    script = Script()
    script.calls("Bash", "found_name in src/deep/place.py", command="rg first_word")
    script.compacts("Summary.")
    script.says("found_name, src/deep/place.py, first_word")
    rows = measure.run("repo", script.session(), chained=False, wanted=None, lossy="client")
    found = measure.shares(rows.rows)
    assert found["everything"][measure.NEED + "all"].pooled == 100
    assert found["everything"][measure.REDUCTION + "all"].pooled == 100
    assert found["client"][measure.NEED + "all"].pooled == 0
    assert {row["token"]: (row["best"], row["best_tool"]) for row in rows.lost} == {
        "found_name": ("result", "Bash"),
        "src/deep/place.py": ("result", "Bash"),
        "first_word": ("argument", "Bash"),
    }


def test_shares_are_pooled_and_their_interval_is_reproducible() -> None:
    pairs = [(1, 2), (0, 4), (6, 6), (0, 0)]
    found = stats.share(pairs, ["a", "a", "b", "b"])
    assert found is not None
    assert (round(found.pooled, 1), found.median) == (58.3, 50)
    assert (round(found.least, 1), found.most) == (16.7, 100)
    assert found.low <= found.pooled <= found.high
    assert found == stats.share(pairs, ["a", "a", "b", "b"])
    assert stats.share([(0, 0)], ["a"]) is None


def test_tokens_weigh_classes_of_characters() -> None:
    assert tokens.estimate("a" * 100) == 20
    assert tokens.estimate("1" * 100) == 86
    assert tokens.estimate("日" * 100) == 71
    assert tokens.estimate(" " * 100) == 1


def test_the_tail_of_a_text_fits_its_budget() -> None:
    text = "\n".join(f"line number {n}" for n in range(500))
    kept = arms.tail(text, 200)
    assert text.endswith(kept)
    assert 100 < tokens.estimate(kept) <= 200


def _sessions(salts: str) -> list[Session]:
    made = []
    for salt in salts:
        script = Script(salt, f"/home/dev/{salt}")
        for leg in range(3):
            script.user(f"request {salt}{leg} in /home/dev/{salt}/src")
            script.says(f"answer_{salt}{leg}")
            if leg < 2:
                script.compacts(f"Summary {salt}{leg}")
        made.append(script.session(salt))
    return made


def test_a_chain_is_one_plausible_transcript_and_always_the_same() -> None:
    [(_, chosen)] = chain.plan({"repo": _sessions("ab")}, 1)
    joined = chain.join("chain", chosen)
    assert joined.data == chain.join("chain", chosen).data
    entries = [json.loads(line) for line in joined.data.splitlines()]
    ids = [e["uuid"] for e in entries]
    assert len(set(ids)) == len(ids)
    assert all(e["parentUuid"] in ids[:n] or e["parentUuid"] is None for n, e in enumerate(entries))
    assert {e["sessionId"] for e in entries} == {entries[0]["sessionId"]}
    assert [e["timestamp"] for e in entries] == sorted(e["timestamp"] for e in entries)
    assert {e["cwd"] for e in entries} == {"/home/dev/a"}
    assert [c.leg for c in cuts(joined, "repo", chained=True)] == [1, 2, 3, 4]


def test_arms_of_the_product_are_left_out_while_it_is_not_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise NotImplementedError

    monkeypatch.setattr(product, "bottle", missing)
    monkeypatch.setattr(product, "handoff", missing)
    script = Script()
    script.says("some_word")
    script.compacts("Summary.")
    assert not [name for name in arms.arm_texts(script.cut()) if "bottle" in name or "handoff" in name]


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A stand-in product that hands over the last 900 characters of what PreCompact finds."""
    seen: list[str] = []

    def bottle(path: Path) -> str:
        seen.append(path.read_text())
        return seen[-1]

    monkeypatch.setattr(product, "bottle", bottle)
    monkeypatch.setattr(product, "handoff", lambda path, budget: (bottle(path)[-900:], f"pages {budget}"))
    yield seen


def test_the_product_sees_the_file_up_to_the_boundary(connected: list[str]) -> None:
    script = Script()
    script.says("some_word")
    script.compacts("Summary.")
    texts = arms.arm_texts(script.cut())
    assert set(connected) == {script.lines[0] + "\n"}
    assert texts["client + handoff + pages 30k"].endswith("pages 30000")
    assert texts["handoff"] in texts["client + handoff"]


def test_late_legs_are_checked_for_requests_and_decisions(connected: list[str]) -> None:
    [(_, chosen)] = chain.plan({"repo": _sessions("abc")}, 1)
    joined = chain.join("chain", chosen)
    found = measure.run("repo", joined, chained=True, wanted=["handoff"], lossy="")
    assert [check["leg"] for check in found.late] == [5, 6]
    assert all(check["last request"] and not check["original request"] for check in found.late)
    assert {row.arm for row in found.rows} == {"client", "handoff", "client + handoff"}


def test_the_command_prints_tables_and_writes_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = Script()
    script.calls("Bash", "found_name", command="rg word")
    script.compacts("Summary.")
    script.says("found_name")
    folder = tmp_path / "transcripts"
    folder.mkdir()
    (folder / "one.jsonl").write_text(script.text())
    out, lost = tmp_path / "out.json", tmp_path / "lost.jsonl"
    command = [
        "--transcripts",
        str(folder),
        "--json",
        str(out),
        "--losses",
        str(lost),
        "--losses-arm",
        "client",
    ]
    assert main(command) == 0
    assert "## Real sessions: 1 compactions" in capsys.readouterr().out
    assert json.loads(out.read_text())["real"]["shares"]["client"]["needed later: all"]["pooled"] == 0
    assert [json.loads(line)["token"] for line in lost.read_text().splitlines()] == ["found_name"]


def test_the_command_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--transcripts", str(tmp_path / "nowhere")]) == 2
    assert "--transcripts" in capsys.readouterr().err


@needs_shared
def test_the_reader_counts_like_the_manifest() -> None:
    rows = [line.split("\t") for line in (SHARED / "MANIFEST.tsv").read_text().splitlines()]
    columns = {name: n for n, name in enumerate(rows[0])}
    for row in rows[1:]:
        if "/" in row[0]:
            continue
        session = parse(row[0], load(SHARED / row[0]))
        kinds = [e.kind for e in session.events]
        calls = {e.call_id for e in session.events if e.kind == "call"}
        assert kinds.count("assistant") == int(row[columns["assistant text blocks"]]), row[0]
        assert kinds.count("boundary") == int(row[columns["compactions"]]), row[0]
        assert len(calls) == int(row[columns["tool calls"]]), row[0]
        queued = int(row[columns["queued prompts that are no user line"]])
        prompts = int(row[columns["genuine user messages"]])
        assert prompts <= kinds.count("user") <= prompts + queued, row[0]


def test_what_cannot_be_read_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = (Path(__file__).parents[1] / "demo" / "session.jsonl.gz").read_bytes()
    (tmp_path / "whole.jsonl.gz").write_bytes(whole)
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:2_000])
    (tmp_path / "folder.jsonl").mkdir()
    odd = [
        '{"type":"user","message":1,"uuid":"a"}',
        '{"type":"assistant","message":{"content":1,"usage":{"input_tokens":"x"}},"uuid":"b"}',
        '{"type":"system","subtype":"compact_boundary","compactMetadata":"x","uuid":"c"}',
    ]
    (tmp_path / "odd.jsonl").write_text("\n".join(odd) + "\n")
    assert main(["--transcripts", str(tmp_path), "--arms", "summary"]) == 0
    told = capsys.readouterr().err
    assert "cut.jsonl.gz is left out" in told and "folder.jsonl is left out" in told and "no MANIFEST.tsv" in told


@pytest.mark.parametrize(
    "options", [["--json", "/nowhere/x.json"], ["--losses", "/nowhere/x"], ["--chained", "-1"], ["--arms", "nosuch"]]
)
def test_what_cannot_be_meant_is_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        ended = main(["--transcripts", str(Path(__file__).parents[1] / "demo"), *options])
    except SystemExit as stopped:
        ended = int(str(stopped.code))
    assert ended == 2
    assert options[-1] in capsys.readouterr().err or "--chained" in options
