"""The plugin: its hooks, its wrapper, and what the real client says of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.get_client import Client, clients

from endless_mode import __version__
from endless_mode.install.entries import TIMEOUTS, our_interpreter

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugin"
HOOKS = json.loads((PLUGIN / "hooks/hooks.json").read_text())["hooks"]
ENDLESS = f'#!/bin/sh\necho called >>"$HOME/calls"\nexec "{sys.executable}" -I -m endless_mode "$@"\n'


def fire(home: Path, event: str, root: Path = PLUGIN, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """Run a hook as the client does."""
    return subprocess.run(
        ["/bin/sh", "-c", HOOKS[event][0]["hooks"][0]["command"]],
        input=b'{"session_id": "s-1"}',
        capture_output=True,
        timeout=60,
        check=False,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "CLAUDE_PLUGIN_ROOT": str(root), **environ},
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A directory with a command ``endless`` in it that counts its calls."""
    directory = tmp_path / "bin dir"
    directory.mkdir()
    (directory / "endless").write_text(ENDLESS)
    (directory / "endless").chmod(0o755)
    return directory


def test_the_plugin_has_the_hooks_that_an_install_has() -> None:
    assert {event: entries[0]["hooks"][0]["timeout"] for event, entries in HOOKS.items()} == TIMEOUTS
    assert json.loads((PLUGIN / ".claude-plugin/plugin.json").read_text())["version"] == __version__
    assert os.access(PLUGIN / "hooks/run.sh", os.X_OK)


def test_without_the_program_a_hook_says_and_blocks_nothing(tmp_path: Path) -> None:
    done = fire(tmp_path, "PreCompact")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_vanished_plugin_directory_blocks_nothing(tmp_path: Path) -> None:
    done = fire(tmp_path, "PreCompact", root=tmp_path / "gone")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_program_is_found_once_and_then_remembered(tmp_path: Path, program: Path) -> None:
    path, data = f"{program}:/usr/bin:/bin", tmp_path / "plugin data"
    probe = tmp_path / "probe.py"
    for _ in range(2):
        done = fire(tmp_path, "Stop", PATH=path, CLAUDE_PLUGIN_DATA=str(data), CLAUDE_MEM_INTERNAL="1")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "calls").read_text() == "called\n"
    interpreter, hook = (data / "programs").read_text().splitlines()
    assert Path(hook).name == "run.py"

    probe.write_text("import sys; print(*sys.argv[1:], sys.stdin.read())")
    (data / "programs").write_text(f"{interpreter}\n{probe}\n")
    done = fire(tmp_path, "Stop", PATH=path, CLAUDE_PLUGIN_DATA=str(data))
    assert done.stdout == b'claude-code Stop {"session_id": "s-1"}\n'


def test_a_remembered_program_that_is_gone_is_looked_for_again(tmp_path: Path, program: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "programs").write_text(f"/gone/python\n{PLUGIN}/hooks/run.sh\n")
    fire(tmp_path, "Stop", PATH=f"{program}:/usr/bin:/bin", CLAUDE_PLUGIN_DATA=str(data), CLAUDE_MEM_INTERNAL="1")
    assert (data / "programs").read_text().splitlines()[0] == our_interpreter()


@pytest.mark.parametrize("client", clients(), ids=lambda client: client.version)
@pytest.mark.parametrize("directory", [PLUGIN, ROOT], ids=["plugin", "marketplace"])
def test_the_real_client_accepts_it(client: Client, directory: Path, tmp_path: Path) -> None:
    program = client.path()
    if program is None:
        pytest.skip(f"client {client.version} is not installed")
    done = subprocess.run(
        [program, "plugin", "validate", directory],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Validation passed" in done.stdout
