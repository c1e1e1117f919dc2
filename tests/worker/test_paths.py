"""Only transcripts under an allowed directory are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from endless_mode.errors import BadRequest
from endless_mode.paths import check_transcript, client_root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "config/projects").mkdir(parents=True)
    return tmp_path / "config"


def test_a_transcript_under_a_root_is_accepted_before_it_exists(root: Path) -> None:
    path = root / "projects/p/s.jsonl"
    assert check_transcript(str(path), [Path("/nowhere"), root]) == path


def test_a_root_that_is_itself_a_link_is_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    path = tmp_path / "link/projects/s.jsonl"
    assert check_transcript(str(path), [tmp_path / "link"]) == root / "projects/s.jsonl"


def test_a_link_out_of_the_root_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").touch()
    (root / "s.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (root / "dir").symlink_to(tmp_path)
    (root / "loop.jsonl").symlink_to(root / "loop.jsonl")
    (tmp_path / "shadow").touch()
    (root / "name.jsonl").symlink_to(tmp_path / "shadow")
    for name in ("s.jsonl", "dir/secret.jsonl", "name.jsonl", "projects/../../secret.jsonl"):
        with pytest.raises(BadRequest):
            check_transcript(str(root / name), [root])


@pytest.mark.parametrize(
    "path",
    [
        "",
        "relative.jsonl",
        "/etc/passwd",
        "/etc/x.jsonl",
        "{root}",
        "{root}/x.json",
        "{root}-x/s.jsonl",
        "{root}/a\0.jsonl",
        "{root}/.jsonl",
    ],
)
def test_anything_else_is_refused(root: Path, path: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_transcript(path.format(root=root), [root])
    assert caught.value.code == "transcript_refused"


@pytest.mark.parametrize("wide", ["/", "", "relative"])
def test_a_root_that_is_everything_or_nothing_allows_nothing(root: Path, wide: str) -> None:
    with pytest.raises(BadRequest):
        check_transcript(str(root / "s.jsonl"), [Path(wide)])


def test_the_clients_own_directory_is_its_configuration_directory() -> None:
    assert client_root("claude-code", "/c", "/h") == Path("/c")
    assert client_root("claude-code", "", "/h") == Path("/h/.claude")
    assert client_root("another", "", "/h") is None
    assert client_root("claude-code", "", "") is None
