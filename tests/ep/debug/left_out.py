"""Whether a repair could do with less: asked by building it without each of its parts."""

from __future__ import annotations

from pathlib import Path

from modelwright.pipeline import Recipe
from modelwright.repairs import FixOptions, FixResult
from modelwright.repairs._actions import combined
from modelwright.repairs._candidates import CHOOSE, Candidates
from modelwright.store import Store
from modelwright.vocabulary import silent


def nothing_can_be_left_out(result: FixResult, model: Path, recipe: Recipe, options: FixOptions, store: Store) -> None:
    if not result.raised:
        return
    assert result.minimal
    with Candidates(model, recipe, options, store, silent) as tried:
        tried.make(recipe.quantize)
        for part in result.raised:
            rest = [one for one in result.raised if one is not part]
            less = tried.make(combined(rest, recipe.quantize, tried.view))
            assert not tried.met_on(less, CHOOSE, surely=result.surely), f"{part} is not needed"
