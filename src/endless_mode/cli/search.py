"""``endless search``: find what was said and done, in any session."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress

from endless_mode.cli.output import emit, say, when, write_text
from endless_mode.cli.words import count, directory
from endless_mode.errors import EndlessError
from endless_mode.home import Home, find_home
from endless_mode.hook.slow import listens
from endless_mode.search import Hit, Question, build, search
from endless_mode.store import Store, open_reader
from endless_mode.tokens import estimate_tokens
from endless_mode.worker.client import WorkerClient

#: Tokens the printed answer keeps to: a model that asks must not pay more for it than a page.
MAX_TOKENS = 4_000
#: Finds that are looked for at most.
MOST = 500
#: Characters of one line.
LINE = 320
#: Seconds the command spends on bringing the index up to date before it searches.
INDEX_SECONDS = 3.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("query", metavar="QUERY", nargs="+", help='words; "two words" is a phrase, wor* a beginning')
    parser.add_argument(
        "--project", metavar="DIR", type=directory, default="", help="only sessions of this directory and below"
    )
    parser.add_argument(
        "--session", metavar="ID", default="", help="only this session (the beginning of its id will do)"
    )
    parser.add_argument("--limit", metavar="N", type=count, default=20, help="at most N finds (default 20)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """Print what was found; 1 when there was nothing."""
    home = find_home()
    question = Question(_asked(given.query), given.project, given.session, min(given.limit, MOST))
    if not question.text.strip():
        raise EndlessError("nothing_asked", "Search for what?", 'Give words, e.g. `endless search "a phrase" word*`.')
    hits: list[Hit] = []
    stored = home.database.exists()
    if stored:
        bring_up_to_date(home)
        db = open_reader(home.database)
        hits = search(db, question)
        db.close()
    if given.json:
        emit(hits)
    elif hits:
        write_text("\n".join(shown(hits)) + "\n")
    else:
        say("Nothing was found.")
        say(f"hint: {_hint(question, stored=stored)}")
    return 0 if hits else 1


def _hint(question: Question, *, stored: bool) -> str:
    if not stored:
        return (
            "There is no database yet. `endless import` reads past sessions in, with hooks new ones come by themselves."
        )
    if question.project or question.session:
        return "Leave out --project or --session to look everywhere."
    return (
        "Try fewer words or a beginning (wor*); `endless sessions` lists what is known, `endless import` reads in more."
    )


def bring_up_to_date(home: Home) -> None:
    """Let the index take in what is new: by the worker when there is one, else by ourselves. To fail is no harm."""
    with suppress(EndlessError):
        if listens(os.fsencode(home.socket)):
            WorkerClient(home, INDEX_SECONDS + 2).index(INDEX_SECONDS)
        else:
            with Store.open(home.database) as store:
                build(store, INDEX_SECONDS)


def shown(hits: list[Hit]) -> list[str]:
    """The finds as lines, as many as :data:`MAX_TOKENS` allow."""
    lines: list[str] = []
    room = MAX_TOKENS
    for n, hit in enumerate(hits):
        line = _line(hit)
        room -= estimate_tokens(line) + 1
        if room < 0:
            return [*lines, f"… {len(hits) - n} more; ask for less at once with --session, --project or more words"]
        lines.append(line)
    return lines


def _line(hit: Hit) -> str:
    where = f"{when(hit.at)} session {hit.session[:8]}"
    if hit.kind == "observation":
        outcome = f" — {hit.outcome}" if hit.outcome else ""
        return _cut(f"[#{hit.id}] {hit.title}{outcome}") + f" ({where})"
    return _cut(f"{where} {hit.role}: {hit.text}")


def _cut(text: str) -> str:
    return text if len(text) <= LINE else text[: LINE - 1] + "…"


def _asked(parts: list[str]) -> str:
    """One question from the words of the command line; an argument with blanks in it was quoted, so it is a phrase."""
    if len(parts) == 1:
        return parts[0]
    return " ".join(f'"{part}"' if " " in part and '"' not in part else part for part in parts)
