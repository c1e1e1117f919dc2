"""Checks of our own side: home, settings, worker, database."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import stat
import subprocess
import time
from pathlib import Path

from endless_mode import __version__
from endless_mode.errors import WorkerError
from endless_mode.home import passed_over
from endless_mode.hook import hook
from endless_mode.install.checks import Check, Context, plural
from endless_mode.store import open_reader
from endless_mode.store.migrations import MIGRATIONS
from endless_mode.worker.client import WorkerClient
from endless_mode.worker.messages import newer

#: File systems that another machine holds: locks and shared memory of SQLite cannot be relied upon there.
NETWORK = {
    *(
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afpfs",
        "webdav",
        "9p",
        "drvfs",
        "afs",
        "ceph",
        "lustre",
        "beegfs",
        "gpfs",
    ),
    *("glusterfs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone"),
}
_SMALL = 64 << 20


def settings(at: Context) -> Check:
    """Our settings file can be read and its values fit."""
    if wrong := passed_over():
        return Check(
            "settings", "fail", f"CLAUDE_MEM_DATA_DIR is {wrong!r}, which is no absolute path, and is passed over.",
            "Give it a path that begins with /, or unset it.",
        )  # fmt: skip
    at.settings.all()
    if at.settings.problems:
        problem = at.settings.problems[0]
        return Check("settings", "warn", f"{problem.message} The default is used.", problem.hint)
    if not at.settings.enabled:
        return Check(
            "settings", "fail", "Endless Mode is switched off: CLAUDE_MEM_ENDLESS_MODE_ENABLED.", "Set it to true."
        )
    return Check("settings", "ok", "The settings can be read.")


def command(_: Context) -> Check:
    """The model can call ``endless`` by its name."""
    there = shutil.which("endless")
    if there is None:
        return Check(
            "command", "warn", "`endless` is not on the PATH, so the model cannot expand lines with `endless show`.",
            "Put the directory of the program on the PATH, e.g. with `uv tool install` or `pipx install`.",
        )  # fmt: skip
    return Check("command", "ok", f"The command is {there}.")


def modes(at: Context) -> Check:
    """Nobody else can read what is in the home."""
    wrong = exposed(at.home.root)
    if wrong:
        return Check(
            "modes", "fail", f"{plural(len(wrong), 'place')} in the home can be used by others: {wrong[0]}.",
            "Run `endless doctor --fix`.",
        )  # fmt: skip
    return Check("modes", "ok", "The home is closed to others." if at.home.root.exists() else "There is no home yet.")


def exposed(root: Path) -> list[Path]:
    """Files and directories of the home that others can use, or that are not ours."""
    if not root.exists():
        return []
    wrong = []
    for path in [root, *root.rglob("*")]:
        try:
            info = path.lstat()
        except OSError:
            continue
        open_to_others = not stat.S_ISLNK(info.st_mode) and info.st_mode & 0o077
        # A file in a closed directory is out of reach, but it may be moved or the directory opened.
        if open_to_others or info.st_uid != os.getuid():
            wrong.append(path)
    return wrong


def filesystem(at: Context) -> Check:
    """The home is on a disk of this machine."""
    kind = kind_of(at.home.root)
    if kind in NETWORK:
        return Check(
            "filesystem", "warn", f"The home is on a network file system ({kind}), where the database may be damaged.",
            "Set CLAUDE_MEM_DATA_DIR to a directory on a local disk, then run `endless install` again.",
        )  # fmt: skip
    return Check("filesystem", "ok", f"The home is on {kind or 'a local file system'}.")


def kind_of(path: Path, table: str | None = None) -> str:
    """The type of the file system that holds a path; empty when unknown. ``table`` is Linux's ``mountinfo``."""
    real = os.path.realpath(path)
    mounts = _mounts_linux(table) if table is not None or platform.system() == "Linux" else _mounts_bsd()
    best = max(
        (
            (len(place), n, kind)
            for n, (place, kind) in enumerate(mounts)
            if (real + "/").startswith(place.rstrip("/") + "/")
        ),
        default=(0, 0, ""),
    )
    return best[2]


def worker(at: Context) -> Check:
    """A worker answers, or can be started when one is needed."""
    waiting = len(list(at.home.spool.glob("*.http"))) if at.home.spool.is_dir() else 0
    try:
        health = WorkerClient(at.home, timeout=3.0).health()
    except WorkerError:
        if at.home.failed.exists():
            return Check("worker", "fail", "The worker could not start.", "See `endless worker logs`.")
        if waiting:
            return Check(
                "worker",
                "warn",
                f"No worker runs, and {plural(waiting, 'event')} wait for one.",
                "Run `endless worker start`.",
            )
        return Check("worker", "ok", "No worker runs; the next hook starts one.")
    if health.version != __version__:
        age = "newer" if newer(health.version, __version__) else "older"
        return Check(
            "worker", "warn", f"The worker is of the {age} version {health.version}; this is {__version__}.",
            "Run `endless doctor --fix`: it is asked to stop, and the next hook starts this version.",
        )  # fmt: skip
    return Check("worker", "ok", f"The worker answers: version {health.version}, pid {health.pid}.")


def socket(at: Context) -> Check:
    """The socket is where only this user can reach it."""
    path = at.home.socket
    if path.parent.exists() and not hook.trusted(os.fsencode(path), os.fsencode(at.home.root)):
        return Check(
            "socket", "fail", f"{path.parent} is not yours alone, so no hook talks to the worker.", "Remove it."
        )
    return Check("socket", "ok", f"The socket is {path}.")


def database(at: Context) -> Check:
    """The database opens and is whole."""
    if not at.home.database.exists():
        return Check("database", "ok", "There is no database yet.")
    try:
        db = open_reader(at.home.database)
        try:
            done = {name for (name,) in db.execute("SELECT name FROM migrations")}
            sound = "ok"
            if at.home.database.stat().st_size < _SMALL:
                sound = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
        finally:
            db.close()
    except (sqlite3.Error, OSError) as error:
        return Check("database", "fail", f"The database cannot be read ({type(error).__name__}).", _REBUILD)
    if sound != "ok":
        return Check("database", "fail", "The database is damaged.", _REBUILD)
    ours = {migration.__name__ for migration in MIGRATIONS}
    if done - ours:
        return Check("database", "warn", "The database is of a newer version.", "Update Endless Mode.")
    if ours - done:
        return Check("database", "ok", "The database opens; the worker brings it up to this version when it starts.")
    return Check("database", "ok", "The database opens and is whole.")


_REBUILD = "Stop the worker; at its next start it puts the file aside, and the transcripts give the rest."


def sqlite(_: Context) -> Check:
    """The SQLite library has what we need."""
    version = sqlite3.sqlite_version
    numbers = sqlite3.sqlite_version_info
    with sqlite3.connect(":memory:") as db:
        options = {name for (name,) in db.execute("PRAGMA compile_options")}
    if numbers < (3, 37, 0):
        return Check("sqlite", "fail", f"SQLite {version} is too old.", "Use a Python with SQLite 3.37 or later.")
    if "ENABLE_FTS5" not in options:
        return Check(
            "sqlite", "warn", f"SQLite {version} has no full-text search (FTS5).", "Search falls back to a slower way."
        )
    return Check("sqlite", "ok", f"SQLite {version} with full-text search (FTS5).")


def leftovers(at: Context) -> Check:
    """No damaged database was put aside lately."""
    aside = sorted(at.home.root.glob("endless.db.damaged-*")) if at.home.root.exists() else []
    old = [p for p in aside if not p.name.endswith(("-wal", "-shm"))]
    if old:
        day = time.strftime("%Y-%m-%d", time.gmtime(old[-1].stat().st_mtime))
        return Check(
            "leftovers",
            "warn",
            f"A damaged database was put aside on {day}: {old[-1]}.",
            "Delete it when nothing is missing.",
        )
    return Check("leftovers", "ok", "Nothing was put aside.")


def _mounts_linux(table: str | None) -> list[tuple[str, str]]:
    try:
        lines = (Path("/proc/self/mountinfo").read_text() if table is None else table).splitlines()
    except OSError:
        return []
    mounts = []
    for line in lines:
        left, _, right = line.partition(" - ")
        if len(words := left.split(" ")) > 4 and right:
            place = words[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
            mounts.append((place, right.split(" ")[0]))
    return mounts


def _mounts_bsd() -> list[tuple[str, str]]:
    try:
        lines = subprocess.run(
            ["/sbin/mount"], capture_output=True, text=True, timeout=5, check=False
        ).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return []
    mounts = []
    for line in lines:
        left, _, options = line.rpartition(" (")
        mounts.append((left.partition(" on ")[2], options.partition(",")[0].rstrip(")")))
    return mounts
