"""``endless handoff``: what a session would be handed after a compaction now."""

from __future__ import annotations

import argparse
from pathlib import Path

from endless_mode.bottle.closing import closing
from endless_mode.bottle.render import render
from endless_mode.bottle.session import Bottle, document, gap
from endless_mode.bottle.view import load_session
from endless_mode.cli.bottle import output_place, write
from endless_mode.cli.output import emit, write_text
from endless_mode.cli.target import loaded
from endless_mode.deliver.handoff import compose, followed, plan_budget, task_of
from endless_mode.settings import load


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("target", metavar="TARGET", help="a .jsonl or .jsonl.gz transcript, or a session id")
    parser.add_argument(
        "--context-tokens", metavar="N", type=int, help="size of the context at the boundary (default: the transcript's last usage)"
    )
    parser.add_argument("--follow", action="store_true", help="append the pages the reading plan names, as the model would read them")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the bottle that the handoff names to FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """Render the bottle, then print the handoff for it."""
    with loaded(given.target) as made:
        store, session = made.store, made.session
        row, whole, state, waiting, task = store.read(
            lambda db: (
                at := load_session(db, session),
                document(db, session),
                closing(db, at).state,
                gap(db, session),
                task_of(db, at),
            )
        )
        text = render(whole)
        place = output_place(given.output, made).absolute()
        write(place, text.data)
        context = row.context_tokens if given.context_tokens is None else given.context_tokens
        budget = plan_budget(context, load(made.home).plan_tokens)
        bottle = Bottle(place, whole.header.mode, row.offset, waiting, text)
        handoff = compose(bottle, state, task, budget, "00000000")
        pages = followed(text.text, handoff.plan) if given.follow else ""
    if given.json:
        emit({"session": row.content_session_id, "path": str(place), "context_tokens": context, "plan_tokens": budget,
              "plan": handoff.plan, "text": handoff.text, "pages": pages or None})
    else:
        write_text(handoff.text + "\n" + (f"\n{pages}\n" if pages else ""))
    return 0
