"""The transcript generator of the benches: deterministic, well-formed, and shaped like real files."""

import json
from pathlib import Path

import pytest
from bench.shares import TARGETS, measure, objects
from bench.synthetic import append, generate


@pytest.fixture(scope="module", params=["old", "new"])
def transcript(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("generated") / f"{request.param}.jsonl"
    generate(path, 12, seed=3, style=request.param, long_line_mb=1)
    return path


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    first, second, other = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    generate(first, 1, seed=5)
    generate(second, 1, seed=5)
    generate(other, 1, seed=6)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != other.read_bytes()


def test_the_size_is_the_wanted_one_and_the_reported_one(transcript: Path, tmp_path: Path) -> None:
    assert 12e6 <= transcript.stat().st_size < 13.5e6
    assert generate(tmp_path / "x", 0.5) == (tmp_path / "x").stat().st_size


def test_every_line_is_whole_json_and_nothing_is_lost_between_objects(transcript: Path) -> None:
    for line, found in objects(transcript):
        assert line.endswith("\n")
        dumped = sum(len(json.dumps(entry, ensure_ascii=False, separators=(",", ":"))) for entry in found)
        assert dumped == len(line) - 1


def test_parents_stand_before_their_children_and_every_call_has_one_result(transcript: Path) -> None:
    seen: set[str] = set()
    calls: list[str] = []
    results: list[str] = []
    for _, found in objects(transcript):
        for entry in found:
            if "uuid" not in entry or entry["uuid"] in seen:
                continue
            assert entry["parentUuid"] is None or entry["parentUuid"] in seen
            seen.add(entry["uuid"])
            content = entry.get("message", {}).get("content")
            for block in content if isinstance(content, list) else ():
                if block["type"] == "tool_use":
                    calls.append(block["id"])
                elif block["type"] == "tool_result":
                    results.append(block["tool_use_id"])
                    assert "toolUseResult" in entry
    assert len(calls) > 500
    assert len(set(calls)) == len(calls)
    assert sorted(calls) == sorted(results)


def test_the_old_style_keeps_the_shares_of_real_transcripts(tmp_path: Path) -> None:
    generate(tmp_path / "t", 30, seed=1)
    figures = measure(tmp_path / "t")
    for name, slack in (
        ("toolUseResult, % of characters", 4),
        ("tool_use + tool_result, % of characters", 3),
        ("progress, % of lines", 4),
        ("progress, % of characters", 5),
        ("tool calls, per MB", 8),
        ("mean line, characters", 350),
        ("failed results, %", 2),
        ("timestamps that step back, % of lines", 1.5),
    ):
        target = TARGETS[name]
        assert target is not None
        assert figures[name] == pytest.approx(target, abs=slack), name


def test_a_new_style_file_has_attachments_and_no_progress(tmp_path: Path) -> None:
    generate(tmp_path / "t", 3, style="new")
    types = {entry["type"] for _, found in objects(tmp_path / "t") for entry in found}
    assert {"attachment", "user", "assistant", "system", "queue-operation", "last-prompt"} <= types
    assert "progress" not in types


def test_the_long_line_has_the_wanted_length(transcript: Path) -> None:
    longest = max(len(line) for line, _ in objects(transcript))
    assert 1_000_000 <= longest < 1_005_000


def test_appending_leaves_the_old_bytes_and_continues_chain_and_session(transcript: Path) -> None:
    before = transcript.read_bytes()
    added = append(transcript, 100, seed=9)
    after = transcript.read_bytes()
    assert after.startswith(before)
    assert 100_000 <= added == len(after) - len(before) < 400_000
    old = [e for _, found in objects(transcript) for e in found]
    fresh = [json.loads(line) for line in after[len(before) :].decode().splitlines()]
    chained = [e for e in fresh if "uuid" in e]
    known = {e["uuid"] for e in old[: -len(fresh)] if "uuid" in e}
    assert chained[0]["parentUuid"] in known
    assert {e["sessionId"] for e in chained} == {next(e["sessionId"] for e in old if "sessionId" in e)}
    assert len({e.get("version") for e in old if "uuid" in e}) == 1
    assert not known & {e["uuid"] for e in chained}
