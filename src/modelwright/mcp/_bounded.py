"""Answers that fit into a conversation: long lists, tables and texts are cut, and it is said where."""

from __future__ import annotations

from typing import Any

from modelwright import _json
from modelwright.errors import UsageError

LARGEST = 24_000
"""Characters of an answer, as JSON."""
_ITEMS, _LETTERS = 100, 2_000
_KEPT_ALWAYS = ("schema_version", "command", "tool_version", "record_id")


def bounded(document: dict[str, Any], largest: int = LARGEST) -> dict[str, Any]:
    """The document, with `cut` for what is not in it: where, of how many, how many are. As much as fits is kept."""
    items, letters = _ITEMS, _LETTERS
    while True:
        cuts: list[dict[str, Any]] = []
        found = _cut(document, (), (items, letters), cuts)
        found = found if not cuts else {**found, "cut": cuts[:_ITEMS], **_whole(document)}
        if len(_json.canonical(found)) <= largest or (items == 0 and letters <= 100):
            return found
        items, letters = items // 2, max(letters // 2, 100)


def _whole(document: dict[str, Any]) -> dict[str, str]:
    """Where the rest is."""
    known = document.get("record_id")
    rest = "ask for less, or have it saved to a file with `save`"
    return {"whole": f"read(record={str(known)[:12]!r}, at=..., start=...) has the rest" if known else rest}


def _cut(value: Any, place: tuple[str, ...], most: tuple[int, int], cuts: list[dict[str, Any]]) -> Any:
    items, letters = most
    if isinstance(value, str) and len(value) > letters and place[-1:] != ("record_id",):
        cuts.append({"at": ".".join(place), "had": len(value), "kept": letters})
        return value[:letters]
    if isinstance(value, list):
        return [_cut(one, (*place, str(number)), most, cuts) for number, one in _first(value, place, items, cuts)]
    if isinstance(value, dict):
        head = {name: one for name, one in value.items() if not place and name in _KEPT_ALWAYS}
        rest = _first([name for name in value if name not in head], place, max(items, 40) if not place else items, cuts)
        return head | {name: _cut(value[name], (*place, name), most, cuts) for _, name in rest}
    return value


def _first(value: list[Any], place: tuple[str, ...], items: int, cuts: list[dict[str, Any]]) -> list[tuple[int, Any]]:
    if len(value) > items:
        cuts.append({"at": ".".join(place), "had": len(value), "kept": items})
    return list(enumerate(value[:items]))


def part_of(document: dict[str, Any], at: str | None, start: int) -> dict[str, Any]:
    """The part at a place that `cut` spells, from one of its items on."""
    if at is None:
        return document
    found: Any = document
    for word in at.split("."):
        found = _step(found, word, at)
    left = found[start:] if isinstance(found, list | str) else found
    if isinstance(found, dict):
        left = dict(list(found.items())[start:])
    head = {name: document[name] for name in _KEPT_ALWAYS if name in document}
    return {**head, "at": at, "start": start, "part": left}


def _step(value: Any, word: str, at: str) -> Any:
    if isinstance(value, dict) and word in value:
        return value[word]
    if isinstance(value, list) and word.isdecimal() and int(word) < len(value):
        return value[int(word)]
    known = ", ".join(list(value)[:20]) if isinstance(value, dict) else f"0 to {len(value) - 1}" if value else "nothing"
    raise UsageError(f"there is no {at} in it", cause=f"where {word!r} should be there is {known}", fix="see `cut`")
