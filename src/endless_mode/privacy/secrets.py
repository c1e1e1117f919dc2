"""Replace known secret shapes by ``[redacted:<kind>]``.

Every shape belongs to a gate: a fixed character that each of its matches holds. A text that
opens no gate is returned untouched after one cheap scan per gate, however many shapes there are.
Gates are ASCII alone, so they hold for a text and for its UTF-8 alike; bytes are scanned faster.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from endless_mode.privacy.assigned import find_assigned, redact_assigned
from endless_mode.privacy.probing import Search, hits, searching

# Where a token may begin inside encoded text: after \n, \u003d, %3D or a colour code. What precedes
# must not be part of a token itself, or a long run would be tried from each of its characters.
_ESCAPED = (
    r"(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})|(?<=%[0-9a-fA-F]{2})"
    r"|(?<=[\[;][0-9]m)|(?<=[\[;][0-9]{2}m)"
)
# For tokens whose first letters may end a word ("task-"), and for those with an own alphabet.
_START = rf"(?:(?<![A-Za-z0-9_-])|(?<=[^A-Za-z0-9_-][-+])|{_ESCAPED})"
_EDGE = rf"(?:(?<![A-Za-z0-9+/])|(?<=[^A-Za-z0-9+/][+/])|{_ESCAPED})"


class _Shape(NamedTuple):
    kind: str
    pattern: re.Pattern[str]


def _shape(kind: str, pattern: str) -> _Shape:
    return _Shape(kind, re.compile(pattern))


class _Gate(NamedTuple):
    pivot: str
    probe: re.Pattern[str]
    shapes: tuple[_Shape, ...]


# The common sign comes first and most often settles it; only then is looked back at the prefix.
_UNDERSCORE = _Gate(
    "_",
    re.compile(
        r"_[A-Za-z0-9]{16}(?:(?<=gh[pousr]_.{16})|(?<=github_pat_.{16})|(?<=hf_.{16})|(?<=npm_.{16})"
        r"|(?<=[sr]k_live_.{16})|(?<=whsec_.{16})|(?<=gsk_.{16})|(?<=dop_v1_.{16})|(?<=shp[a-z][a-z]_.{16}))"
    ),
    (
        _shape("github-token", r"(?:gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{22,}+)"),
        _shape("huggingface-token", _START + r"hf_[A-Za-z0-9]{30,}+"),
        _shape("npm-token", r"npm_[A-Za-z0-9]{36,}+"),
        _shape("stripe-key", r"(?:[sr]k_live_|whsec_)[A-Za-z0-9]{16,}+"),
        _shape("groq-key", _START + r"gsk_[A-Za-z0-9]{40,}+"),
        _shape("digitalocean-token", r"dop_v1_[a-f0-9]{64}"),
        _shape("shopify-token", _START + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ),
)
_DASH = _Gate(
    "-",
    re.compile(
        r"-(?:[A-Za-z0-9_-]{10}(?:(?<=sk-.{10})[A-Za-z0-9_-]{10}|(?<=glpat-.{10})[A-Za-z0-9_-]{10}"
        r"|(?<=xox[a-z]-.{10})|(?<=xapp-.{10})|(?<=pypi-.{10})[A-Za-z0-9_-]{6})"
        r"|-{4}BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY)"
    ),
    (
        _shape("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{20,}+"),
        _shape("openai-key", r"sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}+"),
        _shape("openai-key", _START + r"sk-[A-Za-z0-9]{32,}+"),
        _shape("gitlab-token", r"glpat-[A-Za-z0-9_-]{20,}+(?:\.[a-z0-9]{2}\.[a-z0-9]{9})?"),
        _shape("slack-token", r"(?:xox[abeoprs]|xapp)-(?=[A-Za-z-]{0,12}[0-9])[A-Za-z0-9-]{10,}+"),
        _shape("pypi-token", r"pypi-[A-Za-z0-9_-]{32,}+"),
    ),
)
_COLON = _Gate(
    ":",
    re.compile(
        r":(?:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])(?<=[0-9]{6}:.{35})|//hooks\.slack\.com/services/[A-Z]"
        r"|//(?:[a-z]{1,9}\.)?discord(?:app)?\.com/api/webhooks/[0-9])"
    ),
    (
        _shape("telegram-token", r"(?<![0-9])[0-9]{6,12}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
        _shape(
            "slack-webhook",
            r"(?<=://)hooks\.slack\.com/services/[A-Za-z0-9]{6,20}/[A-Za-z0-9]{6,20}/[A-Za-z0-9]{16,}+",
        ),
        _shape("discord-webhook", r"(?<=/api/webhooks/)[0-9]{15,22}/[A-Za-z0-9_-]{40,}+"),
    ),
)
_GATES = (
    _UNDERSCORE,
    _DASH,
    _COLON,
    _Gate(
        "I",
        re.compile(r"I(?:(?<=A[KS]I)A[A-Z0-9]{16}|(?<=AI)za[A-Za-z0-9_-]{35})"),
        (
            _shape("aws-access-key-id", _EDGE + r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9+/])"),
            _shape("google-api-key", r"AIza[A-Za-z0-9_-]{35,}+"),
        ),
    ),
    _Gate(
        "J",
        re.compile(r"J(?<=eyJ)[A-Za-z0-9_-]{7}"),
        (
            _shape(
                "jwt",
                _START + r"eyJ[A-Za-z0-9_-]{7,}+\.(?:eyJ[A-Za-z0-9_-]{6,}+(?:\.[A-Za-z0-9_-]*+)?"
                r"|[A-Za-z0-9_-]*+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+)",
            ),
        ),
    ),
    _Gate(
        "G",
        re.compile(r"G(?<=SG)\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16}"),
        (_shape("sendgrid-key", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,}+"),),
    ),
    _Gate(
        "K",
        re.compile(r"K(?<=SK)[0-9a-f]{32}(?![0-9A-Za-z])"),
        (_shape("twilio-key", _EDGE + r"SK[0-9a-f]{32}(?![0-9A-Za-z])"),),
    ),
    _Gate(
        "9",
        re.compile(r"9(?<=ya29)\.[A-Za-z0-9_-]{16}"),
        (_shape("google-oauth-token", r"ya29\.[A-Za-z0-9_-]{16,}+"),),
    ),
)

# What stands between the lines of a key: escapes, quotes, diff marks, a reader's line numbers.
_BETWEEN = r"(?:\s|\\++[nrt]|[\"'`+,>|\u2502-]|[0-9]{1,6}[\u2192:\t])"
_PEM = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----"
    rf"(?:(?P<closed>(?:[^-]|-(?!----))*+)-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"
    rf"|(?P<open>{_BETWEEN}*+(?:[A-Z][A-Za-z-]{{3,20}}: [^\n\\]{{1,80}}+{_BETWEEN}*+){{0,6}}"
    rf"(?:[A-Za-z0-9/+=]{{16,}}+{_BETWEEN}*+)++(?:[A-Za-z0-9/+=]{{1,15}}+(?=\s*+\Z))?))"
)
_BASE64_RUN = re.compile(r"[A-Za-z0-9/+=]{16}")
_FILLER = frozenset("xX*.-_#")

# Bytes of a character count singly here, and no white space beyond ASCII ends anything: this finds more than there is.
_RAW_PASSWORD = re.compile(rb"://[^\s/@:\"'<>`]{0,800}:[^\s/@\"'<>`]{1,1000}@")

#: Where in UTF-8 there may be something to redact.
SECRET_SEARCHES: tuple[Search, ...] = (
    *(searching(re.compile(gate.probe.pattern.encode()), gate.pivot.encode()) for gate in _GATES),
    searching(_RAW_PASSWORD, b"://", b"@"),
    find_assigned,
)


def may_hold_secret(data: bytes) -> bool:
    """Tell whether the text with this UTF-8 has anything to redact; True where only a closer look can tell."""
    return any(search(data, 0) >= 0 for search in SECRET_SEARCHES)


def redact_secrets(text: str) -> str:
    """Return ``text`` with known secret shapes replaced; the same object if there are none."""
    return redact_thoroughly(text) if may_hold_secret(text.encode("utf-8", "surrogatepass")) else text


def redact_thoroughly(text: str) -> str:
    """:func:`redact_secrets` without the look at the bytes first."""
    given = text
    for gate in _GATES:
        if hits(text, gate.pivot, gate.probe):
            if gate is _DASH:
                text = _PEM.sub(_redact_pem, text)
            for shape in gate.shapes:
                text = shape.pattern.sub(_replacer(shape.kind), text)
    text = redact_assigned(_redact_url_passwords(text))
    return given if text == given else text


def _replacer(kind: str) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        token = match[0]
        body = token[len(token) // 2 :]
        if "REDACTED" in token or _FILLER.issuperset(body):
            return token
        return f"[redacted:{kind}]"

    return replace


def _redact_pem(match: re.Match[str]) -> str:
    body = match["closed"] if match["closed"] is not None else match["open"]
    run = _BASE64_RUN.search(body)
    return "[redacted:private-key]" if run and not _FILLER.issuperset(run[0]) else match[0]


_USER_INFO = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://([^\s/@:\"'<>`]{0,200}):([^\s/@\"'<>`]{1,250})\Z")
_REFERENCE = re.compile(r"[${\[(%*.]|(?:x{3,}|REDACTED|your.*|\w*placeholder\w*)\Z", re.IGNORECASE)


def _redact_url_passwords(text: str) -> str:
    at = text.find("@")
    if at < 0:
        return text
    pieces: list[str] = []
    position = 0
    while at >= 0:
        scheme = text.rfind("://", max(position, at - 480), at)
        if scheme >= 0:
            found = _USER_INFO.search(text, max(position, scheme - 21), at)
            if found and not _REFERENCE.match(found[2]):
                pieces += text[position : found.start(2)], "[redacted:url-password]"
                position = at
        at = text.find("@", at + 1)
    if not pieces:
        return text
    pieces.append(text[position:])
    return "".join(pieces)
