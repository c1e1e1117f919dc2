"""A settings file on disk: read, back up, replace in one step."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from pathlib import Path

from msgspec import Struct

from endless_mode.install.entries import InstallError

#: Newest backups that are kept beside the first.
KEPT = 4


class SettingsFile(Struct):
    """A settings file as it was read. ``path`` is where it really is; ``text`` is None when there is none.

    ``owner`` is (user, group); -1 stands for whoever runs this.
    """

    path: Path
    text: str | None
    mode: int = 0o600
    owner: tuple[int, int] = (-1, -1)


def read(place: Path) -> SettingsFile:
    """Read a settings file, following links; raise :class:`InstallError` when it cannot be read."""
    path = Path(os.path.realpath(place))
    try:
        info, text = path.stat(), path.read_bytes().decode("utf-8")
        return SettingsFile(path, text, stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid))
    except FileNotFoundError:
        return SettingsFile(path, None)
    except UnicodeDecodeError as error:
        raise InstallError(
            "settings_broken", f"{place} is not UTF-8.", "Save it as UTF-8, then run the command again."
        ) from error
    except OSError as error:
        raise InstallError(
            "settings_unreadable", f"{place} cannot be read: {error.strerror}.", "Check its owner and mode."
        ) from error


def backup(file: SettingsFile) -> Path | None:
    """Write what was read beside the file, under a name with the time; None when there was no file.

    The first backup and the newest :data:`KEPT` stay, those between go.
    """
    if file.text is None:
        return None
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    taken = [n for when, n, _ in _stamped(file.path) if when == stamp]
    first = taken[-1] + 1 if taken else 0  # a number that was given up is not used again: they tell the order
    for n in range(first, first + 1000):
        path = file.path.with_name(f"{file.path.name}.endless-{stamp}" + (f"-{n}" if n else ""))
        try:
            _write_new(path, file.text, file)
        except FileExistsError:
            continue
        except OSError as error:
            raise _not_written(path, error) from error
        for old in backups(file.path)[1:-KEPT]:
            with contextlib.suppress(OSError):
                old.unlink()
        return path
    raise InstallError("backup_failed", f"No name is free for a backup of {file.path}.", "Remove old backups.")


def backups(path: Path) -> list[Path]:
    """Our backups of a settings file, oldest first."""
    return [one for _, _, one in _stamped(path)]


def _stamped(path: Path) -> list[tuple[str, int, Path]]:
    """(time, number, place) of our backups of a settings file in their order."""
    known = re.compile(re.escape(path.name) + r"\.endless-(\d{8}T\d{6}Z)(?:-(\d+))?")
    found = [(match, one) for one in path.parent.iterdir() if (match := known.fullmatch(one.name))]
    return sorted((match[1], int(match[2] or 0), one) for match, one in found)


def check_writable(file: SettingsFile) -> None:
    """Raise :class:`InstallError` for a file that its owner made read-only: replacing it would undo that."""
    if file.text is not None and (not file.mode & 0o222 or not os.access(file.path, os.W_OK)):
        raise InstallError(
            "settings_read_only",
            f"{file.path} is read-only.",
            "Make it writable, or add the hooks where it is generated.",
        )


def replace(file: SettingsFile, text: str) -> None:
    """Put a new text in the file's place, unless the file has changed since it was read."""
    draft = file.path.with_name(f".{file.path.name}.endless-{os.getpid()}")
    try:
        draft.unlink(missing_ok=True)
        _write_new(draft, text, file)
        if read(file.path).text != file.text:
            raise InstallError(
                "settings_changed", f"{file.path} was changed by another program just now.", "Run the command again."
            )
        draft.replace(file.path)
    except OSError as error:
        raise _not_written(file.path, error) from error
    finally:
        draft.unlink(missing_ok=True)


def _write_new(path: Path, text: str, like: SettingsFile) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as out:
        with contextlib.suppress(PermissionError):  # only root may give files away
            os.fchown(fd, *like.owner)
        os.fchmod(fd, like.mode)
        out.write(text.encode("utf-8"))
        out.flush()
        os.fsync(fd)


def _not_written(path: Path, error: OSError) -> InstallError:
    return InstallError(
        "settings_not_written",
        f"{path} cannot be written: {error.strerror}.",
        "Check the owner and mode of its directory.",
    )
