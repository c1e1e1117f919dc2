"""The client's own phrases and envelopes: what in a user line or in the queue nobody typed.

Measured on clients 1.0.98 to 2.1.332. Everything here is about exact texts the client writes.
"""

from __future__ import annotations

import re
from typing import Any

from endless_mode.clients.claude_code.entry import Block

#: Beginnings of texts in user lines and in the queue that the client wrote itself.
ENVELOPES = (
    '{"task_id"',
    "<agent-notification>",
    "<task-notification>",
    "<teammate-message",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<command-name>",
    "<command-message>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<context_guidance>",
    "<tool-result>",
    "<user-prompt-submit-hook>",
    "[Request interrupted by user",
    "Caveat: The messages below",
    "This session is being continued from a previous conversation",
    "Stop hook feedback:",
)

#: Built-in commands that only steer the client: no message of the user's.
STEERING = frozenset(
    "add-dir agents allowed-tools bashes bug chrome clear compact config context cost desktop doctor "
    "effort exit export extra-usage fast feedback fork help hooks ide install-github-app keybindings login logout mcp "
    "memory migrate-installer mobile model output-style passes permissions plugin plugins privacy-settings quit "
    "rate-limit-options release-notes reload-plugins remote-control remote-env rename reset resume rewind sandbox "
    "settings skills stats status statusline stickers tasks terminal-setup theme todos upgrade usage version vim "
    "voice".split()
)

NOTE = re.compile(
    r"\s*(?:<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics)>(?:(?!</\1>).)*</\1>\s*)+", re.S
)
_OPENED = re.compile(r"<(ide_opened_file|ide_selection)>(.*?)</\1>", re.S)
_PATH = re.compile(r"(?:the file|from) (/\S+|[A-Za-z]:\\\S+)|(/[^\s:]+)")
_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.S)
_ARGS = re.compile(r"<command-args>(.*?)</command-args>", re.S)
_BASH_IN = re.compile(r"\s*<bash-input>(.*?)</bash-input>", re.S)
_BASH_OUT = re.compile(r"<bash-(stdout|stderr)>(.*?)</bash-\1>", re.S)
_TAG = re.compile(r"<(task-id|tool-use-id|status|summary|result)>(.*?)</\1>", re.S)

INTERRUPTED = "[Request interrupted by user"
#: Client 2.1.332 at a resume, for a tool use that a crash cut off.
CUT_OFF = "[Tool call interrupted:"
_REFUSED = "The user doesn't want to proceed with this tool use."
_SAID = "the user said:\n"
#: What the client adds in the user's name when a question was dismissed: none of the user's words.
_CLARIFY = "The user wants to clarify these questions."


def texts(content: Any) -> list[str]:
    """The text blocks of a message's content."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [b.text for b in content if isinstance(b, Block) and b.type == "text" and isinstance(b.text, str)]


def joined_text(content: Any) -> str:
    """The text of a value that is a string or a list of plain text blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [b.get("text") for b in content if isinstance(b, dict) and b.get("type") == "text"]
        return "\n".join(p for p in parts if isinstance(p, str))
    return ""


def slash_command(text: str) -> tuple[str, str] | None:
    """``(name with slash, arguments as typed)`` when the line records a slash command."""
    head = text.lstrip()
    if not head.startswith(("<command-name>", "<command-message>")) or not (name := _COMMAND.search(text[:4000])):
        return None
    args = _ARGS.search(text)
    return "/" + name[1].removeprefix("/"), args[1] if args else ""


def is_steering(command: str) -> bool:
    """Whether a slash command only steers the client."""
    word = command.removeprefix("/").split(maxsplit=1)
    return bool(word) and word[0].lower() in STEERING


def bash_input(text: str) -> str | None:
    """The command of a line typed in ``!`` mode."""
    found = _BASH_IN.match(text)
    return found[1] if found else None


def bash_output(text: str) -> str | None:
    """What a ``!`` command printed: its standard output, then its standard error."""
    if not text.lstrip().startswith(("<bash-stdout>", "<bash-stderr>")):
        return None
    return "\n".join(part for _, part in _BASH_OUT.findall(text) if part.strip())


def notification(text: str) -> dict[str, str] | None:
    """The fields of a task or agent notification: task-id, tool-use-id, status, summary, result."""
    head = text.lstrip()
    if not head.startswith(("<task-notification>", "<agent-notification>")):
        return None
    fields: dict[str, str] = {}
    for name, value in _TAG.findall(text):
        fields.setdefault(name, value.strip())
    return fields


def ide_mark(text: str) -> str:
    """The short mark that stands for an IDE note: which file was open or selected from."""
    found = _OPENED.search(text)
    if not found:
        return ""
    path = _PATH.search(found[2])
    verb = "open" if found[1] == "ide_opened_file" else "selection in"
    return f"[IDE: {verb} {path[1] or path[2]}]" if path else ""


def refusal(text: str) -> str | None:
    """The user's words with a refused tool use: ``""`` for none given, ``None`` when it was no refusal."""
    if not text.lstrip().startswith(_REFUSED):
        return None
    _, found, words = text.partition(_SAID)
    return "" if not found or words.startswith(_CLARIFY) else words


def prompt_text(content: Any) -> str | None:
    """A typed prompt as one text: text blocks joined by newlines, images and documents as marks.

    ``None`` when nobody typed it: only notes, or an envelope of the client's.
    """
    if isinstance(content, str):
        return None if not content.strip() or _enveloped(content) or NOTE.fullmatch(content) else content
    if not isinstance(content, list):
        return None
    parts: list[str] = []
    typed = False
    for block in content:
        if block.type == "text" and isinstance(block.text, str):
            if NOTE.fullmatch(block.text):
                parts.append(ide_mark(block.text))
            elif block.text.strip():
                if not typed and _enveloped(block.text):
                    return None
                parts.append(block.text)
                typed = True
        elif block.type == "image":
            parts.append("[image]")
        elif block.type == "document":
            parts.append(f"[document: {block.title}]" if isinstance(block.title, str) and block.title else "[document]")
    whole = [p for p in parts if p]
    if not typed and not any(p.startswith(("[image", "[document")) for p in whole):
        return None
    return "\n".join(whole)


def typed_text(content: Any) -> str:
    """What of a prompt was typed: its text without notes and marks."""
    return "\n".join(text for text in texts(content) if not NOTE.fullmatch(text))


def _enveloped(text: str) -> bool:
    return text.lstrip().startswith(ENVELOPES)
