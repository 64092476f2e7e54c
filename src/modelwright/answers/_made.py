"""Models that are made to be tried: by the stages, through the store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright.data import DataSource
from modelwright.errors import WrightError
from modelwright.graph import MODEL, ModelSummary
from modelwright.models import OnnxSource, recorded_inputs
from modelwright.pipeline import RecipeChoices, resolve_recipe
from modelwright.plans import DiskModel, Node, Plan, run_all
from modelwright.stages.optimize import OPTIMIZE, OptimizeParams
from modelwright.stages.quantize import QUANTIZE, QuantizeParams
from modelwright.store import Store

if TYPE_CHECKING:
    from modelwright.answers._gather import Complaint


def quantize_again(complaint: Complaint, model: ModelSummary | None, store: Store, **changes: Any) -> Path | None:
    """The reference in the precision that the model has, calibrated on the complaint's data; None where that cannot be
    made. Another precision is made as its recipe says: whoever types it gets that."""
    assert complaint.reference is not None
    precision = changes.pop("precision", None if model is None else model.precision.label)
    source = OnnxSource(str(complaint.reference))
    try:
        choices = RecipeChoices(precision=precision, data=complaint.inputs.data)
        params = resolve_recipe(source, complaint.target, choices).quantize
        return None if params is None else quantized(complaint, replace(params, **changes), store)
    except WrightError:
        return None


def quantized(complaint: Complaint, params: QuantizeParams, store: Store) -> Path | None:
    assert complaint.reference is not None
    data = DataSource(complaint.inputs.data, recorded_inputs(complaint.reference))
    marks = {"calibration": data.identity(params.samples)}
    inputs = {"model": DiskModel.at(complaint.reference)}
    return _path(Node(QUANTIZE, params, inputs, "again", given={"calibration": data}, marks=marks), store)


def optimized(model: Path, params: OptimizeParams, store: Store) -> Path | None:
    return _path(Node(OPTIMIZE, params, {"model": DiskModel.at(model)}, model.stem), store)


def _path(node: Node[Any, Any], store: Store) -> Path | None:
    """The file that a stage made; None where it refused."""
    result = run_all(Plan({"made": (node,)}), store)[node.id]
    return None if result.done is None else result.done.artifact.path_of(MODEL)
