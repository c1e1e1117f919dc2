"""Names that a piece of source defines, by kind of file.

Regular expressions, not parsers: the text is a fragment, may carry the client's line numbers (``12→`` or
``12<tab>``), and the answer is a hint for finding things again. All patterns begin with a line break, which
the engine finds fast.
"""

from __future__ import annotations

import re

from endless_mode.clients.claude_code.digest.texts import window

# Possessive throughout: no alternative begins with white space or with such a number, so going back finds nothing.
_START = r"\n(?:[ ]*+\d++[→\t])?+(?P<indent>[ \t]++)?+"
#: How much of a source is looked at (characters).
_HEAD, _TAIL = 16_000, 6_000

#: Begins an alternative that holds at the start of a line only; closed by one more parenthesis.
_TOP = r"(?(indent)(?!)|"
_FLAT = r"\n(?:[ ]*+\d++[→\t])?(?P<indent>(?!))?"


def _pattern(*alternatives: str, start: str = _START, first: str = "") -> re.Pattern[str]:
    """A family's pattern; ``first`` has the characters that an alternative can begin with, so most lines are soon left."""
    ahead = f"(?=[{first}])" if first else ""
    return re.compile(start + ahead + "(?:" + "|".join(alternatives) + ")", re.MULTILINE)


_PYTHON = _pattern(
    r"(?:async[ ]+)?def[ ]+(\w+)",
    r"class[ ]+(\w+)",
    r"([A-Z][A-Z0-9_]{2,})(?:[ ]*:[^=\n]{1,80})?[ ]*=",
    first="A-Zacd",
)
_SCRIPT = _pattern(
    r"(?=[acdefint])(?:export[ ]+)?(?:default[ ]+)?(?:declare[ ]+)?(?:abstract[ ]+)?(?:async[ ]+)?"
    r"(?:function\*?|class|interface|type|enum|namespace)[ ]+([\w$]+)",
    r"export[ ]+(?:const|let|var)[ ]+([\w$]+)",
    r"(?:const|let|var)[ ]+([\w$]+)[^\n=]{0,80}=[ ]*(?:async[ ]*)?(?:\([^\n)]{0,200}\)[^\n=]{0,60}=>"
    r"|[\w$]+[ ]*=>|function\b|\w*(?:memo|forwardRef|create\w*|styled\.\w+)\()",
    r"(?=[agoprs])(?:(?:public|private|protected|static|readonly|override|async|get|set)[ ]+)+([\w$]+)[ ]*\(",
    r"(?!(?:if|for|while|switch|catch|return|function|super"
    r"|await)\b)([\w$]+)\([^\n'\"`=]{0,160}\)(?::[^\n;(=]{1,60})?[ ]*\{[ ]*$",
    r"(?:describe|it|test)\([ ]*['\"`]([^'\"`\n]{3,60})",
    first=r"\w$",
)
_GO = _pattern(
    r"func[ ]+(?:\([^)\n]{0,80}\)[ ]*)?(\w+)",
    r"type[ ]+(\w+)",
    _TOP + r"(?:var|const)[ ]+(\w+))",
    first="cftv",
)
_RUST = _pattern(
    r"(?:pub(?:\([^)\n]{0,30}\))?[ ]+)?(?:async[ ]+|unsafe[ ]+|const[ ]+|extern[ ]+\"C\"[ ]+)*(?:fn|struct"
    r"|enum|trait|mod|type|union)[ ]+(\w+)",
    r"(?:pub(?:\([^)\n]{0,30}\))?[ ]+)?(?:const|static)[ ]+(?:mut[ ]+)?(\w+)[ ]*:",
    r"impl\b[^\n{]{0,120}?\bfor[ ]+(\w+)",
    r"impl(?:<[^>\n]{0,60}>)?[ ]+(\w+)",
    r"macro_rules![ ]+(\w+)",
    first="acefimpstu",
)
_RUBY = _pattern(r"def[ ]+(?:self\.)?([\w?!=]+)", r"(?:class|module)[ ]+([\w:]+)")
_ELIXIR = _pattern(
    r"def(?:p|macro|macrop|guard|delegate)?[ ]+([\w?!]+)",
    r"defmodule[ ]+([\w.]+)",
    r"(?:test|describe)[ ]+\"([^\"\n]{3,60})",
    first="dt",
)
_BRACES = _pattern(
    r"(?:[\w@]++[ ]++){0,5}(?:class|interface|enum|struct|record|trait|object|protocol|extension|namespace"
    r"|union)[ ]+([\w.]+)",
    r"(?:[\w@]++[ ]++){0,5}(?:func|fun|function)[ ]+(?:<[^>\n]{0,60}>[ ]*)?([\w.`]+)",
    r"#define[ ]+(\w+)",
    r"(?!(?:return|else|new|throw|case|goto|await|using|package"
    r"|import)\b)(?:[\w:<>\[\],.?*&@]++[ ]++){1,5}[*&]*([\w~]+(?:::~?\w+)?)[ ]*\([^;\n]{0,200}\{?[ ]*$",
)
_SHELL = _pattern(r"(?:function[ ]+)([\w-]+)", r"([\w-]+)[ ]*\(\)[ ]*\{", r"(?:export[ ]+)([A-Z][A-Z0-9_]+)=")
_MARKDOWN = _pattern(r"#{1,4}[ ]+([^\n]{1,70})", start=_FLAT)
_SQL = re.compile(
    _START + r"(?:create|alter|drop)[ ]+(?:or[ ]+replace[ ]+)?(?:unique[ ]+|temp(?:orary)?[ ]+|materialized[ ]+)?"
    r"(?:table|view|index|trigger|function|type|procedure)[ ]+(?:if[ ]+(?:not[ ]+)?exists[ ]+)?([\w.\"`]+)",
    re.MULTILINE | re.IGNORECASE,
)
_TOML = _pattern(r"(\[{1,2}[^\]\n]{1,60}\]{1,2})[ ]*$", start=_FLAT)
_YAML = _pattern(r"([A-Za-z_][\w.-]{0,60}):(?:[ ]|$)", start=_FLAT)
_JSON = _pattern(r"(?:[ ]{2}|[ ]{4}|\t)\"([\w.@/$-]{1,60})\"[ ]*:", start=_FLAT)
_STYLE = _pattern(r"([.#@][\w-]{2,60}[^\n{,;]{0,40}?)[ ]*[{,]", r"(--[\w-]+)[ ]*:")
_SCHEMA = _pattern(
    r"(?:message|service|rpc|enum|type|input|interface|scalar|model|union)[ ]+(\w+)",
    r"((?:resource|data|module|variable|output|provider)[ ]+\"[^\n{]{1,80}?)[ ]*\{",
)
_MAKE = _pattern(r"([\w./-]+)[ ]*:(?!=)", start=_FLAT)

_FAMILIES: dict[str, re.Pattern[str]] = {
    extension: pattern
    for pattern, extensions in (
        (_PYTHON, "py pyi pyx"),
        (_SCRIPT, "js jsx mjs cjs ts tsx mts cts vue svelte astro"),
        (_GO, "go"),
        (_RUST, "rs"),
        (_RUBY, "rb rake"),
        (_ELIXIR, "ex exs"),
        (_BRACES, "java kt kts scala swift cs php dart c h cc cpp cxx hpp hh m mm zig groovy gradle"),
        (_SHELL, "sh bash zsh fish ps1"),
        (_MARKDOWN, "md mdx markdown rst"),
        (_SQL, "sql"),
        (_TOML, "toml ini cfg"),
        (_YAML, "yaml yml"),
        (_JSON, "json jsonc json5"),
        (_STYLE, "css scss less"),
        (_SCHEMA, "proto graphql gql prisma tf hcl"),
        (_MAKE, "mk"),
    )
    for extension in extensions.split()
}
_PLAIN_NAMES = {"makefile": _MAKE, "rakefile": _RUBY, "gemfile": _RUBY, "justfile": _MAKE}


def family(path: str) -> re.Pattern[str] | None:
    """The pattern for a file of this name, if there is one."""
    name = path[-200:].replace("\\", "/").rpartition("/")[2].lower()
    return _FAMILIES.get(name.rpartition(".")[2]) or _PLAIN_NAMES.get(name)


def defined(path: str, source: str, limit: int = 12) -> list[str]:
    """Names defined in ``source``; when there are more than ``limit``, the less indented ones go first."""
    pattern = family(path)
    source = window(source, _HEAD, _TAIL)
    if pattern is None or not source:
        return []
    found: dict[str, re.Match[str]] = {}
    for match in pattern.finditer("\n" + source):
        name = match[match.lastindex or 0].strip()
        if name and name not in found:
            found[name] = match
            if len(found) >= 120:
                break
    if len(found) <= limit:
        return list(found)
    chosen = set(sorted(found, key=lambda name: len(found[name]["indent"] or ""))[:limit])
    return [name for name in found if name in chosen]


def known_source(path: str) -> bool:
    """True for files whose names are worth a place among other names."""
    return family(path) is not None
