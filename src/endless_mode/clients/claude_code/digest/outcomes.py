"""What test runners, linters, builds and git say of how it ended, from their own summary lines.

Summary lines stand at the end of an output (or at its beginning, for short ones), so only so many lines
of both are looked at. The runner's own words are kept, cut down to the counts.
"""

from __future__ import annotations

import re

from endless_mode.clients.claude_code.digest.texts import clip, count, unique

_LAST, _FIRST = 160, 30

#: Lines that are the whole summary. Group 1 is what is kept.
_SUMMARY = re.compile(
    r"(?:"
    # pytest; ruff format, black
    r"=*\s*((?:\d+ (?:failed|passed|skipped|errors?|xfailed|xpassed|deselected|warnings?|rerun|subtests "
    r"passed)(?:, )?)+)(?: in .*| \(.*)?$"
    r"|=+ (no tests ran)"
    r"|(no tests? (?:ran|found)\b.{0,60})"
    r"|(\d+ files? (?:would be )?(?:reformatted|left unchanged|already formatted).*)"
    # unittest
    r"|(Ran \d+ tests? in .*)|((?:FAILED|OK) \([^)]*\))|(OK)$"
    # jest, vitest
    r"|(Tests?:?\s+\d+ .*)|(Test (?:Suites|Files):?\s+.*\d.*)|(Snapshots:\s+\d+ (?:failed|obsolete).*)"
    # mocha, playwright, bun
    r"|(\d+ (?:passing|failing|pending|pass|fail|flaky|did not run|skipped|todo)\b.{0,30})$"
    # node:test, TAP
    r"|[#ℹ] ((?:pass|fail|cancelled|skipped) [1-9]\d*)$"
    # cargo, deno
    r"|test result: (.*?)(?:; finished.*)?$|((?:ok|FAILED) \| \d+ passed.*)"
    # rspec, mix, phpunit, dotnet, maven, gradle, ctest, swift
    r"|(\d+ (?:examples?|tests?|doctests?|properties)(?: completed)?,.*(?:failures?|failed|skipped"
    r"|completed).*)"
    r"|(Tests: \d+, Assertions: .*)|(OK, but .*)|((?:Passed|Failed)!\s+-.*)|(?:\[\w+\]\s+)?(Tests run: \d+.*)"
    r"|(BUILD (?:SUCCESS(?:FUL)?|FAIL(?:URE|ED)).*)|(\d+% tests passed.*)|(Executed \d+ tests?, .*)"
    # linters and type checkers
    r"|(Found \d+ (?:errors?|issues?|warnings?|problems?|diagnostics?|fixable).*)|(Success: no issues "
    r"found.*)|(All checks passed!)"
    r"|[✖×]\s*(\d+ problems? .*)|(\d+ (?:issues|issue)[.:].*)|(\d+ errors?, \d+ warnings?.*)|(Checked \d+ "
    r"(?:source )?files? .*)"
    r"|(All matched files use .*)|(\d+ (?:problems?|offenses?).*)|(\d+ files? inspected, .*)|(Total "
    r"errors: .*)|(done \(passed successfully\))"
    r"|(.*\bfound (?:no issues|\d+ (?:issues?|warnings?|errors?)).*)|(Your code has been rated at .*)"
    # builds
    r"|(?:✓ )?(built in .*)|(Compiled (?:successfully|with warnings).*)|(webpack .*compiled .*)|(Build "
    r"(?:succeeded|failed|complete).*)"
    r"|(Finished `?\w+`? .*)|(error: could not compile .*)|(Tasks: .*total)|(Generated \w+ app)|(==> "
    r".*BUILD (?:FAILED|SUCCEEDED).*)"
    r"|(make(?:\[\d+\])?: \*\*\* .*)|(\*\* BUILD \w+ \*\*)|(added \d+ packages?.*)|(Successfully "
    r"(?:installed|built|tagged) .*)"
    r"|(\d+ vulnerabilities.*|found 0 vulnerabilities)"
    r")"
)
#: What a summary line can begin with.
_SUMMARY_FIRST = frozenset("0123456789=#ℹ✖×✓*[abdefmnoptwABCEFGOPRSTY")
_TIMED = re.compile(
    r"\s*[(\[](?:took |in )?[\d.]+ ?m?s(?:ec\w*)?[)\]]|\s+in [\d.]+ ?m?s(?:econds?)?\b.*$|;? finished in "
    r".*$|, 0 (?:ignored|measured|filtered out)|; 0 (?:ignored|measured|filtered out)"
)
_GO_PACKAGE = re.compile(r"(ok|FAIL|\?)\s*\t(\S+)\t")
_TS_ERROR = re.compile(r"error TS\d+:")

#: What git says of what it did. The kept text is made from the groups.
_GIT = (
    (re.compile(r"\[([^\]\n]+?) ([0-9a-f]{7,40})\] (.{1,160})"), "committed {2} on {1}: {3}"),
    (re.compile(r"([0-9a-f]{7,40}\.\.\.?[0-9a-f]{7,40})\s+(\S+)\s+->\s+(\S+)"), "{1} {2} → {3}"),
    (re.compile(r"\* \[new (branch|tag)\]\s+(\S+)\s+->\s+(\S+)"), "new {1} {2} → {3}"),
    (re.compile(r"! \[(?:remote )?rejected\]\s+(\S+) -> (\S+) (.{0,100})"), "rejected {1} → {2} {3}"),
    (re.compile(r"Switched to (?:a new )?branch '([^']{1,120})'"), "on branch {1}"),
    (re.compile(r"HEAD is now at ([0-9a-f]{7,40}) (.{0,120})"), "HEAD at {1} {2}"),
    (re.compile(r"Updating ([0-9a-f]{7,40}\.\.[0-9a-f]{7,40})"), "updated {1}"),
    (re.compile(r"CONFLICT \(([^)]{1,40})\): (.{1,160})"), "conflict ({1}): {2}"),
    (
        re.compile(
            r"(Successfully rebased and updated \S+|Already up to date|Everything up-to-date|nothing to "
            r"commit|Fast-forward)"
        ),
        "{1}",
    ),
    (
        re.compile(
            r"(Saved working directory .{0,100}|Dropped \S+ .{0,60}|Deleted branch .{0,80}|Created? "
            r"worktree .{0,80})"
        ),
        "{1}",
    ),
    (re.compile(r"(\d+ files? changed(?:, \d+ insertions?\(\+\))?(?:, \d+ deletions?\(-\))?)"), "{1}"),
)
_GIT_FIRST = re.compile(r"[\[*!HUCSAEnFD0-9a-f]")


def summaries(lines: list[str]) -> list[str]:
    """Summary lines of runners, linters and builds, at most five, in order."""
    found: list[str] = []
    packages: dict[str, set[str]] = {"ok": set(), "FAIL": set()}
    verbose = {"PASS": 0, "FAIL": 0}
    type_errors = 0
    for line in _ends(lines):
        line = line.strip()[:300]
        if not line:
            continue
        if line.startswith("--- "):
            verbose["FAIL" if line.startswith("--- FAIL") else "PASS"] += line.startswith(
                ("--- FAIL:", "--- PASS:")
            )
        elif (package := _GO_PACKAGE.match(line)) and package[1] != "?":
            packages[package[1]].add(package[2])
        elif "error TS" in line and _TS_ERROR.search(line):
            type_errors += 1
        elif (line[0] in _SUMMARY_FIRST or "found" in line) and (match := _SUMMARY.match(line)):
            kept = next((group for group in match.groups() if group), "")
            found.append(clip(_TIMED.sub("", kept).strip().rstrip("=").strip(), 120))
    if type_errors:
        found.append(count(type_errors, "type error"))
    if verbose["PASS"] + verbose["FAIL"]:
        found.append(
            f"{verbose['FAIL']} failed, {verbose['PASS']} passed"
            if verbose["FAIL"]
            else f"{verbose['PASS']} passed"
        )
    if packages["ok"] or packages["FAIL"]:
        parts = [count(len(packages["ok"]), "package") + " ok"] if packages["ok"] else []
        parts += (
            [f"{len(packages['FAIL'])} failed ({', '.join(sorted(packages['FAIL'])[:3])})"]
            if packages["FAIL"]
            else []
        )
        found.append(", ".join(parts))
    return unique(found, 12)[-5:]


def git_results(lines: list[str]) -> list[str]:
    """What git did: commits, pushes, merges, conflicts; at most six."""
    found: list[str] = []
    for line in _ends(lines):
        line = line.strip()[:300]
        if not line or not _GIT_FIRST.match(line):
            continue
        for pattern, form in _GIT:
            if match := pattern.match(line):
                found.append(form.format("", *match.groups()).strip())
                break
    return unique(found, 6)


def _ends(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _FIRST + _LAST else lines[:_FIRST] + lines[-_LAST:]
