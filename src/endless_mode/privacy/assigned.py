"""Secrets known by the name they are given to: ``API_KEY=…``, ``password: "…"``, ``Authorization: …``.

A name alone proves nothing: the value must look drawn at random, because most values beside
such names in code are variables, types, calls, paths or words.
"""

import base64
import binascii
import re

_SHORTEST = 12
_LONGEST = 512  # as far as a value is looked at; a longer one is taken to its end
_WINDOW = 64  # characters before the sign in which its name is sought

_VALUE = r"[A-Za-z0-9_\-+/.~!@#$%^&*=?]"
_PLAIN = r"[A-Za-z_\-+/.~!@#$%^&*=?]"
_SCHEME = r"(?:[Bb]earer|BEARER|[Bb]asic|BASIC|[Tt]oken|TOKEN)[ ]{1,4}"
# Gates: a sign of assignment and, right behind it, a value long enough that holds a digit.
_BEHIND = (
    rf"""[ \t>"'`\\]{{0,8}}+(?={_VALUE})(?:(?={_VALUE}{{{_SHORTEST}}}){_PLAIN}{{0,30}}+[0-9]|(?=[BbTt]){_SCHEME})"""
)
# Right before the sign stands what a telling name can end in, or what may stand between name and sign.
_ENDS = r"""[DEHLNSTVYdehlnstvy0-9_\- \t:="'`\\\]]"""
_GATES = (re.compile(f"=(?<={_ENDS}=){_BEHIND}"), re.compile(f":(?<={_ENDS}:){_BEHIND}"))
_RAW_GATES = tuple(re.compile(gate.pattern.encode()) for gate in _GATES)

_NAMES = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "credentials"),
    *("authorization", "auth", "apikey", "accesskey", "secretkey", "privatekey", "accountkey"),
    *("authkey", "signingkey", "encryptionkey", "masterkey", "licensekey", "servicekey"),
)
_NAME_SUFFIX = re.compile(r"(?:value|base64|b64|prod|dev|test|live|[0-9]{1,3})\Z")
_ASSIGNED = re.compile(
    rf"""[=:]>?[ \t]{{0,4}}+(?P<quote>\\{{0,3}}["'`])?+"""
    rf"(?P<scheme>{_SCHEME})?+(?P<value>{_VALUE}{{6,{_LONGEST}}}+)"
)
_MORE = re.compile(rf"{_VALUE}*+")
_SCHEME_VALUE = re.compile(rf"(?P<scheme>{_SCHEME})(?P<value>{_VALUE}{{6,}}+)\Z")

_PLACEHOLDER = re.compile(
    r"redacted|example|placeholder|change.?me|your[_-]|my[_-]|dummy|sample|xxxx|\.\.\.|\*\*\*|\$\{|\{\{",
    re.IGNORECASE,
)
_AWS_SECRET = re.compile(r"[A-Za-z0-9/+]{40}")
_CALLS = ("(", "[", "{", "<")
_QUERY = re.compile(r"[&?]")
_SPACE = re.compile(r"\s")
_SWITCH = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_WORD = re.compile(r"[A-Z]?[a-z]{4,}|[A-Z]{5,}")
_CASE_SWITCH = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[a-z])")
_KINDS = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"), re.compile(r"[^A-Za-z0-9_.\-/]"))


def looks_random(value: str) -> bool:
    """Tell whether ``value`` looks drawn at random, rather than named or written by a person.

    Random letters and digits alternate often and hold few runs that read as words.
    """
    if len(value) < _SHORTEST or value[0] in "$%&./~" or _PLACEHOLDER.search(value):
        return False
    letters = sum(map(str.isalpha, value))
    switches = len(_SWITCH.findall(value))
    if letters < 4 or len(set(value)) < 8:
        return False
    words = sum(map(len, _WORD.findall(value)))
    if words * 2 > len(value):
        return False
    if switches >= max(4, len(value) // 12):
        return True
    mixed = switches + len(_CASE_SWITCH.findall(value))
    kinds = sum(1 for kind in _KINDS if kind.search(value))
    return kinds >= 3 and switches >= 2 and mixed >= len(value) // 3 and "/" not in value


def find_assigned(data: bytes, start: int) -> int:
    """Where in UTF-8 a telling name is given a value that could be random; -1 for nowhere."""
    places = []
    for gate in _RAW_GATES:
        for sign in gate.finditer(data, start):
            at = sign.start()
            if is_telling(_name_before(data[max(0, at - 4 * _WINDOW) : at].decode("utf-8", "replace"))):
                places.append(at)
                break
    return min(places, default=-1)


def redact_assigned(text: str) -> str:
    """Return ``text`` with random-looking values of telling names replaced."""
    for gate in _GATES:
        pieces: list[str] = []
        position = 0
        for sign in gate.finditer(text):
            if sign.start() < position:
                continue
            found = _find(text, sign.start())
            if found:
                start, end, kind = found
                pieces += text[position:start], f"[redacted:{kind}]"
                position = end
        if pieces:
            pieces.append(text[position:])
            text = "".join(pieces)
    return text


def redact_named(name: str, value: str) -> str:
    """Judge ``value`` as the value of ``name`` where structure, not text, ties the two together."""
    if not is_telling(name):
        return value
    if authorization := _SCHEME_VALUE.match(value):
        if _is_credential(authorization["scheme"], authorization["value"]):
            return f"{authorization['scheme']}[redacted:authorization]"
        return value
    if len(value) <= _LONGEST and not _SPACE.search(value) and _is_secret(name, value):
        return "[redacted:secret]"
    return value


def _find(text: str, sign: int) -> tuple[int, int, str] | None:
    if not is_telling(name := _name_before(text[max(0, sign - _WINDOW) : sign])):
        return None
    assigned = _ASSIGNED.match(text, sign)
    if not assigned:
        return None
    value, start, end = assigned["value"], assigned.start("value"), assigned.end()
    if scheme := assigned["scheme"]:
        known = "auth" in name[-24:].lower() and _is_credential(scheme, value)
        return (start, end, "authorization") if known else None
    if assigned["quote"]:
        if not text.startswith(assigned["quote"], end):
            return None
    elif text[end : end + 1] in _CALLS:
        return None
    elif len(value) < _LONGEST:
        value = _QUERY.split(value, maxsplit=1)[0].rstrip(".!*")
        end = start + len(value)
    else:
        end = _end_of(text, end)
    return (start, end, "secret") if _is_secret(name, value) else None


def _name_before(text: str) -> str:
    """The name at the end of ``text``, which ends at a sign; no more than a window of it is looked at."""
    return text[-_WINDOW:].rstrip(" \t:=\"'`\\]")


def _end_of(text: str, position: int) -> int:
    more = _MORE.match(text, position)
    return more.end() if more else position


def is_telling(name: str) -> bool:
    plain = name[-32:].lower().replace("_", "").replace("-", "")
    return plain.endswith(_NAMES) or _NAME_SUFFIX.sub("", plain).endswith(_NAMES)


def _is_secret(name: str, value: str) -> bool:
    plain = name[-32:].lower().replace("_", "").replace("-", "")
    if plain.endswith("secretaccesskey") and _AWS_SECRET.fullmatch(value):
        return True
    return looks_random(value)


def _is_credential(scheme: str, value: str) -> bool:
    if scheme.strip().lower() == "basic":
        try:
            plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        except (binascii.Error, ValueError):
            return False
        return b":" in plain
    if _PLACEHOLDER.search(value):
        return False
    return len(value) >= 16 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
