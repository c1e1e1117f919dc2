"""Our entries into a settings text and out of it. Pure: texts in, texts out."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct, field

from endless_mode.install import jsontext
from endless_mode.install.entries import TIMEOUTS, InstallError, event_of, is_our_rule

EMPTY = "{}\n"


class Trace(Struct):
    """What an install left in one settings file beside the hooks themselves, so that it can be undone.

    ``created`` names containers that were not there (``hooks``, ``hooks/Stop`` …), ``interiors`` what stood between
    the brackets of those that were there and empty. ``rules`` are the permission rules that were added. ``blank`` is
    the text of a file in which nothing stood.
    """

    rules: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    interiors: dict[str, str] = field(default_factory=dict)
    new_file: bool = False
    new_directory: bool = False
    blank: str | None = None


def checked(text: str, place: str) -> dict[str, Any]:
    """The settings in a text; raise :class:`InstallError` unless they have the shapes that we must extend.

    A file in which nothing stands holds no settings, for the client too.
    """
    if jsontext.is_blank(text):
        return {}
    try:
        value = jsontext.parse(text)
    except (ValueError, RecursionError) as error:
        line = f" (line {error.lineno})" if hasattr(error, "lineno") else ""
        raise InstallError(
            "settings_broken",
            f"{place} is not valid JSON{line}; comments are not JSON either.",
            "Correct the file, then run the command again. It was left as it is.",
        ) from error
    wrong = _wrong_shape(value)
    if wrong:
        raise InstallError(
            "settings_shape",
            f"In {place}, {wrong}.",
            "Correct the file, then run the command again. It was left as it is.",
        )
    return value  # type: ignore[no-any-return]


def install(
    text: str, place: str, hooks: dict[str, dict[str, Any]], rules: list[str], trace: Trace | None
) -> tuple[str, Trace]:
    """Return the text with exactly these hooks and rules of ours in it, and how to undo that.

    ``trace`` is that of an earlier install into the same file. What is in place already stays where it is.
    """
    value = checked(text, place)
    if trace is not None and _complete(value, hooks, rules):
        return text, trace
    clean = uninstall(text, place, trace) if trace is not None or _ours(value) else text
    before, made = (
        checked(clean, place),
        Trace(new_file=bool(trace and trace.new_file), new_directory=bool(trace and trace.new_directory)),
    )
    if jsontext.is_blank(clean):
        made.blank, clean = clean, EMPTY
    after = clean
    for event, entry in hooks.items():
        after = _add(after, ("hooks", event), entry, made)
    present = before.get("permissions", {}).get("allow", [])
    made.rules = [rule for rule in rules if rule not in present]
    for rule in made.rules:
        after = _add(after, ("permissions", "allow"), rule, made)
    _verify(before, checked(after, place), hooks, made.rules)
    return after, made


def uninstall(text: str, place: str, trace: Trace | None) -> str:
    """Return the text without what is ours.

    Without a ``trace`` everything that has the shape of ours goes, and containers that this leaves empty.
    """
    value = checked(text, place)
    if jsontext.is_blank(text):
        return text
    for event in value.get("hooks", {}):
        text = _remove_hooks(text, event, trace)
    allow = value.get("permissions", {}).get("allow", [])
    mine = [n for n, rule in enumerate(allow) if (rule in trace.rules if trace else is_our_rule(rule))]
    for n in reversed(mine):
        text = _remove(text, ("permissions", "allow", n), trace)
    if mine:
        text = _prune(text, ("permissions", "allow"), trace)
    if value.get("hooks") != checked(text, place).get("hooks"):
        text = _prune(text, ("hooks",), trace)
    if trace is not None and trace.blank is not None and not checked(text, place):
        return trace.blank
    return text


def found(value: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Event → the hooks of ours under it, as they stand in the settings."""
    ours: dict[str, list[dict[str, Any]]] = {}
    groups = value.get("hooks")
    for event, entries in groups.items() if isinstance(groups, dict) else ():
        mine = [hook for _, _, hook in _hooks(entries) if event_of(hook)]
        if mine:
            ours[event] = mine
    return ours


def _wrong_shape(value: Any) -> str:
    if not isinstance(value, dict):
        return "the settings are not an object"
    hooks, permissions = value.get("hooks", {}), value.get("permissions", {})
    if not isinstance(hooks, dict):
        return "`hooks` is not an object"
    bad = next((event for event in TIMEOUTS if not isinstance(hooks.get(event, []), list)), None)
    if bad is not None:
        return f"`hooks.{bad}` is not a list"
    if not isinstance(permissions, dict):
        return "`permissions` is not an object"
    return "" if isinstance(permissions.get("allow", []), list) else "`permissions.allow` is not a list"


def _hooks(entries: Any) -> list[tuple[int, int, Any]]:
    """(entry's position, hook's position, hook) of everything in an event's list that looks like a hook."""
    return [
        (g, h, hook)
        for g, entry in enumerate(entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("hooks"), list)
        for h, hook in enumerate(entry["hooks"])
    ]


def _ours(value: dict[str, Any]) -> bool:
    return bool(found(value))


def _complete(value: dict[str, Any], hooks: dict[str, dict[str, Any]], rules: list[str]) -> bool:
    wanted = {event: entry["hooks"] for event, entry in hooks.items()}
    allow = value.get("permissions", {}).get("allow", [])
    others = [rule for rule in allow if is_our_rule(rule) and rule not in rules]
    return found(value) == wanted and all(rule in allow for rule in rules) and not others


def _add(text: str, path: tuple[str, str], item: Any, made: Trace) -> str:
    """Append to a list, making it and what holds it where missing."""
    outer, inner = path
    if jsontext.node(text, (outer,)) is None:
        text = _into(text, (), {}, outer, made)
        made.created.append(outer)
    if jsontext.node(text, path) is None:
        made.created.append(f"{outer}/{inner}")
        return _into(text, (outer,), [item], inner, made)
    return _into(text, path, item, None, made)


def _into(text: str, path: tuple[str, ...], value: Any, name: str | None, made: Trace) -> str:
    inside, key = jsontext.interior(text, path), "/".join(path)
    if inside is not None and key not in made.created:
        made.interiors.setdefault(key, inside)
    return jsontext.add(text, path, value, name)


def _remove_hooks(text: str, event: str, trace: Trace | None) -> str:
    entries = jsontext.parse(text)["hooks"][event]
    mine = [(g, h) for g, h, hook in _hooks(entries) if event_of(hook)]
    for g, h in reversed(mine):
        entry = jsontext.parse(text)["hooks"][event][g]
        whole = len(entry["hooks"]) == 1
        path: jsontext.Path = ("hooks", event, g) if whole else ("hooks", event, g, "hooks", h)
        text = _remove(text, path, trace)
    return _prune(text, ("hooks", event), trace) if mine else text


def _remove(text: str, path: jsontext.Path, trace: Trace | None) -> str:
    left = trace.interiors.get("/".join(map(str, path[:-1])), "") if trace else ""
    return jsontext.remove(text, path, left)


def _prune(text: str, path: tuple[str, ...], trace: Trace | None) -> str:
    """Remove a container that we made and that is empty now, and so on outwards."""
    while path and jsontext.interior(text, path) is not None and (trace is None or "/".join(path) in trace.created):
        text = _remove(text, path, trace)
        path = path[:-1]
    return text


def _verify(before: dict[str, Any], after: dict[str, Any], hooks: dict[str, dict[str, Any]], rules: list[str]) -> None:
    """Hold the text surgery to what it should have done, by values."""
    expected: dict[str, Any] = jsontext.parse(json.dumps(before))
    for event, entry in hooks.items():
        expected.setdefault("hooks", {}).setdefault(event, []).append(entry)
    if rules:
        expected.setdefault("permissions", {}).setdefault("allow", []).extend(rules)
    if expected != after:
        raise InstallError(
            "edit_failed",
            "The settings could not be changed safely.",
            "The file was left as it is; add the hooks by hand.",
        )
