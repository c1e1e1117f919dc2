"""Pools of realistic text, already escaped for JSON, from which transcripts are spliced.

Everything is derived from one seeded generator; nothing is read from disk. Strings named
`...lines` and all results of `Texts` methods stand for the inside of a JSON string: they
need only quotes around them.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import NormalDist

_NOUNS = """
account agent archive batch billing branch bridge buffer bundle cache channel checkpoint claim
client cluster column commit config context cookie cursor daemon deploy digest driver editor
endpoint engine event export fetch field filter fixture folder format gateway graph handler header
hook index ingest invoice job journal kernel ledger limit listener loader locale lock manifest
mapper marker merge metric migration module monitor notice observer order packet parser patch
payload pipeline plugin policy pool prompt proxy query queue quota record region registry relay
render report request resolver retry route runner sample scanner schema seal secret segment server
session shard signal snapshot socket source spool stage store stream summary switch symbol table
target task template tenant thread timer token topic tracker transcript trigger turn upload
validator vector version viewer watcher widget window worker writer
"""
_VERBS = """
add apply build check clear close collect create delete fetch find fold load mark merge open parse
push read remove render resolve retry save scan seal send sort split store trim update verify write
"""
WORDS, VERBS = _NOUNS.split(), _VERBS.split()
TYPES = (
    "str",
    "int",
    "bool",
    "bytes",
    "float",
    "None",
    "dict",
    "list",
    "Path",
    "Session",
    "Record",
    "Cursor",
)
NOTES = (
    "Let me check how `{a}` uses {b} before changing anything.",
    "The {a} test fails because the {b} is closed too early.",
    "Now I'll update `{a}_{b}.py` so that the {c} is written once.",
    "I found it: `{v}_{a}` returns the old {b} when the {c} is empty.",
    "That leaves the {a} in a half-written state after a crash, which is what the report describes.",
    "All {n} tests pass now, including the new one for the {a} {b}.",
    "Two callers still pass a bare string for the {a}; both are in `src/{b}/{c}.py`.",
    "Before I go on: the {a} limit is {n}, the {b} limit is {m}, and nothing checks either.",
    "- `{a}_{b}`: {v} the {c} and log how many were skipped\n- `{b}_{c}`: unchanged",
    "The change is small: {n} lines in `{a}.py`, {m} in its test.",
    "I would rather not touch the {a} here, since the {b} migration depends on its order.",
    "Running the {a} suite again with the {b} enabled to be sure.",
    "This was introduced when the {a} moved from the {b} to the {c}.",
    "## {a} and {b}\n\nThe {c} is read twice: once at start and once per {a}.",
    'The error is "cannot {v} {a}: {b} is not ready", raised at line {n}.',
    "Done. The {a} now waits for the {b}, and the {c} has its own timeout of {m} seconds.",
)
ASKS = (
    "can you look at why the {a} {v}s the {b} twice?",
    "the {a} test is flaky again, please fix it properly this time",
    "add a `--{a}` option to the {b} command, default {n}",
    "no, keep the {a} as it is and change the {b} instead",
    "what happens if the {a} is empty and the {b} has {n} entries?",
    "run the tests",
    "commit this with a short message",
    "yes, do that. and also {v} the {a} before the {b} starts",
    'I get this when I {v} the {a}:\n\nTraceback (most recent call last):\n  File "{b}.py", line {n}, in'
    " {v}\nValueError: {a} {m} is out of range",
    "is there any other place where we {v} a {a}? we should handle all of them in one go, not only the {b}",
    "explain the {a} to me first",
    "peux-tu vérifier que le {a} est bien fermé après l'écriture ?",
    "à la place de {a}, utilise {b} — c'est plus clair pour les élèves",
    "{a} のテストが失敗しています。原因を調べてください。",
    "проверь, пожалуйста, почему {a} не обновляется после {b}",
    "great 🎉 now the same for {a} → {b}",
)
CODE = (
    "def {v}_{a}(self, {b}: {t}, {c}: {t} = {n}) -> {t}:",
    '    {a} = self.{b}_{c}.get("{a}_{b}", {n})',
    "    if {a} is None or len({b}) > {n}:",
    '        raise {A}Error(f"cannot {v} {a}: {{{b}!r}}")',
    "    for {a} in sorted({b}.items(), key=lambda item: item[{k}]):",
    "        {c}.append(({a}, {b}, {n}))",
    "    return {A}{B}({a}={a}, {b}={n}, {c}=self._{c})",
    "",
    "class {A}{B}:",
    '    """Hold the {a} of one {b} until the {c} is written."""',
    "    # The {a} must come before the {b}: a {c} may refer to it.",
    "\tif err := s.{v}{A}(ctx, {b}ID); err != nil {{",
    '\t\treturn fmt.Errorf("{v} {a}: %w", err)',
    "\t}}",
    "  const {a}{B} = await {v}{A}({{ {b}: {n}, {c}: '{a}' }});",
    "  expect({a}{B}.{c}).toEqual([{n}, {m}]);",
)
OUTPUT = {
    "test": (
        "tests/test_{a}_{b}.py::test_{v}_{a}_{c} PASSED                      [ {k}%]",
        "tests/test_{a}.py ................                                    [ {k}%]",
        "E       AssertionError: assert {n} == {m}",
        "tests/test_{a}_{c}.py:{n}: AssertionError",
        "ok  \tgithub.com/acme/{a}/internal/{b}\t0.{n}s",
    ),
    "git": (
        "\tmodified:   src/{a}/{b}_{c}.py",
        " src/{a}/{b}.py | {k} +++++---",
        "{h} {v} the {a} when the {b} is gone",
        "+    {a} = self.{b}({n})",
        "-    {a} = self.{c}({m})",
    ),
    "list": (
        "-rw-r--r--  1 dev  staff  {n}{m} Feb  8 10:{k} {a}_{b}.py",
        "drwxr-xr-x  5 dev  staff    {n} Feb  {k} 09:12 {c}",
        "./src/{a}/{b}/{c}.py",
    ),
    "log": (
        "2026-02-08T10:{k}:12.{n}Z INFO {a}.{b} {v} {c} id={h} size={m}",
        "2026-02-08T10:{k}:13.{n}Z WARN {a}.{b} slow {c}: {m} ms",
        "[lint] $ check ./{a}/{b} --{c}",
        '{{"{a}":{n},"{b}":"{h}","{c}":[{m},{k}]}}',
    ),
    "search": (
        "src/{a}/{b}_{c}.py:{n}:    {a} = self.{v}_{b}({c})",
        "tests/test_{a}.py:{m}:def test_{v}_{b}_{c}() -> None:",
    ),
}


@dataclass(frozen=True, slots=True)
class Source:
    """One invented source file: its path, escaped lines and the whole escaped text."""

    path: str
    lines: list[str]
    numbered: list[str]
    text: str


def escape(text: str) -> str:
    """`text` as the inside of a JSON string, non-ASCII kept (as the client writes it)."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


class Texts:
    """Seeded pools and the splicing on top of them; `root` is the invented project directory."""

    def __init__(self, seed: int, root: str = "/home/dev/work/acme") -> None:
        self.rng = Random(f"texts-{seed}")
        self.root = root
        self.notes = [escape(self._fill(NOTES)) for _ in range(3000)]
        self.asks = [escape(self._fill(ASKS)) for _ in range(1500)]
        self.outputs = {kind: [escape(self._fill(forms)) for _ in range(2500)] for kind, forms in OUTPUT.items()}
        code = [escape(self._fill(CODE)) for _ in range(12000)]
        # Quantiles instead of draws: the mean file is the same whatever the seed.
        sizes = [int(math.exp(5.78 + 0.8 * NormalDist().inv_cdf((i + 0.5) / 160))) for i in range(160)]
        self.sources = [self._source(code, size) for size in sizes]
        self.signature = "".join(self.rng.choices("ABCDEFGHIJKLMNOPqrstuvwxyz0123456789+/", k=4000))

    def _fill(self, forms: tuple[str, ...]) -> str:
        pick, bits = self.rng.choice, self.rng.getrandbits
        a, b, c = pick(WORDS), pick(WORDS), pick(WORDS)
        return pick(forms).format(
            a=a, b=b, c=c, A=a.title(), B=b.title(), v=pick(VERBS), t=pick(TYPES),
            n=bits(9), m=bits(7), k=10 + bits(5), h=f"{bits(28):07x}",
        )  # fmt: skip

    def _source(self, code: list[str], count: int) -> Source:
        start = self.rng.randrange(len(code) - count)
        lines = code[start : start + count]
        path = f"{self.root}/src/{self.rng.choice(WORDS)}/{self.rng.choice(WORDS)}_{self.rng.choice(WORDS)}.py"
        numbered = [f"{i:6d}→{line}" for i, line in enumerate(lines, 1)]
        return Source(path, lines, numbered, "\\n".join(lines))

    def pick(self, pool: Sequence[str]) -> str:
        return pool[int(self.rng.random() * len(pool))]

    def source(self) -> Source:
        return self.sources[int(self.rng.random() * len(self.sources))]

    def name(self) -> str:
        """A fresh identifier, so that titles and commands seldom repeat."""
        return f"{self.pick(WORDS)}_{self.pick(WORDS)}_{self.rng.getrandbits(12)}"

    def note(self, median: float = 105, sigma: float = 1.25) -> str:
        """Assistant prose of a drawn length (characters)."""
        return self._splice(self.notes, median, sigma, 12000)

    def ask(self, median: float = 80, sigma: float = 1.1) -> str:
        """What a person types, of a drawn length (characters)."""
        return self._splice(self.asks, median, sigma, 12000)

    def _splice(self, pool: Sequence[str], median: float, sigma: float, most: int) -> str:
        wanted = min(most, median * self.rng.lognormvariate(0, sigma))
        parts = [self.pick(pool)]
        size = len(parts[0])
        while size < wanted:
            parts.append(self.pick(pool))
            size += len(parts[-1]) + 1
        return " ".join(parts)

    def output(self, kind: str, median: float, sigma: float, most: int = 30000) -> list[str]:
        """Lines of command output; their joined length follows a log-normal distribution."""
        pool = self.outputs[kind]
        wanted = min(most, median * self.rng.lognormvariate(0, sigma))
        count = max(1, int(wanted / 55))
        start = int(self.rng.random() * max(1, len(pool) - count))
        return pool[start : start + count]
