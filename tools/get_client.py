#!/usr/bin/env python3
"""Install the Claude Code clients that the end-to-end tests drive, each at a pinned version.

    python tools/get_client.py            # both (about 240 MB and 385 MB)
    python tools/get_client.py npm        # the native client from npm
    python tools/get_client.py sdk        # the client bundled in the Python Agent SDK
    python tools/get_client.py --list     # what is installed, nothing is fetched

Standard library only. Each version lives in its own directory of the cache
(`$ENDLESS_CLIENT_CACHE`, else `~/.cache/endless-mode-tests`); `$ENDLESS_CLIENT_DIR` names the
directory of the npm client alone. A finished install is recognised and left as it is. The path of
each client goes to stdout, all talk to stderr.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

NPM_PACKAGE = "@anthropic-ai/claude-code"
NPM_VERSION = "2.1.197"
SDK_PACKAGE = "claude-agent-sdk"
SDK_VERSION = "0.2.189"
SDK_CLIENT_VERSION = "2.1.332"


@dataclass(frozen=True)
class Client:
    """One pinned client: its version, where it lives, and how to find and fetch its program."""

    source: str
    version: str
    directory: Path
    find: Callable[[Path], Path | None]
    fetch: Callable[[Path], None]

    def path(self) -> Path | None:
        """The client's program, or None when this version is not (wholly) installed."""
        return self.find(self.directory) if self.directory.is_dir() else None


def cache_root() -> Path:
    """The directory under which all clients are kept."""
    chosen = os.environ.get("ENDLESS_CLIENT_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "endless-mode-tests"


def clients() -> list[Client]:
    """The pinned clients, oldest first."""
    npm_dir = os.environ.get("ENDLESS_CLIENT_DIR")
    return [
        Client(
            "npm",
            NPM_VERSION,
            Path(npm_dir) if npm_dir else cache_root() / f"client-{NPM_VERSION}",
            find_npm,
            fetch_npm,
        ),
        Client(
            "sdk",
            SDK_CLIENT_VERSION,
            cache_root() / f"client-{SDK_CLIENT_VERSION}",
            find_sdk,
            fetch_sdk,
        ),
    ]


def find_npm(directory: Path) -> Path | None:
    """The native program in the platform's own package.

    npm's link is not used: it is a stub as long as the install script was not allowed to run.
    """
    found = sorted((directory / "node_modules" / "@anthropic-ai").glob("claude-code-*/claude"))
    return next((command for command in found if runs(command)), None)


def fetch_npm(directory: Path) -> None:
    """`npm install` of the pinned version into a directory of its own."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = f"{NPM_PACKAGE}@{NPM_VERSION}"
    run(["npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(directory), wanted])


def find_sdk(directory: Path) -> Path | None:
    """The program inside the SDK's wheel."""
    command = directory / "claude_agent_sdk" / "_bundled" / "claude"
    return command if runs(command) else None


def fetch_sdk(directory: Path) -> None:
    """`pip install --target` of the pinned SDK without its dependencies: only the file is wanted."""
    directory.mkdir(parents=True, exist_ok=True)
    options = ["--no-deps", "--no-compile", "--no-cache-dir", "--upgrade", "--quiet"]
    wanted = f"{SDK_PACKAGE}=={SDK_VERSION}"
    run([sys.executable, "-m", "pip", "install", *options, "--target", str(directory), wanted])
    command = directory / "claude_agent_sdk" / "_bundled" / "claude"
    if command.is_file():
        command.chmod(command.stat().st_mode | 0o111)


def runs(command: Path) -> bool:
    """A program is there and can be executed (it is not started: that would cost a second)."""
    return command.is_file() and os.access(command, os.X_OK)


def run(arguments: list[str]) -> None:
    """Run an installer with its output on our stderr; a missing installer is an error with a name."""
    if shutil.which(arguments[0]) is None:
        raise FileNotFoundError(f"{arguments[0]} is not installed")
    subprocess.run(arguments, check=True, stdout=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    """Install what was asked for and print one path per line; 1 when any of it is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("which", nargs="?", choices=["npm", "sdk", "all"], default="all")
    parser.add_argument("--list", action="store_true", help="install nothing")
    options = parser.parse_args(arguments)
    missing = 0
    for client in clients():
        if options.which not in ("all", client.source):
            continue
        path = client.path()
        if path is None and not options.list:
            print(f"installing client {client.version} into {client.directory}", file=sys.stderr)
            try:
                client.fetch(client.directory)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"client {client.version}: {error}", file=sys.stderr)
            path = client.path()
        if path is None:
            print(f"client {client.version} is not installed", file=sys.stderr)
            missing += 1
        else:
            print(path)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
