"""What an install adds to the real client's time: per tool call, at a prompt, at a stop, at a session's start and end.

    python -m bench.e2e [--version 2.1.197] [--calls 200] [--rounds 3] [--json FILE]

Runs of the same script alternate between two homes, one with us installed and one without. All times are what the
scripted API sees, in milliseconds: the time between its answer and the client's next request.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.answers import Answer, bash, call, say
from tests.e2e.client import Client
from tests.e2e.home import Home, wait_until
from tests.e2e.messages_api import MessagesApi
from tests.e2e.recorded import Request
from tests.e2e.recording import laboratory
from tools.get_client import clients

ENDLESS = Path(sys.executable).with_name("endless")
TURNS = 12


@dataclass
class Side:
    """One home, and milliseconds by what was measured."""

    name: str
    client: Client
    api: MessagesApi
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def tool_calls(side: Side, calls: int) -> None:
    """One `-p` run of many Bash calls: start (until the first request), each call, end (after the last answer)."""
    seen: list[float] = []

    def model(_: Request) -> Answer:
        seen.append(time.monotonic())
        return call(bash(f"echo {len(seen)}")) if len(seen) <= calls else say("Done.")

    side.api.script(model)
    started = time.monotonic()
    result = side.client.run("Count the herons", seconds=600)
    ended = time.monotonic()
    if result.text != "Done.":
        raise SystemExit(f"{side.name}: {result.stderr or result.stdout[-500:]}")
    gaps = [1000 * (later - earlier) for earlier, later in itertools.pairwise(seen)]
    side.times["tool call"].append(statistics.median(gaps))
    side.times["tool call, p10"].append(statistics.quantiles(gaps, n=10)[0])
    side.times["tool call, mean"].append(statistics.fmean(gaps))
    side.times["tool call, p95"].append(statistics.quantiles(gaps, n=20)[-1])
    side.times["session start + first prompt"].append(1000 * (seen[0] - started))
    side.times["last stop + session end"].append(1000 * (ended - seen[-1]))
    side.times["whole run"].append(1000 * (ended - started))


def turns(side: Side) -> None:
    """Several prompts in one process: from sending to the request (prompt), from the answer to the result (stop)."""
    seen: list[float] = []

    def model(_: Request) -> Answer:
        seen.append(time.monotonic())
        return say("Done.")

    side.api.script(model)
    prompt, stop = [], []
    with side.client.stream() as stream:
        for number in range(TURNS):
            sent = time.monotonic()
            stream.ask(f"prompt {number}", 60)
            prompt.append(1000 * (seen[-1] - sent))
            stop.append(1000 * (time.monotonic() - seen[-1]))
        stream.finish()
    side.times["prompt"].append(statistics.median(prompt[1:]))
    side.times["stop"].append(statistics.median(stop[1:]))


@contextmanager
def sides(version: str) -> Iterator[list[Side]]:
    """The two homes. The worker of ours is up before anything is measured."""
    with ExitStack() as stack:
        found = []
        for name in ("without", "with"):
            client, api = stack.enter_context(laboratory(version))
            if name == "with":
                client.home.extra_env["PATH"] = f"{ENDLESS.parent}:{client.home.env['PATH']}"
                done = client.home.command([ENDLESS, "install"])
                if done.returncode:
                    raise SystemExit(done.stderr)
            api.script([say("Hello.")])
            client.run("Hello")
            if name == "with":
                _await_worker(client.home)
            found.append(Side(name, client, api))
        yield found


def _await_worker(home: Home) -> None:
    wait_until(lambda: home.command([ENDLESS, "worker", "status"]).returncode == 0, 20, "the worker")


def measure(version: str, calls: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Side → measurement → one number per round."""
    with sides(version) as both:
        for number in range(rounds):
            for side in both if number % 2 == 0 else both[::-1]:
                tool_calls(side, calls)
                turns(side)
        return {side.name: dict(side.times) for side in both}


def table(found: dict[str, dict[str, list[float]]], calls: int) -> Iterator[str]:
    """Medians over the rounds, and how far rounds of the same home lie apart."""
    yield f"{'ms':<30}{'without':>10}{'with':>10}{'added':>10}{'spread without':>16}"
    for name, without in found["without"].items():
        mine, theirs = statistics.median(found["with"][name]), statistics.median(without)
        spread = max(without) - min(without)
        yield f"{name:<30}{theirs:>10.1f}{mine:>10.1f}{mine - theirs:>+10.1f}{spread:>16.1f}"
    yield f"({calls} Bash calls a run; `added` within the spread is no difference)"


def main() -> None:
    """Print a table per installed version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", help="one client version (default: all that are installed)")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = {}
    for pinned in clients():
        if pinned.path() is None or given.version not in (None, pinned.version):
            continue
        print(f"client {pinned.version}")
        results[pinned.version] = measure(pinned.version, given.calls, given.rounds)
        print("\n".join(table(results[pinned.version], given.calls)), flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
