"""Pages fetched and searches of the web."""

from __future__ import annotations

import re

from endless_mode.clients.claude_code.digest import tokens
from endless_mode.clients.claude_code.digest.agents import opening
from endless_mode.clients.claude_code.digest.texts import (
    argument,
    clip,
    count,
    detail_of,
    first_line,
    flat,
    number,
    result_of,
    text,
    unique,
    window,
)
from endless_mode.model import Digest, ToolEvent

_LINK = re.compile(r'\{"title":"((?:[^"\\]|\\.){0,300})","url":"([^"]{1,600})"')
_HOST = re.compile(r"https?://(?:www\.)?([^/\s]+)")


def fetch(event: ToolEvent) -> Digest:
    digest = Digest("fetch", "", target=clip(argument(event, "url"), 1_000), scope=flat(argument(event, "prompt"), 300))
    detail = detail_of(event)
    if event.status != "ok":
        return digest
    result = result_of(event)
    code = number(detail.code)
    status = f"{code} {text(detail.code_text)}".strip() if code and code != 200 else ""
    digest.outcome = "; ".join(p for p in (status, flat(opening(result), 240)) if p)
    paths, names = tokens.specific(result[:5_000], known=f"{digest.target} {digest.outcome}", limit=10)
    digest.names = unique([*names, *paths], 12)
    digest.excerpt = window(result, 3_500, 500)
    return digest


def search(event: ToolEvent) -> Digest:
    digest = Digest("websearch", "", target=clip(argument(event, "query"), 500))
    if event.status != "ok":
        return digest
    result = result_of(event)
    links = _LINK.findall(result[:40_000])[:20]
    digest.names = unique((url for _, url in links), 8)
    titles = [f"{flat(title, 70)} ({host[1]})" for title, url in links[:4] if (host := _HOST.match(url))]
    digest.outcome = f"{count(len(links), 'result')}: {'; '.join(titles)}" if links else flat(first_line(result), 200)
    said = result.rpartition("}]")[2].strip() if links else result
    digest.excerpt = window(said, 3_000, 500)
    return digest
