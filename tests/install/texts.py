"""Random JSON texts with random white space, and a plain way to write them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

#: No example is judged by its time: the machine may be busy.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

KEYS = st.sampled_from(["hooks", "permissions", "allow", "Stop", "a", "ü", 'q"u', "back\\", ""]) | st.text(max_size=4)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-10, 10)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)
SPACES = st.sampled_from(["", "", " ", "\n", "\t", "\r\n", "\n  ", "\n    ", "  "])


def written(draw: st.DrawFn, value: Any) -> str:
    """The value as JSON, with white space of any kind wherever it may stand."""

    def space() -> str:
        return draw(SPACES)

    def one(value: Any) -> str:
        if isinstance(value, dict):
            members = [f"{space()}{text(key)}{space()}:{space()}{one(inner)}{space()}" for key, inner in value.items()]
            return "{" + (",".join(members) or space()) + "}"
        if isinstance(value, list):
            return "[" + (",".join(f"{space()}{one(inner)}{space()}" for inner in value) or space()) + "]"
        return text(value)

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    return space() + one(value) + space()


@st.composite
def layouts(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> str:
    """Texts of these values in any layout: as programs write them, or with wild white space."""
    value = draw(values)
    how = draw(st.sampled_from(["wild", "two", "four", "tab", "crlf", "one line", "tight"]))
    if how == "wild":
        return written(draw, value)
    end = draw(st.sampled_from(["", "\n"]))
    if how == "tight":
        return json.dumps(value, separators=(",", ":")) + end
    indent: dict[str, Any] = {"two": 2, "four": 4, "tab": "\t", "crlf": 2, "one line": None}
    made = json.dumps(value, ensure_ascii=False, indent=indent[how]) + end
    return made.replace("\n", "\r\n") if how == "crlf" else made
