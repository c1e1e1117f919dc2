"""Failing tests and the first meaningful error line of an output."""

from __future__ import annotations

import re

from endless_mode.clients.claude_code.digest.texts import clip, flat, unique

#: Lines looked at from the beginning and from the end.
_FIRST, _LAST = 150, 350


def _either(signs: str) -> tuple[str, ...]:
    return tuple(signs.split("|"))


_FAILING = re.compile(
    r"(?:FAILED|ERROR) (\S+::\S+(?: \S+\])?)"  # pytest
    r"|--- FAIL: (\S+)"  # go
    r"|test (\S+) \.\.\. FAILED"  # cargo
    r"|(?:FAIL|ERROR): (\w+ \([\w.]+\))"  # unittest
    r"|[✕✗✘]\s+(?:\d+\s+)?(.{3,120}?)(?: \(\d+ ?m?s\))?$"  # jest, mocha, playwright
    r"|● (.{3,120} › .{3,120})$"  # jest
    r"|×\s+(.{3,120}?)\s+\d+ ?ms$"  # vitest
    r"|FAIL\s+(\S+\.(?:[cm]?[jt]sx?|vue|svelte|py)(?: > .{1,120}| \[.*)?)(?:$| \()"  # vitest, jest
    r"|not ok \d+ (?:- )?(.{3,120})"  # TAP
    r"|\d+\) (test .{3,120}|\[\w+\] › .{3,160}|[\w\\]+::\w+)$"  # mix, playwright, phpunit
    r"|(rspec \./\S+)"
    r"|\s*Failed (\w\S+) \[[\d<]"  # dotnet
    r"|\d+ - (\S+) \(Failed\)"  # ctest
    r"|\(fail\) (.{3,120}?)(?: \[.*)?$"  # bun
)
#: What begins a line that sounds like an error, and what makes one wherever it stands (in lower case).
_ERROR = re.compile(
    r"\s*(?:E\s{2,}\S|(?:[\w.]*(?:Error|Exception|Warning: An error))\b[: ]|(?:uncaught |fatal |internal "
    r")?(?:error|fatal|panic|failed|failure|err!)\b\s*[:!\[(]"
    r"|error\b\s*\w|npm (?:error|ERR!)|Traceback|panicked at|thread '.*' panicked|\[?ERROR\]?\b|✖|✗|× "
    r"|FAILED\b|FATAL)",
    re.IGNORECASE,
)
_ERROR_INSIDE = re.compile(
    r"error(?:\[\w+\]| ts\d+| cs\d+)?:|\b(?:no such file|not found|permission denied|cannot |can't |could "
    r"not |undefined:|is not defined|is not a |unexpected |refused|denied|timed out|timeout|unrecognized"
    r"|unknown |invalid |does not exist|already in use|command not found|no matches found|conflict|must be|required)\b",
)
_ERROR_INSIDE_ANY = re.compile(_ERROR_INSIDE.pattern, re.IGNORECASE)
#: The same of a line that names its error.
_STRONG = re.compile(
    r"\s*(?:E\s{2,}\S|[\w.]*(?:Error|Exception)\b: |(?:error|fatal|panic)(?:\[\w+\])?: |npm error (?!code"
    r"|A complete|errno)\S|thread '.*' panicked)"
    r"|\S+:\d+(?::\d+)?:? .{0,20}(?:error|undefined|E\d{3}|F\d{3})|\S+\(\d+,\d+\): error|CONFLICT"
)
_STRONG_INSIDE = re.compile(r": error(?:\[\w+\]| TS\d+| CS\d+)?: |Error: ")
#: Every line worth a look contains one of these, in lower case; one that is so for what stands inside it, of the first.
_INSIDE_SIGNS = _either(
    "error|not found|no such|denied|cannot|can't|could not|undefined|not defined|is not a|unexpected|refused|timed out|"
    "timeout|unrecognized|unknown|invalid|not exist|in use|no matches|conflict|must be|required"
)
_OTHER_SIGNS = _either("fail|fatal|panic|exception|traceback|✖|✗|✘|✕|×|●|not ok|rspec|) test|› |e  ")
#: Every failing test has one of these, and every error beyond doubt.
_SURE_SIGNS = _either("error|fail|fatal|traceback|panic|✕|✗|✘|×|› |not ok|) test|::|rspec")
_PLAIN_SIGNS = _either(
    "error|fail|exception|traceback|cannot|can't|not found|denied|no such|undefined|invalid|fatal|no matches"
)
_NOISE = re.compile(
    r"^(?:\s*at |\s*File \"|Exit code \d+$|Traceback|(?:npm )?warn(?:ing)?\b|=+ (?:FAILURES|ERRORS|short)"
    r"|FAILURES|Error:?$|error: script |\s*ELIFECYCLE|\s*Error Context|npm error (?:code|errno|path|A "
    r"complete)|.*\b0 (?:errors|failed"
    r"|failures)\b)",
    re.IGNORECASE,
)
_DIAGNOSTIC = re.compile(r"\s*([\w./-]+\.\w{1,5}:\d+(?::\d+)?):? (.{3,300})")
_FILE_LINE = re.compile(r"File \"([^\"\n]{1,200})\", line (\d+)")
_LOCATION = re.compile(r"([\w@./+~-]{1,200}\.[A-Za-z]{1,5})(?::|\()(\d+)")


def scan(value: str, lines: list[str], bad: bool = True) -> tuple[list[str], str, str]:
    """``(failing tests, first meaningful error line, its place)`` of an output and its lines.

    The error is the first line that names its error; else the first that sounds like one. The place is in the
    line itself, or the last ``File ... line`` before it, or the first ``file:line`` shortly after it.
    ``bad``: something is known to be wrong, so a bare ``file:line: message`` counts as the error.
    """
    lowered = value.lower()
    inside = [sign for sign in _INSIDE_SIGNS if sign in lowered]
    signs = inside + [sign for sign in _OTHER_SIGNS if sign in lowered]
    seen = lines if len(lines) <= _FIRST + _LAST else lines[:_FIRST] + lines[-_LAST:]
    failing: list[str] = []
    strong = weak = -1
    for place, line in enumerate(seen if signs else []):
        line = line[:400]
        lowered = line.lower()
        if not _has(lowered, signs):
            continue
        match = _FAILING.match(line.strip())
        if match and len(failing) < 40:
            failing.append(flat(next((g for g in match.groups() if g), ""), 140))
        if strong >= 0:
            continue
        if _is_strong(line):
            strong = strong if _NOISE.match(line) else place
        elif weak < 0 and not match and _is_error(line, lowered, inside) and not _NOISE.match(line):
            weak = place
    if strong < 0 and (bad or failing) and (error := _diagnostic(seen)):
        return unique(failing, 12), error, ""
    best = strong if strong >= 0 else weak
    if best < 0:
        return unique(failing, 12), "", ""
    return unique(failing, 12), *_error_at(seen, best)


def may_be_sure(value: str) -> bool:
    """Whether :func:`scan` could find a failing test or an error beyond doubt in an output."""
    lowered = value.lower()
    return any(sign in lowered for sign in _SURE_SIGNS)


def first_bad(lines: list[str]) -> str:
    """The first line that names anything wrong, as it stands; what :func:`scan` prefers may be another."""
    lines = lines[:_FIRST]
    lowered = "\n".join(lines).lower()
    signs = [sign for sign in _PLAIN_SIGNS if sign in lowered]
    for line in lines if signs else []:
        if _has(line[:400].lower(), signs) and not _NOISE.match(line):
            return flat(line.strip().removeprefix("E  ").strip(), 200)
    return ""


def _is_strong(line: str) -> bool:
    return bool(_STRONG.match(line) or ("rror" in line and _STRONG_INSIDE.search(line)))


def _is_error(line: str, lowered: str, signs: list[str]) -> bool:
    # A pattern that ignores the case is slow; in ASCII a text in lower case serves as well.
    if not line.isascii():
        return bool(_ERROR.match(line) or _ERROR_INSIDE_ANY.search(line))
    return bool(_ERROR.match(line) or (_has(lowered, signs) and _ERROR_INSIDE.search(lowered)))


def _has(lowered: str, signs: list[str]) -> bool:
    for sign in signs:  # noqa: SIM110
        if sign in lowered:
            return True
    return False


def _error_at(lines: list[str], place: int) -> tuple[str, str]:
    line = lines[place]
    error = flat(line.strip().removeprefix("E  "), 300)
    if error.endswith(":") and place + 1 < len(lines):
        error = flat(f"{error} {lines[place + 1]}", 300)
    if _LOCATION.search(line[:400]):
        return error, ""
    for before in reversed(lines[max(0, place - 12) : place]):
        if found := _FILE_LINE.search(before[:300]):
            return error, f"{found[1]}:{found[2]}"
    for after in lines[place + 1 : place + 8]:
        if "node_modules" not in after and (found := _LOCATION.search(after[:300])):
            return error, f"{found[1]}:{found[2]}"
    return error, ""


def _diagnostic(lines: list[str]) -> str:
    """The first ``file:line: message``, as go test, linters and compilers write it; a test file's first."""
    first = ""
    for line in lines:
        if found := _DIAGNOSTIC.match(line[:400]):
            said = clip(f"{found[1]}: {found[2].strip()}", 300)
            if "test" in found[1].lower():
                return said
            first = first or said
    return first
