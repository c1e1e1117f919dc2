"""Searches and listings: Grep, Glob, LS, LSP."""

from __future__ import annotations

import re
from collections.abc import Iterable

from endless_mode.clients.claude_code.digest import symbols, tokens
from endless_mode.clients.claude_code.digest.texts import (
    argument,
    clip,
    count,
    detail_of,
    flat,
    mapping,
    number,
    result_of,
    text,
    unique,
    window,
)
from endless_mode.model import Digest, ToolEvent

MOST = 15
_LONGEST = 301
_ON_DRIVE = re.compile(r"((?:[A-Za-z]:)?[^\s:][^:\n]{0,300}?)[:](\d+)[:](.*)")
_CONTEXT = re.compile(r"((?:[A-Za-z]:)?[^\s:][^:\n]{0,300}?\.\w{1,8})-(\d+)-(.*)")
_NAMED = re.compile(r"([^\s:]{1,300}\.\w{1,8}):(.*)")
_ALONE = re.compile(r"(\d+)([:-])(.*)")
_COUNTED = re.compile(r"([^\s:][^:\n]{0,300}):(\d+)$")
_LITERAL = re.compile(r"\w{4,}")
_SUMMARY = re.compile(r"Found \d+ |No (?:files|matches) found|\(Results are|\[Showing|--$")
_LSP_FILE = re.compile(r"(\S.*?):$")
_LSP_LINE = re.compile(r"\s+Line (\d+):(\d+)")
_LSP_AT = re.compile(r"(\S+?):(\d+):\d+")


def grep(event: ToolEvent) -> Digest:
    """Grep in any of its three modes. The line numbers of a search of one file carry no path."""
    arguments = mapping(event.input)
    pattern, path = argument(event, "pattern"), argument(event, "path")
    digest = Digest("search", "", target=clip(pattern, 600))
    digest.scope = _scope(path, argument(event, "glob"), argument(event, "type"))
    detail = detail_of(event)
    result = result_of(event)
    lines = _matching(result.split("\n")[:1_000])
    mode = text(arguments.get("output_mode")) or text(detail.mode) or "files_with_matches"
    if event.status not in ("ok", "open"):
        return digest
    if not lines:
        digest.outcome = "no matches" if event.status == "ok" else ""
        return digest
    if mode == "content":
        _content(digest, pattern, path, lines)
    elif mode == "count":
        digest.paths = [clip(line, 300) for line in lines[:MOST]]
        total = number(detail.num_matches) or len(lines)
        digest.outcome = f"{count(total, 'match', 'matches')} in {count(len(lines), 'file')}"
    else:
        total = number(detail.num_files) or len(lines)
        digest.paths = [clip(line, 300) for line in lines[:MOST]]
        digest.outcome = count(total, "file")
    if detail.truncated is True or detail.applied_limit:
        digest.outcome += " (cut off)"
    digest.excerpt = window(result, 2_500, 500)
    return digest


def glob(event: ToolEvent) -> Digest:
    digest = Digest("search", "", target=clip(argument(event, "pattern"), 400), scope=argument(event, "path")[:400])
    return _listed(digest, event)


def listing(event: ToolEvent) -> Digest:
    """LS: an indented tree."""
    digest = Digest("list", "", target=argument(event, "path")[:400])
    lines = [line.strip().removeprefix("- ") for line in result_of(event).split("\n")[:1_000]]
    return _filled(digest, event, [line for line in lines if line and not line.startswith("NOTE:")], "entry", "entries")


def lsp(event: ToolEvent) -> Digest:
    detail = detail_of(event)
    arguments = mapping(event.input)
    place = ":".join(p for p in (argument(event, "filePath", "file_path"), text(arguments.get("line"))) if p)
    digest = Digest(
        "search",
        "",
        target=clip(" ".join(p for p in (argument(event, "operation"), argument(event, "query")) if p), 200),
    )
    digest.scope = clip(place, 400)
    if event.status != "ok":
        return digest
    result = result_of(event)
    brought: list[str] = []
    current = ""
    for line in result.split("\n")[:600]:
        line = line[:400]
        if head := _LSP_FILE.match(line):
            current = head[1]
        elif current and (at := _LSP_LINE.match(line)):
            brought.append(f"{current}:{at[1]}")
        elif at := _LSP_AT.search(line):
            brought.append(f"{at[1]}:{at[2]}")
    digest.paths = tokens.shortened(brought, MOST)
    results, files = number(detail.result_count), number(detail.file_count)
    digest.outcome = f"{count(results, 'result')} in {count(files or 1, 'file')}" if results else flat(result, 200)
    digest.names = tokens.specific(result[:3_000], known=digest.scope, limit=10)[1]
    digest.excerpt = window(result, 2_500, 500)
    return digest


def found_lines(lines: Iterable[str], path: str) -> list[tuple[str, str]]:
    """Path and line of each matching line of grep's output; ``path`` stands for outputs without one."""
    found = []
    for line in lines:
        line = line[:400]
        if match := _found(line):
            found.append(match[:2])
        elif path and (alone := _ALONE.match(line)) and alone[2] == ":":
            found.append((path, alone[1]))
    return found


def _found(line: str) -> tuple[str, str, str] | None:
    """Path, line and content where a line of grep's output has all three."""
    parts = line.split(":", 2)
    if len(parts) == 3:
        path, number, content = parts
        # One letter may be a drive, and what is too long for a path is none.
        if number.isdecimal() and 1 < len(path) <= _LONGEST and not path[0].isspace():
            return path, number, content
    return (drive[1], drive[2], drive[3]) if line[1:2] == ":" and (drive := _ON_DRIVE.match(line)) else None


def _scope(path: str, glob_: str, kind: str) -> str:
    return clip(" ".join(p for p in (path, glob_, f"type:{kind}" if kind else "") if p), 400)


def _content(digest: Digest, pattern: str, path: str, lines: list[str]) -> None:
    brought: list[tuple[str, str]] = []
    contents: list[str] = []
    for line in lines:
        line = line[:500]
        alone = _ALONE.match(line) if line[0].isdecimal() else None
        if alone and path:
            if alone[2] == ":":
                brought.append((path, alone[1]))
                contents.append(alone[3])
        elif match := _found(line):
            brought.append(match[:2])
            contents.append(match[2])
        elif _CONTEXT.match(line):
            continue
        elif named := _NAMED.match(line):
            brought.append((named[1], ""))
            contents.append(named[2])
        elif not alone:
            contents.append(line)
    digest.paths = tokens.gathered(brought, MOST)
    files = len({found for found, _ in brought})
    matches = len(brought) or len(contents) or len(lines)
    digest.outcome = count(matches, "match", "matches") + (f" in {count(files, 'file')}" if files > 1 else "")
    if 0 < len(contents) <= 3:
        digest.outcome += ": " + " ⏎ ".join(said for c in contents if (said := flat(c.strip(), 140)))
    source = path or (digest.paths[0].partition(":")[0] if digest.paths else "")
    shown = "\n".join(map(str.strip, contents[:60]))
    defined = symbols.defined(source, shown, 8)
    stems = [stem.lower() for stem in _LITERAL.findall(pattern)[:8]]
    names = filter(None, map(_identifier, tokens.telling_words(shown[:2_000]))) if stems else []
    similar = [name for name in names if any(stem in name.lower() for stem in stems)]
    digest.symbols = [name for name in unique(defined, 8) if name not in pattern]
    digest.names = [name for name in unique(similar, 14) if name not in pattern and name not in digest.symbols][:10]


def _identifier_in(raw: str) -> str:
    word = tokens.trimmed(raw)
    return word if tokens.is_identifier(word) else ""


_identifier = tokens.Verdicts(_identifier_in).__getitem__


def _matching(lines: list[str]) -> list[str]:
    """The lines without those that the tool says of itself."""
    return [line for line in lines if line and (line[0] not in "FN([-" or not _SUMMARY.match(line))]


def _listed(digest: Digest, event: ToolEvent) -> Digest:
    lines = list(filter(str.strip, _matching(result_of(event).split("\n")[:2_000])))
    return _filled(digest, event, lines, "file", "files")


def _filled(digest: Digest, event: ToolEvent, lines: list[str], noun: str, plural: str) -> Digest:
    if event.status != "ok":
        return digest
    detail = detail_of(event)
    total = number(detail.num_files) or len(lines)
    digest.outcome = count(total, noun, plural) if lines else f"no {plural}"
    if detail.truncated is True:
        digest.outcome += " (cut off)"
    digest.paths = [clip(line, 300) for line in lines[:MOST]]
    digest.excerpt = clip("\n".join(lines[:100]), 3_000) if len(lines) > MOST else ""
    return digest
