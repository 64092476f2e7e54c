"""The stage: ask the target's own partitioner, and write its answer down."""

from __future__ import annotations

from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._json import dumps
from modelwright.stages.stage import Stage
from modelwright.targets import Placement, catalogue, library_digest, parse_target, placement
from modelwright.worker import task

ANSWER = "placement.json"
PACKAGES = ("onnxruntime", *(name for name in catalogue().packages() if name != "onnxruntime"))


@dataclass(frozen=True)
class PlaceParams:
    """`target` in its text form."""

    target: str


@task
def run_place(model: str, workdir: str, params: PlaceParams) -> Placement:
    """The placement, also as `placement.json` in `workdir`."""
    found = placement(model, parse_target(params.target))
    Path(workdir, ANSWER).write_text(dumps(found), encoding="utf-8")
    return found


def ep_library(params: PlaceParams) -> dict[str, str]:
    """A library that the user named has no version that would tell two of them apart."""
    found = library_digest(parse_target(params.target).provider)
    return {} if found is None else {"ep_library": found}


def _placed(found: Placement) -> bool:
    """An EP that broke or was not there may answer the next time: a device comes and goes without a version."""
    return found.status == "placed"


PLACE = Stage(
    name="place",
    version="3",
    params=PlaceParams,
    outcome=Placement,
    task=run_place,
    packages=PACKAGES,
    patience_s=900.0,
    # EPs are registered with the process, and what one leaves there the next one sees.
    alone=True,
    host=ep_library,
    keeps=_placed,
)
