"""Whether an export can begin, asked before anything is loaded: a small model runs with random weights, a large one
with shapes instead of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import WrightError
from modelwright.models import HfSource
from modelwright.stages.export._family import said_family
from modelwright.stages.export._load import Loaded, WeightFit, bare_model, weight_fit
from modelwright.stages.export._part import Part
from modelwright.stages.export._parts import ExportPattern, pattern
from modelwright.stages.export._run import split_parts
from modelwright.stages.export._values import ExportParams, LeftOut
from modelwright.vocabulary import InputSpec, Sized
from modelwright.worker import progress, task

if TYPE_CHECKING:
    import torch
else:
    torch = lazy("torch")

# Parameters that random weights are made for within seconds and two gigabytes.
_SMALL = 500_000_000


@dataclass(frozen=True)
class OutlinedPart:
    name: str
    inputs: InputSpec
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True)
class ExportOutline:
    """What an export would make of a model. `parts` is None where it would fail (`trouble` says why), or where shapes
    alone cannot tell. `fit` is None without a checkpoint."""

    model_class: str
    class_renamed_from: str | None
    pattern: ExportPattern
    parameters: int
    parts: tuple[OutlinedPart, ...] | None
    trouble: str | None
    sizes: tuple[Sized, ...]
    fit: WeightFit | None


@task
def rehearse_export(source: HfSource, params: ExportParams) -> bool:
    """Raises what an export would say about the class, the task and the inputs, without the checkpoint.

    False where that cannot be told: a large model may look at values, and shapes have none.
    """
    progress(f"looking at {source.name}")
    with said_family(params.family):
        try:
            outline = _by_shape(source, params)
        except RuntimeError:
            return False
        return _parts(source, params, outline)[0] is not None


@task
def count_parameters(source: HfSource, params: ExportParams) -> int:
    """Those of the model's class, tied ones once; none is made."""
    with said_family(params.family):
        return _parameters(_by_shape(source, params))


@task
def outline_export(source: HfSource, params: ExportParams) -> ExportOutline:
    """Raises where there is no class for the model; everything else is an answer."""
    progress(f"looking at {source.name}")
    with said_family(params.family):
        return _outlined(source, params)


def _outlined(source: HfSource, params: ExportParams) -> ExportOutline:
    try:
        outline = _by_shape(source, params)
    except RuntimeError:
        outline = bare_model(source, params)
    parts, trouble = None, None
    try:
        parts, outline = _parts(source, params, outline)
    except WrightError as error:
        trouble = f"{error.problem}: {error.cause}" if error.cause else error.problem
    return ExportOutline(
        model_class=type(outline.model).__name__,
        class_renamed_from=outline.renamed_from,
        pattern=pattern(outline, params.task),
        parameters=_parameters(outline),
        parts=None if parts is None else tuple(OutlinedPart(one.name, one.inputs, one.left_out) for one in parts),
        trouble=trouble,
        sizes=tuple(outline.sizes.values()),
        fit=None if source.random_weights else weight_fit(source, params),
    )


def _by_shape(source: HfSource, params: ExportParams) -> Loaded:
    with torch.device("meta"):
        return bare_model(source, params)


def _parameters(loaded: Loaded) -> int:
    return sum(parameter.numel() for parameter in loaded.model.parameters())


def _parts(source: HfSource, params: ExportParams, outline: Loaded) -> tuple[tuple[Part, ...] | None, Loaded]:
    """The parts and the model they were found on: with numbers where it is small, else with shapes; None where shapes
    do not tell."""
    if _parameters(outline) <= _SMALL:
        outline = bare_model(source, params)
        return split_parts(outline, params)[0], outline
    try:
        with torch.device("meta"):
            return split_parts(outline, params)[0], outline
    except WrightError as error:
        if isinstance(error.__cause__, RuntimeError) or "meta" in str(error.__cause__):
            return None, outline
        raise
