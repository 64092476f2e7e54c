"""What was written as JSON comes back with its types, or is said not to fit."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

import pytest

from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright._typed import MisfitError, typed


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Leaf:
    size: int
    share: float | None = None


@dataclass(frozen=True)
class Tree:
    name: str
    leaves: tuple[Leaf, ...] = ()
    pair: tuple[str, int] = ("a", 1)
    by_name: Mapping[str, Leaf] = field(default_factory=dict)
    colour: Colour = Colour.RED
    word: Literal["one", 2] = "one"
    place: Path | None = None
    either: int | str | None = None
    several: Sequence[float] = ()
    anything: Any = None
    known: bool = False
    counted: int = field(default=0, init=False)


WHOLE = Tree(
    "t", (Leaf(1), Leaf(2, 0.5)), ("b", 3), {"x": Leaf(4)}, Colour.RED, 2, Path("a"), "7", (1.0, 2.0), {"k": [1]}, True
)  # fmt: skip


def test_what_goes_out_comes_back() -> None:
    assert typed(Tree, plain(WHOLE)) == WHOLE
    assert typed(Tree, WHOLE) is WHOLE
    assert typed(tuple[Leaf, ...], [{"size": 1}]) == (Leaf(1),)


def test_whole_numbers_are_numbers_and_numbers_that_are_whole_are_whole() -> None:
    found = typed(Leaf, {"size": 2.0, "share": 1})
    assert (type(found.size), type(found.share)) == (int, float)


@pytest.mark.parametrize(
    ("form", "where", "why"),
    [
        ({}, "name", "missing"),
        ([], "it", "table"),
        ({"name": 3}, "name", "text, not 3"),
        ({"name": None}, "name", "text, not None"),
        ({"name": "t", "leaves": [{"size": 1}, {"size": "many"}]}, "leaves.1.size", "whole number, not 'many'"),
        ({"name": "t", "leaves": [{"size": True}]}, "leaves.0.size", "whole number, not True"),
        ({"name": "t", "leaves": [{"size": 1.5}]}, "leaves.0.size", "whole number"),
        ({"name": "t", "leaves": [{"size": float("inf")}]}, "leaves.0.size", "whole number"),
        ({"name": "t", "leaves": "text"}, "leaves", "list"),
        ({"name": "t", "pair": ["a"]}, "pair", "2 items"),
        ({"name": "t", "by_name": {"x": {"size": None}}}, "by_name.x.size", "whole number"),
        ({"name": "t", "colour": "blue"}, "colour", "blue"),
        ({"name": "t", "word": True}, "word", "'one' or 2"),
        ({"name": "t", "either": [1]}, "either", "whole number"),
        ({"name": "t", "known": 1}, "known", "true or false"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_said_with_its_place(form: object, where: str, why: str) -> None:
    with pytest.raises(MisfitError) as caught:
        typed(Tree, form)
    assert str(caught.value).startswith(f"{where}: ")
    assert why in str(caught.value)


def test_unknown_keys_are_left_out_or_refused_with_those_that_are_known() -> None:
    form = {"name": "t", "leaves": [{"size": 1, "sice": 2}]}
    assert typed(Tree, form).leaves == (Leaf(1),)
    with pytest.raises(MisfitError) as caught:
        typed(Tree, form, strict=True)
    assert caught.value.place == ("leaves", 0, "sice")
    assert caught.value.known == ("size", "share")
