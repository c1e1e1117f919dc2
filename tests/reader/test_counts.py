"""What the store holds of each transcript, counted by the rules of the tables beside the transcripts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from endless_mode.ingest import IngestResult, ingest_file
from endless_mode.store import Store
from tests.reader import transcript
from tests.reader.files import FIXTURES, SETS, everything, label, table

#: Prompts that were typed while the model worked and then taken back into the input line: the table of the
#: public set counts them, a bottle must not hold them.
TAKEN_BACK = {
    "2.1.16-agents-beside.jsonl.gz": ["is the 3rd tool still running?", "??"],
    "2.1.37-many-prompts.jsonl.gz": [
        "can we add test coverage for these bugs?",
        "and maybe we should do the logging changes as a separate PR",
    ],
}


def counted(path: Path) -> tuple[IngestResult, Counter[str]]:
    with Store.temporary() as store:
        result = ingest_file(store, path)

        def count(one: str) -> int:
            return int(store.read(lambda db: db.execute(f"SELECT count(*) FROM {one}").fetchone()[0]))

        kinds = ("prompt", "queued", "command", "shell", "text", "interrupt", "plan")
        counts = Counter({kind: count(f"messages WHERE kind = '{kind}' AND withdrawn = ''") for kind in kinds})
        counts["queued alone"] = count(
            "messages WHERE kind = 'queued' AND withdrawn <> 'stands elsewhere' AND substr(text, 1, 1) <> '/'"
        )
        counts["calls"] = count("tool_events WHERE agent_id = '' AND name <> '!'")
        counts["boundaries"] = count("boundaries")
        return result, counts


RECORDED = [p for p in everything() if "2.1.197" in p.parts or "2.1.332" in p.parts]
PUBLIC = [p for p in everything() if p not in RECORDED]


@pytest.mark.parametrize("path", RECORDED, ids=label)
def test_recorded_transcripts_count_as_their_table_says(path: Path) -> None:
    row = table(FIXTURES / "recorded" / "COUNTS.tsv")[label(path).removeprefix("recorded/").removesuffix(".gz")]
    result, found = counted(path)
    got = {
        "prompts": found["prompt"],
        "queued": found["queued"],
        "texts": found["text"],
        "calls": found["calls"],
        "compactions": found["boundaries"],
        "commands": found["command"] + transcript.read(path).steering,
        "bash": found["shell"],
    }
    assert {k: str(v) for k, v in got.items()} == {k: row[k] for k in got}
    assert result.skipped == 0 and result.torn == 0


@pytest.mark.parametrize("path", PUBLIC, ids=label)
def test_public_transcripts_count_as_their_manifest_says(path: Path) -> None:
    manifest = SETS["public"] if SETS["public"].is_dir() else FIXTURES / "public"
    row = table(manifest / "MANIFEST.tsv")[label(path).removeprefix("public/")]
    reading = transcript.read(path)
    result, found = counted(path)
    got = {
        "genuine user messages": found["prompt"],
        "assistant text blocks": found["text"],
        "tool calls": found["calls"],
        "compactions": found["boundaries"],
        "queued prompts that are no user line": found["queued alone"],
        "slash commands": found["command"] + reading.steering,
        "bash inputs": found["shell"],
        "interrupts": found["interrupt"],
        "lines": result.lines,
        "objects": result.objects,
        "unparsable": result.skipped,
    }
    assert {k: str(v) for k, v in got.items()} == {k: row[k] for k in got}
    assert reading.taken_back == TAKEN_BACK.get(path.name, [])
