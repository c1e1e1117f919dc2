"""Random schedules: what the client does, and what goes wrong meanwhile. A seed gives the same one for ever."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

#: Actions with their weights. What happens in a real session is frequent, what goes wrong is not rare.
ORDINARY = {"prompt": 10, "say": 8, "bash": 14, "open": 3, "stop": 3, "compact": 9, "render": 2, "session": 2}
TROUBLE = {
    "kill": 3, "restart": 2, "delete": 1, "delete_under": 1, "rotate": 2, "cut": 1, "torn": 2, "clock": 2, "throw": 2,
    "readonly": 2, "resume": 2,
}  # fmt: skip
#: What only works where the service runs in this process.
INSIDE_ONLY = {"throw", "readonly", "clock"}


@dataclass(frozen=True)
class Action:
    name: str
    given: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in self.given.items())})"


def schedule(seed: int, inside: bool) -> list[Action]:
    rng = Random(seed)
    weights = {**ORDINARY, **{k: v for k, v in TROUBLE.items() if inside or k not in INSIDE_ONLY}}
    calm = rng.random() < 0.15
    if calm:
        weights = dict(ORDINARY)
    names, shares = list(weights), list(weights.values())
    length = rng.randint(12, 60) if inside else rng.randint(8, 20)
    found = [Action("prompt"), Action("bash"), Action("say")]
    for name in rng.choices(names, shares, k=length):
        found.append(Action(name, _given(name, rng, inside)))
        if name == "compact" and rng.random() < 0.25:
            found.append(Action("compact", _given("compact", rng, inside)))
    return found


def _given(name: str, rng: Random, inside: bool) -> dict[str, Any]:
    if name == "compact":
        return {
            "pre": rng.choices([0, 1, 2], [2, 8, 1])[0],
            "start": rng.choices([0, 1, 2, 3], [2, 8, 2, 1])[0],
            "late_seal": rng.random() < 0.1,
            "post": rng.random() < 0.9,
            "early_boundary": rng.random() < 0.08,
            "abort": rng.choices(["", "pre", "start", "boundary"], [16, 1, 1, 1])[0],
            "kill": round(rng.random(), 3) if rng.random() < 0.15 else None,
            "delete": rng.random() < 0.03,
        }
    if name == "prompt":
        return {"hook": rng.random() < 0.95, "kill": round(rng.random(), 3) if rng.random() < 0.06 else None}
    if name == "bash":
        return {"times": rng.choices([1, 2, 9], [8, 3, 1])[0]}
    if name == "clock":
        return {"by": rng.choice([-7200, -60, -1, 1, 60, 7200, 86_400])}
    if name in ("throw", "readonly"):
        return {"times": rng.randint(1, 3)}
    if name == "torn":
        return {"keep": round(rng.random(), 2)}
    if name == "resume":
        return {"hook": rng.random() < 0.9}
    return {}
