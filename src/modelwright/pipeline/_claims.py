"""Passes that write operators of their own are only good where the target's EP claims those operators."""

from __future__ import annotations

from pathlib import Path

from modelwright.errors import InputError
from modelwright.pipeline._analyze import place
from modelwright.pipeline._recipe import Recipe
from modelwright.plans import ModelInput, model_paths
from modelwright.stages.optimize import find_pass
from modelwright.store import Store
from modelwright.targets import parse_target


def refuse_unclaimed(store: Store, model: ModelInput, recipe: Recipe) -> None:
    """Ask the real EP about the optimized graph; an operator that a pass made and nobody claims stops the build.

    Where the EP cannot be asked on this machine nothing is refused: the answer is unknown, not no.
    """
    target = parse_target(recipe.target)
    suspects = _suspects(recipe)
    if not suspects or target.ep == "cpu":
        return
    with model_paths(store, {"model": model}) as models:
        found = place(Path(models["model"]), target)
    if found.status != "placed":
        return
    left = {f"{node.domain}.{node.op_type}" for node in found.unsupported} & suspects.keys()
    if left:
        operator = sorted(left)[0]
        count = sum(f"{node.domain}.{node.op_type}" == operator for node in found.unsupported)
        raise InputError(
            f"{suspects[operator]} does not suit {target}",
            cause=f"{target.provider.name} claims none of the {count} {operator.rpartition('.')[2]} nodes it made",
            fix=f"leave {suspects[operator]} out of `passes`, or insist with `force`",
        )


def _suspects(recipe: Recipe) -> dict[str, str]:
    """Operators outside standard ONNX, with the pass that writes them."""
    names = recipe.optimize.passes if recipe.optimize is not None else ()
    found = [find_pass(name) for name in names]
    return {operator: item.name for item in found if not item.portable for operator in item.produces}
