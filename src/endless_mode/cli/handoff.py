"""``endless handoff``: what a session would be handed after a compaction now."""

from __future__ import annotations

import argparse
from pathlib import Path

from endless_mode.bottle.write import Bottle
from endless_mode.cli.bottle import PLACE, output_place, put, tell_source
from endless_mode.cli.output import emit, write_text
from endless_mode.cli.target import best
from endless_mode.cli.words import count
from endless_mode.deliver.handoff import compose, followed, plan_budget
from endless_mode.deliver.ladder import state_of, task_in
from endless_mode.settings import load


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("target", metavar="TARGET", help="a .jsonl or .jsonl.gz transcript, or a session id")
    parser.add_argument(
        "--context-tokens",
        metavar="N",
        type=count,
        help="size of the context at the boundary (default: the transcript's last usage)",
    )
    parser.add_argument(
        "--follow", action="store_true", help="append the pages the reading plan names, as the model would read them"
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help=PLACE)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(given: argparse.Namespace) -> int:
    """Render the bottle, then print the handoff for it."""
    with best(given.target) as found:
        place = output_place(given.output, found).absolute()
        made = put(place, found, asked=given.output is not None)
        whole = made.kept or found.document
        context = found.context_tokens if given.context_tokens is None else given.context_tokens
        budget = plan_budget(context, load(found.home).plan_tokens)
        bottle = Bottle(place, whole.header.mode, found.offset, found.gap, made.text)
        handoff = compose(bottle, state_of(whole), task_in(whole), budget, marker="")
    pages = followed(made.text.whole(), handoff.plan) if given.follow else ""
    if given.json:
        emit(
            {
                "session": found.session_id,
                "path": str(place),
                "mode": bottle.mode,
                "rung": found.rung,
                "why": found.why,
                "context_tokens": context,
                "plan_tokens": budget,
                "plan": handoff.plan,
                "text": handoff.text,
                "pages": pages or None,
            }
        )
    else:
        write_text(handoff.text + "\n" + (f"\n{pages}\n" if pages else ""))
    tell_source(found, made)
    return 0
