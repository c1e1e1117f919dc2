"""Install and uninstall: the steps, with their effects."""

from __future__ import annotations

import compileall
import contextlib
import fcntl
import os
import shutil
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from endless_mode import __version__
from endless_mode.deliver.eligible import installed_at
from endless_mode.errors import EndlessError, WorkerError
from endless_mode.home import Home
from endless_mode.install import file, look, record
from endless_mode.install.entries import (
    InstallError,
    data_dir_of,
    hook_entries,
    hook_file,
    is_our_rule,
    our_interpreter,
    rules,
)
from endless_mode.install.merge import EMPTY, Trace, checked, found, install, uninstall
from endless_mode.worker.client import WorkerClient


class Outcome(Struct):
    """What was done to one settings file, or would be.

    ``hooks`` and ``rules``: whether any of ours are in it after an install, or were before an uninstall.
    """

    settings: str
    changed: bool
    backup: str | None = None
    text: str | None = None
    hooks: bool = False
    rules: bool = False


def settings_path(project: bool) -> Path:
    """The settings file we write to: the user's, or the project's own that is not shared."""
    if project:
        return Path.cwd() / ".claude" / "settings.local.json"
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "settings.json"


def install_into(home: Home, place: Path, *, dry_run: bool = False, rules_only: bool = False) -> Outcome:
    """Put our hooks and rules into a settings file and note it in the home.

    Raises:
        InstallError: the file cannot be changed; it is as it was.
        HomeError: the home cannot be used; nothing was done.
    """
    known = record.load(home)
    now = file.read(place)
    before = EMPTY if now.text is None else now.text
    trace = None if now.text is None else _trace(home, now)
    after, made = install(before, str(place), {} if rules_only else hook_entries(_pinned(home)), rules(home), trace)
    outcome = Outcome(str(now.path), after != now.text, None, after if dry_run else None, *_ours(after, place))
    if dry_run:
        return outcome
    if outcome.changed:
        file.check_writable(now)
    home.create()
    if now.text is None:
        made.new_file, made.new_directory = True, _make_directory(now.path.parent)
    if outcome.changed:
        saved = file.backup(now)
        outcome.backup = str(saved) if saved else None
        file.replace(now, after)
    if not known.settings:
        (home.root / "installed").unlink(missing_ok=True)  # a home of an earlier install: what came between is not ours
    installed_at(home)
    known.version, known.interpreter, known.hook = __version__, our_interpreter(), str(hook_file())
    known.at = known.at or int(time.time() * 1000)
    known.settings[str(now.path)] = made
    record.save(home, known)
    compileall.compile_dir(hook_file().parents[1], quiet=2)
    return outcome


def uninstall_from(home: Home, place: Path, *, dry_run: bool = False) -> Outcome:
    """Take our hooks and rules out of a settings file. A file that we made and that holds nothing else goes too."""
    now = file.read(place)
    homes, trace = _homes(home, now.path), None if now.text is None else _trace(home, now)
    after = None if now.text is None else uninstall(now.text, str(place), trace)
    ours = _ours(now.text or EMPTY, place)
    outcome = Outcome(str(now.path), after != now.text, None, after if dry_run else None, *ours)
    if dry_run:
        return outcome
    if outcome.changed and after is not None:
        file.check_writable(now)
        if trace is not None and trace.new_file and after.split() in (["{}"], ["{", "}"]):
            _remove_file(now.path, trace)
        else:
            saved = file.backup(now)
            outcome.backup = str(saved) if saved else None
            file.replace(now, after)
    for one in homes:
        _strike_out(one, now.path)
    if not record.load(home).settings:
        (home.root / "installed").unlink(missing_ok=True)
    return outcome


def home_named(place: Path) -> Home | None:
    """The home that the hooks in a settings file name; None where they leave it to the default, or there are none.

    A project's file can come from anybody, so a directory counts only when it has itself noted the install.
    """
    data = {data_dir_of(hook) for hooks in found(look.settings_of(place)).values() for hook in hooks} - {""}
    named = Home(Path(data.pop())) if len(data) == 1 else None
    return named if named is not None and os.path.realpath(place) in record.load(named).settings else None


def ours_in(place: Path) -> tuple[bool, bool]:
    """Whether hooks and rules of ours are in a settings file that can be read."""
    return _ours_of(look.settings_of(place))


def _ours(text: str, place: Path) -> tuple[bool, bool]:
    return _ours_of(checked(text, str(place)))


def _ours_of(value: dict[str, Any]) -> tuple[bool, bool]:
    return bool(found(value)), any(map(is_our_rule, value.get("permissions", {}).get("allow", [])))


def _homes(home: Home, path: Path) -> list[Home]:
    """This home, and the one that the hooks in a file name: an install may have been made with another data directory."""
    return [home, home_named(path) or Home(Path.home() / ".claude-mem")]


def _trace(home: Home, now: file.SettingsFile) -> Trace | None:
    """How to undo the install in a file."""
    return next((t for one in _homes(home, now.path) if (t := record.load(one).settings.get(str(now.path)))), None)


def _strike_out(home: Home, path: Path) -> None:
    """Note that nothing of ours is in a settings file any more."""
    known = record.load(home)
    if known.settings.pop(str(path), None) is not None:
        record.save(home, known)
        if not known.settings:
            (home.root / "installed").unlink(missing_ok=True)


def stop_worker(home: Home, seconds: float = 40.0) -> bool:
    """Ask the worker to end and wait until it has, with what it still had to write; return whether there was one."""
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(home.lock.open("rb"))
            WorkerClient(home).stop()
        except (OSError, WorkerError):
            return False
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.02)
    return True


def purge(home: Home) -> bool:
    """Delete the home with everything in it; return whether there was one."""
    if not home.root.exists():
        return False
    if home.root.is_symlink() or home.root.name != "endless":
        raise EndlessError(
            "home_is_link", f"{home.root} is a link; it was not deleted.", "Delete what it points to by hand."
        )
    shutil.rmtree(home.root)
    if not home.socket.is_relative_to(home.root):
        shutil.rmtree(home.socket.parent, ignore_errors=True)
    return True


def _pinned(home: Home) -> str:
    """A data directory that was chosen by environment is written into the hooks: the client may lack the variable."""
    return str(home.data_dir) if os.environ.get("CLAUDE_MEM_DATA_DIR", "").startswith("/") else ""


def _make_directory(directory: Path) -> bool:
    made = not directory.exists()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InstallError(
            "settings_not_written", f"{directory} cannot be made: {error.strerror}.", "Check its parents."
        ) from error
    return made


def _remove_file(path: Path, trace: Trace) -> None:
    path.unlink(missing_ok=True)
    if trace.new_directory:
        with contextlib.suppress(OSError):
            path.parent.rmdir()
