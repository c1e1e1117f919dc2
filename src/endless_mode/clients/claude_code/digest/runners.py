"""What test runners, linters, type checkers and builds say of how it ended, from their own summary lines.

Summary lines stand at the end of an output (or at its beginning, for short ones), so only so many lines of
both are looked at. The runner's own words are kept, cut down to the counts.
"""

from __future__ import annotations

import re

from endless_mode.clients.claude_code.digest.texts import clip, count, unique

_LAST, _FIRST = 160, 30
_DIGITS = "0123456789"

#: What a summary line begins with, and the line; its first filled group is what is kept.
_FORMS = (
    # pytest, playwright
    (
        f"={_DIGITS}",
        r"=*\s*((?:\d+ (?:failed|passed|skipped|errors?|xfailed|xpassed|deselected|warnings?|rerun)(?:, )?)+)"
        r"(?: in .*| \(.*)?$",
    ),
    ("=", r"=+ (no tests ran)|(==> .*BUILD (?:FAILED|SUCCEEDED).*)"),
    ("nN", r"([nN]o tests? (?:ran|found)\b.{0,60})"),
    # unittest
    ("R", r"(Ran \d+ tests? in .*)"),
    ("FO", r"((?:FAILED|OK) \([^)]*\))|(OK)$|(OK, but .*)|(FAILED \| \d+ passed.*)"),
    # jest, vitest, phpunit, maven, mypy's and turbo's totals
    ("T", r"(Tests?:?\s+\d+ .*)|(Test (?:Suites|Files):?\s+.*\d.*)|(Tests: \d+, Assertions: .*)"),
    ("T", r"(Tests run: \d+.*)|(Total errors: .*)|(Tasks: .*total)"),
    ("[", r"\[\w+\]\s+(Tests run: \d+.*|BUILD (?:SUCCESS|FAILURE).*)"),
    # mocha, playwright, bun
    (_DIGITS, r"(\d+ (?:passing|failing|pending|pass|fail|flaky|did not run|skipped|todo)\b.{0,30})$"),
    # node:test
    ("#ℹ", r"[#ℹ] ((?:pass|fail|cancelled|skipped) [1-9]\d*)$"),
    # cargo, deno
    ("t", r"test result: (.*?)(?:; finished.*)?$"),
    ("o", r"(ok \| \d+ passed.*)"),
    # rspec, mix, phpunit, gradle, ctest, formatters, linters
    (
        _DIGITS,
        r"(\d+ (?:examples?|tests?|doctests?|properties)(?: completed)?,.*(?:fail|skipped|completed).*)"
        r"|(\d+% tests passed.*)|(\d+ files? (?:would be )?(?:reformatted|left unchanged|already "
        r"formatted).*)"
        r"|(\d+ issues?[.:].*)|(\d+ errors?, \d+ warnings?.*)|(\d+ (?:problems?|offenses?).*)"
        r"|(\d+ files? inspected, .*)|(\d+ vulnerabilities.*)",
    ),
    # dotnet, swift
    ("PF", r"((?:Passed|Failed)!\s+-.*)"),
    ("E", r"(Executed \d+ tests?, .*)"),
    # linters and type checkers
    ("F", r"(Found \d+ (?:errors?|issues?|warnings?|problems?|diagnostics?|fixable).*)"),
    ("S", r"(Success: no issues found.*)|(Snapshots:\s+\d+ (?:failed|obsolete).*)"),
    ("A", r"(All checks passed!)|(All matched files use .*)"),
    ("✖×", r"[✖×]\s*(\d+ problems? .*)"),
    ("C", r"(Checked \d+ (?:source )?files? .*)|(Compiled (?:successfully|with warnings).*)"),
    ("d", r"(done \(passed successfully\))"),
    ("Y", r"(Your code has been rated at .*)"),
    # builds and installs
    ("B", r"(BUILD (?:SUCCESS(?:FUL)?|FAIL(?:URE|ED)).*)|(Build (?:succeeded|failed|complete).*)"),
    ("✓b", r"(?:✓ )?(built in .*)"),
    ("w", r"(webpack .*compiled .*)"),
    ("F", r"(Finished (?:`|dev|release|test|bench).*)"),
    ("e", r"(error: could not compile .*)"),
    ("G", r"(Generated \w+ app)"),
    ("m", r"(make(?:\[\d+\])?: \*\*\* .*)"),
    ("*", r"(\*\* BUILD \w+ \*\*)"),
    ("a", r"(added \d+ packages?.*)"),
    ("S", r"(Successfully (?:installed|built|tagged) .*)"),
)
#: Every form that begins with a number goes on like this, and most lines that begin with one do not.
_AFTER_NUMBER = r"(?=\d+[ %])"


def _forms(character: str) -> re.Pattern[str]:
    forms = "|".join(f"(?:{form})" for first, form in _FORMS if character in first)
    return re.compile(f"{_AFTER_NUMBER if character in _DIGITS else ''}(?:{forms})")


_BY_FIRST = {character: _forms(character) for character in {character for first, _ in _FORMS for character in first}}

_FOUND = re.compile(r".{0,80}\bfound (?:no issues|\d+ (?:issues?|warnings?|errors?|vulnerabilities)).*")
#: How long it took, and counts of nothing, say nothing later.
_TIMED = re.compile(
    r"\s*[(\[](?:took |in )?[\d.]+ ?m?s(?:ec\w*)?[)\]]|\s+in [\d.]+ ?[mµ]?s(?:econds?)?\b|;? finished in .*$"
    r"|[,;] 0 (?:ignored|measured|filtered out)"
)
_GO_PACKAGE = re.compile(r"(ok|FAIL)\s*\t(\S+)\t")
_GO_TEST = re.compile(r"--- (FAIL|PASS): ")


def summaries(printed: str, lines: list[str]) -> list[str]:
    """Summary lines of runners, linters and builds, at most five, in order; of an output and its lines."""
    found: list[str] = []
    tally = Tally()
    counting = "\t" in printed or "--- " in printed or "error TS" in printed
    seen = map(str.strip, lines if len(lines) <= _FIRST + _LAST else lines[:_FIRST] + lines[-_LAST:])
    if counting:
        telling = [
            line
            for line in seen
            if line[:1] in _BY_FIRST or line[:1] == "-" or "\t" in line or "found " in line or "error TS" in line
        ]
    elif "found " in printed:
        telling = [line for line in seen if line[:1] in _BY_FIRST or "found " in line]
    else:
        telling = [line for line in seen if line[:1] in _BY_FIRST]
    for line in telling:
        line = line[:300]
        if counting and tally.counts(line):
            continue
        forms = _BY_FIRST.get(line[0])
        if forms is not None and (match := forms.match(line)):
            found.append(_kept(match[match.lastindex or 0]))
        elif "found " in line and (match := _FOUND.match(line)):
            found.append(_kept(match[0]))
    return unique(found + tally.said(), 12)[-5:]


def _kept(line: str) -> str:
    return clip(_TIMED.sub("", line).strip().rstrip("=").strip(), 120)


class Tally:
    """Tools without a summary line, counted: go test's packages and tests, tsc's errors."""

    __slots__ = ("failed", "ok", "tests", "types")

    def __init__(self) -> None:
        self.ok: set[str] = set()
        self.failed: set[str] = set()
        self.tests = {"PASS": 0, "FAIL": 0}
        self.types = 0

    def counts(self, line: str) -> bool:
        """Whether the line was one of those counted here."""
        if "\t" in line and (package := _GO_PACKAGE.match(line)):
            (self.ok if package[1] == "ok" else self.failed).add(package[2])
        elif line.startswith("--- ") and (test := _GO_TEST.match(line)):
            self.tests[test[1]] += 1
        elif "error TS" in line:
            self.types += 1
        else:
            return False
        return True

    def said(self) -> list[str]:
        said = [count(self.types, "type error")] if self.types else []
        passed, failed = self.tests["PASS"], self.tests["FAIL"]
        if passed or failed:
            said.append(f"{failed} failed, {passed} passed" if failed else f"{passed} passed")
        packages = [count(len(self.ok), "package") + " ok"] if self.ok else []
        if self.failed:
            packages.append(f"{len(self.failed)} failed ({', '.join(sorted(self.failed)[:3])})")
        return [*said, ", ".join(packages)]
