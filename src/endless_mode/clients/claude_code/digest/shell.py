"""Shell commands: Bash, what a background command printed, killed commands, and ``!`` typed by the user."""

from __future__ import annotations

import re

from endless_mode.clients.claude_code.digest import failures, git, programs, runners, symbols, tokens
from endless_mode.clients.claude_code.digest.agents import opening
from endless_mode.clients.claude_code.digest.search import found_lines
from endless_mode.clients.claude_code.digest.texts import (
    argument,
    clip,
    count,
    detail_of,
    flat,
    mapping,
    number,
    plain,
    result_of,
    task_of,
    text,
    window,
)
from endless_mode.model import Digest, ToolEvent

COMMAND = 4_000
_EXIT = re.compile(r"(?:Error: )?Exit code (\d{1,3})(?:\n|$)")
_BACKGROUND = re.compile(
    r"(?:running in (?:the )?background|manually backgrounded.{0,40}|moved to the background) with ID: "
    r"([\w-]+)"
)
_OUTPUT_FILE = re.compile(r"written to: (\S{1,400})")
_RESET = re.compile(r"\n?Shell cwd was reset to [^\n]*\s*$")
_TAGGED = re.compile(r"<(status|exit_code|retrieval_status|task_id|task_type)>([^<]{0,18})</\1>")
_CUT = re.compile(r"[\s\",]")
_DIFF_SIDE = re.compile(r" [ab]/")
_DIFF_NOISE = re.compile(r"^(?:index [0-9a-f.]+|@@ [^@]*@@).*$", re.MULTILINE)
_BAD_COUNT = re.compile(r"\b[1-9]\d* (?:issues?|problems?|errors?|warnings?|failed|failing|failures?|type errors?)\b")
_LISTING = re.compile(r"[bcdlps-][rwxsStT-]{9}[.@+]?\s")
_NUMERIC = re.compile(r"[\d\s.,:/%-]+")
#: How much of an output tokens are taken from.
_TOKENS_HEAD, _TOKENS_TAIL = 1_200, 1_200


def bash(event: ToolEvent) -> Digest:
    """A command the model ran."""
    command = argument(event, "command", "cmd", "script")
    detail = detail_of(event)
    digest = Digest("shell", "", command=_bounded(command))
    if event.status == "open":
        digest.check = programs.is_check(programs.segments(command))
        return digest
    output = result_of(event)
    if "Shell cwd was reset" in output:
        output = _RESET.sub("", output)
    if output.startswith(("(Bash completed with no output)", "[Request interrupted")):
        output = output.partition("\n")[2]
    if status := _EXIT.match(output):
        digest.exit_code = int(status[1])
        output = output[status.end() :]
    elif event.status == "ok":
        digest.exit_code = 0
    if " " in event.cwd and len(event.cwd) > 3:
        # A path with a space in it would be taken for two.
        output = output.replace(f"{event.cwd}/", "")
    task = text(detail.background_task_id)
    if " with ID: " in output[:1_000] and (started := _BACKGROUND.search(output[:1_000])):
        task = task or started[1]
        if written := _OUTPUT_FILE.search(output[:2_000]):
            digest.paths = [written[1].rstrip(".")]
    if task:
        digest.status, digest.task_id, digest.exit_code = "background", task[:80], None
        return digest
    if meaning := text(detail.return_code_interpretation):
        digest.outcome = flat(meaning, 120)
        digest.exit_code = None
    if spilled := text(detail.persisted_output_path):
        digest.paths = [spilled]
    if len(command) > 600:
        digest.scope = flat(argument(event, "description"), 200)
    judge(digest, command, output, event.status == "failed")
    return digest


def output(event: ToolEvent) -> Digest:
    """BashOutput, TaskOutput, AgentOutputTool: how a background task fares."""
    detail = detail_of(event)
    task = task_of(detail)
    result = result_of(event)
    tags = dict(_TAGGED.findall(result[:1_000]))
    digest = Digest("shell", "", task_id=argument(event, "task_id", "bash_id", "shell_id", "agentId")[:80])
    digest.target = flat(text(task.description) or text(detail.command) or digest.task_id, 300)
    state = text(task.status) or text(detail.status) or tags.get("status", "")
    if text(detail.retrieval_status) == "timeout" or tags.get("retrieval_status") == "timeout":
        state = f"still {state}" if state else "timeout"
    code = number(task.exit_code)
    code = number(detail.exit_code) if code is None else code
    digest.exit_code = int(tags["exit_code"]) if code is None and tags.get("exit_code", "").isdecimal() else code
    body = _between(result)
    agent = (text(task.task_type) or tags.get("task_type", "")).endswith("agent")
    if agent:
        digest.kind = "agent"
        said = body.rpartition("\n[Tool: ")[2].partition("\n")[2] if "[Tool: " in body else body
        digest.outcome = "; ".join(p for p in (state, flat(opening(said), 300)) if p)
        digest.excerpt = window(said.strip() or body, 3_000, 1_000)
        digest.paths, digest.names = tokens.specific(said[:6_000], limit=8)
        return digest
    judge(digest, text(detail.command), body, event.status == "failed" or bool(digest.exit_code))
    digest.outcome = "; ".join(p for p in (state, digest.outcome) if p)
    return digest


def stopped(event: ToolEvent) -> Digest:
    """KillShell, KillBash, TaskStop."""
    detail = detail_of(event)
    task = argument(event, "task_id", "shell_id", "bash_id") or text(detail.task_id) or text(detail.killed_shell_id)
    message = text(detail.message) or result_of(event)
    inside = re.search(r"\((.{1,400})\)\s*$", message[:800], re.DOTALL)
    digest = Digest("shell", "", target=task[:80])
    digest.command = _bounded(text(detail.command) or (inside[1] if inside else ""))
    digest.outcome = "stopped" if event.status == "ok" else ""
    return digest


def judge(digest: Digest, command: str, printed: str, failed: bool) -> None:
    """Fill in what the output says: counts, failures, errors, and the tokens a successor would need."""
    parts = programs.segments(command)
    digest.check = programs.is_check(parts)
    lines = printed.split("\n")
    stripped = printed.strip()
    shows = programs.only_shows(parts) and not digest.check
    said: list[str] = [digest.outcome] if digest.outcome else []
    done: list[str] = []
    if stripped and not shows:
        done = git.git_results(lines) if _has_git(parts) else []
        ends = runners.summaries(printed, lines)
        digest.check = digest.check or bool(ends and failed)
        said += done + ends
    if stripped and (failed or (not shows and _may_hide(command))):
        _went_wrong(digest, printed, lines, failed, said)
    if not said and not digest.error and not digest.symbols:
        said = _itself(digest, parts, lines, stripped, shows) or _silence(digest, stripped, failed)
    digest.outcome = clip("; ".join(said), 400)
    _tokens(digest, command, printed, only_urls=bool(done) and not failed)
    digest.excerpt = window(printed.strip("\n"), 1_500, 2_500)


def _went_wrong(digest: Digest, printed: str, lines: list[str], failed: bool, said: list[str]) -> None:
    """Failing tests and the error line. Without a failing exit code only what leaves no doubt counts."""
    if not (failed or digest.check or failures.may_be_sure(printed)):
        return
    bad = failed or bool(_BAD_COUNT.search("; ".join(said)))
    failing, error, place = failures.scan(printed, lines, bad)
    sure = error.lstrip("[").startswith(("fatal", "error", "Error", "Traceback", "panic"))
    if not (failed or failing or digest.check or sure):
        return
    digest.symbols = failing
    digest.error = "" if error.startswith("CONFLICT") and said else error
    if place:
        digest.paths.append(place)
    if failed and (first := failures.first_bad(lines)) and first not in f"{digest.error} {'; '.join(said)}":
        said.append(first)
    if failed and not error and not failing and not said:
        digest.error = next((flat(line, 300) for line in reversed(lines) if len(line.strip()) > 2), "")


def _itself(digest: Digest, parts: list[list[str]], lines: list[str], stripped: str, shows: bool) -> list[str]:
    """What an output without any summary says: itself when short, else its kind and its beginning."""
    if not stripped:
        return []
    if digest.check and not _short(stripped, lines):
        return []
    shown = _shown(digest, parts, lines) if shows else []
    if shown and (digest.paths or digest.symbols):
        return shown
    if _short(stripped, lines):
        return [p for p in [flat(_without_echo(lines), 300)] if p]
    if stripped.startswith(("{", "<", "[{", '["', "[\n")) or len(stripped) > 60 * len(lines) + 400:
        return shown
    head = flat(_without_echo(lines[:12]), 180)
    return [f"{shown[0]}: {head}" if shown else head]


def _silence(digest: Digest, stripped: str, failed: bool) -> list[str]:
    if failed or not digest.command:
        return []
    if digest.check:
        return ["ok"]
    return [] if stripped else ["no output"]


def _bounded(command: str) -> str:
    return (
        command
        if len(command) <= COMMAND
        else f"{command[:2_800]}\n… {len(command) - 3_900} characters …\n{command[-1_100:]}"
    )


def _between(result: str) -> str:
    """The output inside the client's tags, both streams."""
    if "<output>" in result[:2_000]:
        return result.partition("<output>")[2].rpartition("</output>")[0].strip("\n")
    if "<stdout>" in result[:2_000] or "<stderr>" in result[:2_000]:
        found = re.findall(r"<(stdout|stderr)>\n?(.*?)</\1>", result, re.DOTALL)
        return "\n".join(body.strip("\n") for _, body in found[:4])
    return _TAGGED.sub("", result).strip()


def _may_hide(command: str) -> bool:
    """Whether exit 0 may hide a failure: the status of a pipeline or a list is that of its last command."""
    return not command or "|" in command or ";" in command or "\n" in command


def _without_echo(lines: list[str]) -> str:
    """A short output on one line, without the lines in which npm repeats the script."""
    return " ⏎ ".join(line.strip() for line in lines if line.strip() and not line.startswith("> "))


def _has_git(parts: list[list[str]]) -> bool:
    return any(words[0] in ("git", "gh") or "git" in words[:3] for words in parts)


def _short(stripped: str, lines: list[str]) -> bool:
    return len(stripped) <= 320 and len(lines) <= 14


def _shown(digest: Digest, parts: list[list[str]], lines: list[str]) -> list[str]:
    """Outputs of commands that show things: matches, listings, file contents, logs."""
    if not parts:
        return []
    path = programs.shown_file(parts)
    names = [programs.program(words) for words in parts]
    total = len(list(filter(str.strip, lines)))
    if total <= 1:
        return []
    if any(name in ("grep", "rg", "egrep", "ack", "ag", "git grep") for name in names[:4]):
        brought = found_lines(lines[:400], path)
        if brought:
            digest.paths = tokens.gathered(brought, 12)
            return [count(total, "line")]
    if path and symbols.known_source(path):
        digest.symbols = symbols.defined(path, "\n".join(lines[:800]))
        return [count(total, "line")]
    if names[0] == "ls" or names[0] == "find" or names[0] == "fd":
        entries = [
            line.rpartition(" ")[2] if _LISTING.match(line) else line.strip()
            for line in lines[:300]
            if line.strip() and not line.startswith("total ")
        ]
        digest.paths = [clip(e, 160) for e in entries if e not in (".", "..") and not _NUMERIC.fullmatch(e)][:14]
        return [count(len([e for e in entries if e not in (".", "..")]), "entry", "entries")]
    return [count(total, "line")] if total > 4 else []


def _tokens(digest: Digest, command: str, printed: str, only_urls: bool = False) -> None:
    seen = printed
    if len(printed) > _TOKENS_HEAD + _TOKENS_TAIL:
        seen = f"{printed[:_TOKENS_HEAD]}\n{_CUT.split(printed[-_TOKENS_TAIL:], 1)[-1]}"
    if digest.error and len(printed) > len(seen):
        seen = f"{digest.error}\n{seen}"
    if digest.check and not digest.symbols and not digest.error:
        seen = window(printed, 400, 400)
    if "diff --git" in seen:
        seen = _DIFF_NOISE.sub("", _DIFF_SIDE.sub(" ", seen))
    paths, names = tokens.specific(seen, known=f"{command}\n{digest.outcome}\n{digest.error}", limit=12)
    if only_urls:
        digest.names = [name for name in names if "://" in name]
        return
    if len(digest.paths) < 4:
        known = set(digest.paths)
        digest.paths = (digest.paths + [p for p in paths if p not in known])[:12]
    digest.names = names


def user_shell(event: ToolEvent) -> Digest:
    """``! command``: run by the user, the result is its output."""
    command = text(mapping(event.input).get("command"))
    digest = Digest("shell", "", command=_bounded(command))
    judge(digest, command, plain(text(event.result)), event.status == "failed")
    return digest
