"""Passes that write operators of their own are only good where the target's EP claims those operators."""

from __future__ import annotations

from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._json import dumps
from modelwright.errors import InputError
from modelwright.stages.place._place import ANSWER, PACKAGES, PlaceParams, ep_library
from modelwright.stages.stage import Stage
from modelwright.targets import parse_target, placement
from modelwright.worker import task


@dataclass(frozen=True)
class ClaimParams(PlaceParams):
    """`suspects` are operators outside standard ONNX, as `domain.operator`, each with the pass that writes it."""

    suspects: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ClaimOutcome:
    """The EP claims all of them. `asked` is false where no such EP can be asked: the answer is unknown, not no."""

    asked: bool


@task
def run_claim(model: str, workdir: str, params: ClaimParams) -> ClaimOutcome:
    """Ask the real EP about the optimized graph; an operator that a pass made and nobody claims stops the build."""
    target, suspects = parse_target(params.target), dict(params.suspects)
    found = placement(model, target)
    left = [f"{node.domain}.{node.op_type}" for node in found.unsupported]
    if found.status == "placed" and (unclaimed := sorted(set(left) & suspects.keys())):
        operator, name = unclaimed[0], suspects[unclaimed[0]]
        raise InputError(
            f"{name} does not suit {target}",
            cause=f"{target.provider.name} claims none of the {left.count(operator)} {operator.rpartition('.')[2]} "
            "nodes it made",
            fix=f"leave {name} out of `passes`, or insist with `force`",
        )
    Path(workdir, ANSWER).write_text(dumps(found), encoding="utf-8")
    return ClaimOutcome(found.status == "placed")


def _asked(outcome: ClaimOutcome) -> bool:
    return outcome.asked


CLAIM = Stage(
    name="claim",
    version="2",
    params=ClaimParams,
    outcome=ClaimOutcome,
    task=run_claim,
    packages=PACKAGES,
    patience_s=900.0,
    alone=True,
    host=ep_library,
    keeps=_asked,
)
