"""The best bottle of whatever has survived, by command and by the desk."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from endless_mode.bottle.entries import MODE_FULL, MODE_RECONSTRUCTED, MODE_STORED
from endless_mode.bottle.file import read_header
from endless_mode.cli import main
from endless_mode.deliver.desk import Caller, Desk
from endless_mode.deliver.ladder import best_document
from endless_mode.home import Home
from endless_mode.ingest import ingest_file
from endless_mode.settings import Settings, load
from endless_mode.store import Store
from tests.claude_mem.files import FRESH, SESSIONS, change, database, untouched

ID = SESSIONS[FRESH]


class World:
    """A data directory with claude-mem's database, a client's directory, and a transcript of the same session."""

    def __init__(self, root: Path) -> None:
        self.data = root / "data"
        self.mem = database(FRESH, self.data)
        self.config = root / "config"
        self.transcript = self.config / "projects" / "-p" / f"{ID}.jsonl"
        self.home = Home(self.data)

    def write_transcript(self) -> None:
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Add a retry to the uploader"}},
            {
                "type": "assistant",
                "uuid": "a1",
                "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "I will."}]},
            },
        ]
        stamped = [{**line, "sessionId": ID, "cwd": "/p", "timestamp": "2026-12-01T02:54:19.578Z"} for line in lines]
        self.transcript.write_text("".join(json.dumps(line) + "\n" for line in stamped))

    def store(self) -> Store:
        self.home.create()
        return Store.open(self.home.database)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setenv("CLAUDE_MEM_DATA_DIR", str(made.data))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(made.config))
    monkeypatch.setenv("HOME", str(tmp_path))
    return made


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_rung_by_rung(world: World) -> None:
    world.write_transcript()
    with world.store() as store:
        ingest_file(store, world.transcript, session_id=ID)
        best = best_document(world.home, store, ID)
        assert best.rung == "transcript" and best.document is not None and best.document.header.mode == MODE_FULL
        world.transcript.unlink()
        best = best_document(world.home, store, ID)
        assert best.rung == "stored" and best.document is not None and best.document.header.mode == MODE_STORED
        store.write(lambda db: db.execute("DELETE FROM sessions").rowcount)
        best = best_document(world.home, store, ID)
        assert (
            best.rung == "claude-mem" and best.document is not None and best.document.header.mode == MODE_RECONSTRUCTED
        )
        assert best_document(world.home, store, "nobody").rung == "nothing"
        world.mem.write_bytes(b"not a database at all" * 99)
        best = best_document(world.home, store, ID)
        assert best.rung == "nothing" and "claude_mem_damaged" in best.why


def test_the_command_makes_a_bottle_of_a_session_only_claude_mem_knows(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with untouched_database(world):
        about = asked(capsys, "bottle", ID)
    assert (about["rung"], about["mode"], about["assistant_messages"]) == ("claude-mem", MODE_RECONSTRUCTED, 0)
    assert "claude-mem" in str(about["why"])
    header = read_header(Path(str(about["path"])))
    assert header is not None and header.mode == MODE_RECONSTRUCTED


def untouched_database(world: World):  # type: ignore[no-untyped-def]
    """The data directory but for our own folder in it."""
    alone = world.data.parent / "alone"
    alone.mkdir()
    shutil.move(world.mem, alone / world.mem.name)
    world.mem.symlink_to(alone / world.mem.name)
    return untouched(alone)


def test_the_handoff_of_such_a_session_claims_no_authority(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    handoff = asked(capsys, "handoff", ID)
    text = str(handoff["text"])
    assert handoff["rung"] == "claude-mem"
    assert "partial reconstruction" in text and "Do not assume prior phrasings" in text
    assert "already delivered" not in text and "authoritative" not in text
    assert "Current task: Now add tests." in text and "> Completed: three tests" in text


def test_a_session_nobody_knows_is_an_error_that_says_where_was_looked(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bottle", "unknown", "--json"]) != 0
    assert "claude-mem" in capsys.readouterr().err


def test_a_better_bottle_stays(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.write_transcript()
    path = Path(str(asked(capsys, "bottle", ID)["path"]))
    before = path.read_bytes()
    world.transcript.unlink()
    about = asked(capsys, "bottle", ID)
    assert (about["rung"], about["kept"], about["mode"]) == ("claude-mem", True, MODE_FULL)
    assert path.read_bytes() == before
    assert "I will." in str(asked(capsys, "handoff", ID, "--follow")["pages"])
    assert main(["bottle", ID, "-o", str(path)]) != 0
    assert "better" in capsys.readouterr().err and path.read_bytes() == before


def test_observations_stand_in_a_full_bottle_unless_switched_off(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write_transcript()
    shown = str(asked(capsys, "bottle", ID, "--stdout")["text"])
    assert "[#cm:1] Uploader has no retry" in shown and "(generated by claude-mem — not verbatim)" in shown
    monkeypatch.setenv("CLAUDE_MEM_ENDLESS_ENRICH", "off")
    assert "claude-mem" not in str(asked(capsys, "bottle", ID, "--stdout")["text"])


def test_what_was_forgotten_does_not_come_back_from_claude_mem(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with world.store() as store:
        store.write(
            lambda db: (
                db.execute(
                    "INSERT INTO tombstones (platform_source, content_session_id, at) VALUES ('claude', ?, 1)", (ID,)
                ).rowcount
            )
        )
        assert best_document(world.home, store, ID).document is None
    assert main(["bottle", ID]) != 0
    assert "forgotten" in capsys.readouterr().err


def test_texts_that_were_forgotten_keep_claude_mem_out_of_bottles_from_before(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.write_transcript()
    with world.store() as store:
        store.write(lambda db: db.execute("INSERT INTO forgotten VALUES ('', 'k', 9999999999999)").rowcount)
        ingest_file(store, world.transcript, session_id=ID)
        best = best_document(world.home, store, ID)
        assert best.document is not None and "cm:" not in str(best.document.entries)
    assert "cm:" not in str(asked(capsys, "bottle", ID, "--stdout")["text"])


def desk(world: World, store: Store) -> Desk:
    def complain(name: str, session: str, error: BaseException) -> None:
        raise AssertionError(name) from error

    return Desk(world.home, load(world.home, {}), store, complain)


def test_a_compaction_without_a_transcript_is_handed_over_from_claude_mem_once(world: World) -> None:
    with world.store() as store:
        at = desk(world, store)
        caller = Caller(ID, world.transcript, "/p")
        text = at.after_compaction(caller)
        assert (
            "partial reconstruction" in text
            and "Last session summary" in text
            and "Current task: Now add tests" in text
        )
        assert at.after_compaction(caller) == ""


def test_a_compaction_of_an_unknown_session_gets_the_timeline_or_nothing(world: World) -> None:
    with world.store() as store:
        assert desk(world, store).after_compaction(Caller("unknown", None, "/p")) == ""


def test_nothing_is_handed_over_where_claude_mem_does_it(world: World) -> None:
    world.write_transcript()
    (world.config / "settings.json").write_text(
        json.dumps(
            {
                "hooks": {
                    "SessionStart": [
                        {"matcher": "compact|resume", "hooks": [{"command": "node /x/claude-mem/hook.js"}]}
                    ]
                }
            }
        )
    )
    with world.store() as store:
        at = desk(world, store)
        assert at.after_compaction(Caller(ID, world.transcript, "/p")) == ""
        at.settings = Settings(environ={"CLAUDE_MEM_ENDLESS_BESIDE": "always"})
        other = world.transcript.with_name("other.jsonl")
        other.write_text(
            world.transcript.read_text().replace(ID, "other").replace('"u1"', '"u2"').replace('"a1"', '"a2"')
        )
        assert "Endless Mode" in at.after_compaction(Caller("other", other, "/p"))


def test_a_database_without_the_session_changes_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.write_transcript()
    change(world.mem, "DELETE FROM sdk_sessions")
    with_it = asked(capsys, "bottle", ID, "--stdout")
    world.mem.unlink()
    without = asked(capsys, "bottle", ID, "--stdout")
    stamp = [str(about["text"]).split("rendered: ")[1].split("\n", 1)[1] for about in (with_it, without)]
    assert stamp[0] == stamp[1]


def test_ids_of_claude_mem_expand(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "[#cm:1–2]"]) == 0
    shown = capsys.readouterr().out
    assert "Any network failure aborts the run." in shown and "- src/retry.py" in shown and "not verbatim" in shown
    assert [one["id"] for one in json.loads(str_of(capsys, "show", "cm:3", "--json"))] == ["cm:3"]
    assert main(["show", "cm:99"]) != 0
    assert "no_such_observation" in capsys.readouterr().err


def str_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words]) == 0
    return capsys.readouterr().out
