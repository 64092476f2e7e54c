"""Whether an export can begin, asked before anything is loaded: a small model runs with random weights, a large one
with shapes instead of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import WrightError
from modelwright.models import HfSource
from modelwright.stages.export._load import Loaded, bare_model
from modelwright.stages.export._run import split_parts
from modelwright.stages.export._values import ExportParams
from modelwright.worker import progress, task

if TYPE_CHECKING:
    import torch
else:
    torch = lazy("torch")

# Parameters that random weights are made for within seconds and two gigabytes.
_SMALL = 500_000_000


@task
def rehearse_export(source: HfSource, params: ExportParams) -> bool:
    """Raises what an export would say about the class, the task and the inputs, without the checkpoint.

    False where that cannot be told: a large model may look at values, and shapes have none.
    """
    progress(f"looking at {source.name}")
    try:
        with torch.device("meta"):
            outline = bare_model(source, params)
    except RuntimeError:
        return False
    if sum(parameter.numel() for parameter in outline.model.parameters()) <= _SMALL:
        split_parts(bare_model(source, params), params)
        return True
    return _by_shapes(outline, params)


def _by_shapes(outline: Loaded, params: ExportParams) -> bool:
    try:
        with torch.device("meta"):
            split_parts(outline, params)
    except WrightError as error:
        if isinstance(error.__cause__, RuntimeError) or "meta" in str(error.__cause__):
            return False
        raise
    return True
