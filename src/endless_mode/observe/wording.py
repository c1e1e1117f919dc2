"""Words for lines: one physical line, short paths, a shell command that fits.

Everything here is pure and linear in the (bounded) text it gets.
"""

from __future__ import annotations

import re

from endless_mode.model import Digest

TITLE, COMMAND, OUTCOME = 760, 1_000, 400
#: A shell title holds a whole command with a message.
SHELL_TITLE = 3_100
#: A message given to a command in a heredoc (a commit's, a pull request's) is kept whole up to here.
MESSAGE = 2_000

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MESSAGE = re.compile(r"\$\(cat\s+<<")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w{1,60})\1")
_WRITES = re.compile(
    r"(?:^|[^<>&\d=-])>{1,2}\s*(['\"]?)([\w@.+~/-]*\w[\w@.+~/-]*)\1"
    r"|\btee\s+(?:-a\s+)?([\w@.+~/-]*\w[\w@.+~/-]*)"
)
#: The start of a redirection, found fast; ``2>&1``, ``->`` and the like are none.
_REDIRECTS = re.compile(r">(?<![<>&\d=-]>)")
_IN_PLACE = re.compile(r"\b(?:sed|perl)\s+(?:-\S+\s+)*-\w*i\b[^|;&\n]*?\s([\w@.+~/-]+\.\w{1,8})\s*(?:$|[|;&\n])")


def one_line(value: str) -> str:
    """No control character, no line break of any kind."""
    # All of them are unprintable, and to ask that of a text costs less than a pattern.
    return value if value.isprintable() else _CONTROL.sub(" ", value)


def short_lines(values: list[str], limit: int) -> list[str]:
    """Each value on one line of at most ``limit`` characters."""
    # Most are so already, which one look at all of them shows.
    whole = "".join(values)
    if whole.isprintable() and (len(whole) <= limit or max(map(len, values)) <= limit):
        return values
    return [clip(one_line(value), limit) for value in values]


def clip(value: str, limit: int) -> str:
    return value if len(value) <= limit else value[: limit - 1].rstrip() + "…"


def relative(path: str, cwd: str) -> str:
    """``path`` as seen from ``cwd`` when it lies inside, with whatever follows it (``:12,40``)."""
    base = cwd.rstrip("/\\")
    if len(base) > 1 and path.startswith(base):
        rest = path[len(base) :]
        if rest[:1] in ("/", "\\"):
            return rest[1:] or "."
        if not rest:
            return "."
    return path


def relatives(paths: list[str], cwd: str) -> list[str]:
    """:func:`relative` for each of the paths."""
    base = cwd.rstrip("/\\")
    return [relative(path, base) if path.startswith(base) else path for path in paths]


def inside(text: str, cwd: str) -> str:
    """A text with every path below ``cwd`` made relative."""
    base = cwd.rstrip("/\\")
    return text.replace(base + "/", "") if len(base) > 3 and base + "/" in text else text


def command_line(command: str, limit: int = COMMAND) -> str:
    """A command in one physical line: newlines as ``⏎``, heredoc bodies cut to their first lines."""
    command = command.strip()
    if "<<" in command:
        command = _without_bodies(command)
        if _MESSAGE.search(command):
            limit += MESSAGE
    if "\n" in command:
        lines = [line.strip() if line.startswith("\t") else line.rstrip() for line in command.split("\n")]
        command = " ⏎ ".join(filter(None, lines))
    shown = one_line(command)
    if len(shown) <= limit:
        return shown
    return f"{shown[: limit - 150].rstrip()} … {shown[-140:].lstrip()}"


def _without_bodies(command: str, shown: bool = True) -> str:
    """Heredoc bodies cut to their first lines, or (not ``shown``) taken out."""
    kept: list[str] = []
    body: list[str] = []
    waiting: list[str] = []
    message = False
    for line in command.split("\n"):
        if not waiting:
            kept.append(line)
            message = _MESSAGE.search(line) is not None
            waiting = [match[2] for match in _HEREDOC.finditer(line[:2_000])][:4]
        elif line.strip() == waiting[0]:
            kept += [*(_shortened(body, message) if shown else []), line]
            body = []
            waiting.pop(0)
        else:
            body.append(line)
    return "\n".join([*kept, *(_shortened(body, message) if shown else [])])


def _shortened(body: list[str], message: bool) -> list[str]:
    filled = [line for line in body if line.strip()]
    if message and sum(map(len, filled)) <= MESSAGE:
        return filled
    if len(filled) <= 3:
        return [clip(line, 200) for line in filled]
    return [*(clip(line, 140) for line in filled[:2]), f"… {len(body) - 2} lines"]


def written_by(command: str) -> list[str]:
    """Files a command redirects into or edits in place, as far as its text shows."""
    head = _without_bodies(command[:4_000], shown=False) if "<<" in command else command[:4_000]
    found: list[str] = []
    if "tee" in head or _REDIRECTS.search(head):
        found = [match[2] or match[3] for match in _WRITES.finditer(head)]
    if "sed" in head or "perl" in head:
        found += [match[1] for line in head.split("\n") for match in _IN_PLACE.finditer(line[:600])]
    return [path for path in dict.fromkeys(found) if path and not path.startswith("/dev/")][:12]


def joined(parts: list[str], limit: int, separator: str = ", ") -> str:
    """As many parts as fit, and how many more there are."""
    whole = separator.join(parts)
    if len(whole) + len(separator) <= limit:
        return whole
    shown: list[str] = []
    room = limit
    for part in parts:
        if shown and len(part) + len(separator) > room:
            return f"{separator.join(shown)} +{len(parts) - len(shown)}"
        shown.append(clip(part, max(room, 8)))
        room -= len(shown[-1]) + len(separator)
    return separator.join(shown)


def ended(digest: Digest) -> str:
    """How a use ended when it did not simply succeed."""
    if digest.status == "ok":
        return ""
    if digest.status == "denied":
        words = one_line(" ".join(digest.words[:2_000].split()))
        return f"denied by the user: {words}" if words else "denied by the user"
    if digest.status == "interrupted":
        return "interrupted by the user"
    if digest.status == "open":
        return "no result recorded"
    if digest.status == "background":
        return f"in the background, id {digest.task_id}" if digest.task_id else "in the background"
    return ""
