"""What git says of what it did: commits, pushes, merges, conflicts."""

from __future__ import annotations

import re

from endless_mode.clients.claude_code.digest.texts import unique

_LAST, _FIRST = 120, 40
_HEX = "0123456789abcdef"

#: What the line begins with, the line, and what is said of it.
_FORMS = (
    ("[", r"\[([^\]\n]+?) ([0-9a-f]{7,40})\] (.{1,160})", "committed {2} on {1}: {3}"),
    (_HEX, r"([0-9a-f]{7,40}\.\.\.?[0-9a-f]{7,40})\s+(\S+)\s+->\s+(\S+)", "{1} {2} → {3}"),
    ("+", r"\+ ([0-9a-f]{7,40}\.\.\.[0-9a-f]{7,40})\s+(\S+)\s+->\s+(\S+)", "forced {1} {2} → {3}"),
    ("*", r"\* \[new (branch|tag)\]\s+(\S+)\s+->\s+(\S+)", "new {1} {2} → {3}"),
    ("!", r"! \[(?:remote )?rejected\]\s+(\S+) -> (\S+) (.{0,100})", "rejected {1} → {2} {3}"),
    ("S", r"Switched to (?:a new )?branch '([^']{1,120})'", "on branch {1}"),
    ("S", r"(Successfully rebased and updated \S+|Saved working directory .{0,100})", "{1}"),
    ("H", r"HEAD is now at ([0-9a-f]{7,40}) (.{0,120})", "HEAD at {1} {2}"),
    ("U", r"Updating ([0-9a-f]{7,40}\.\.[0-9a-f]{7,40})", "updated {1}"),
    ("C", r"CONFLICT \(([^)]{1,40})\): (.{1,160})", "conflict ({1}): {2}"),
    ("AEnF", r"(Already up to date|Everything up-to-date|nothing to commit|Fast-forward)", "{1}"),
    ("D", r"(Dropped \S+ .{0,60}|Deleted branch .{0,80})", "{1}"),
    ("0123456789", r"(\d+ files? changed(?:, \d+ insertions?\(\+\))?(?:, \d+ deletions?\(-\))?)", "{1}"),
)
_BY_FIRST: dict[str, list[tuple[re.Pattern[str], str]]] = {}
for _first, _form, _words in _FORMS:
    for _character in _first:
        _BY_FIRST.setdefault(_character, []).append((re.compile(_form), _words))


def git_results(lines: list[str]) -> list[str]:
    """What git did, at most six things, in order."""
    found: list[str] = []
    for line in lines if len(lines) <= _FIRST + _LAST else lines[:_FIRST] + lines[-_LAST:]:
        line = line.strip()[:300]
        for pattern, words in _BY_FIRST.get(line[:1], ()):
            if match := pattern.match(line):
                found.append(words.format("", *match.groups()).strip())
                break
    return unique(found, 6)
