"""Three ways from a PyTorch module to ONNX."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.stages.export._part import Part, Tensors, traceable
from modelwright.stages.export._values import StrategyName

if TYPE_CHECKING:
    import onnx_ir as ir
    import torch
    from transformers.exporters import exporter_onnx
else:
    ir = lazy("onnx_ir")
    torch = lazy("torch")
    exporter_onnx = lazy("transformers.exporters.exporter_onnx")

Strategy = Callable[["Request"], "ir.Model"]
_NOISY = ("transformers", "torch", "torch.onnx", "onnxscript", "onnx_ir")


@dataclass(frozen=True, eq=False)
class Request:
    """What every strategy is given. `scratch` is an empty folder for files on the way."""

    part: Part
    sample: Tensors
    outputs: tuple[str, ...]
    opset: int
    scratch: Path


def write(strategy: StrategyName, request: Request) -> ir.Model:
    """The part as an ONNX model in memory. Whatever the exporter raises comes through."""
    with _quiet(), torch.no_grad():
        return _STRATEGIES[strategy](request)


def _transformers(request: Request) -> ir.Model:
    config = exporter_onnx.OnnxConfig(opset_version=request.opset, dynamic_shapes=_dynamic_shapes(request.part))
    module = traceable(request.part, request.outputs, named=True)
    exported = exporter_onnx.OnnxExporter().export(module, dict(request.sample), config)
    # Until transformers 5.22 this was torch's ONNXProgram; since 5.23 it wraps the graph itself.
    model: ir.Model = exported.program if hasattr(exported, "program") else exported.model
    return model


def _dynamo(request: Request) -> ir.Model:
    program = torch.onnx.export(
        traceable(request.part, request.outputs, named=False),
        (),
        kwargs=dict(request.sample),
        input_names=list(request.sample),
        output_names=list(request.outputs),
        opset_version=request.opset,
        dynamic_shapes=_dynamic_shapes(request.part),
        dynamo=True,
        verbose=False,
    )
    model: ir.Model = program.model
    return model


def _torchscript(request: Request) -> ir.Model:
    path = request.scratch / "traced.onnx"
    torch.onnx.export(
        traceable(request.part, request.outputs, named=False),
        tuple(request.sample.values()),
        str(path),
        input_names=list(request.sample),
        output_names=list(request.outputs),
        opset_version=request.opset,
        dynamic_axes=_dynamic_axes(request.part),
        dynamo=False,
    )
    return ir.load(path)


_STRATEGIES: Mapping[StrategyName, Strategy] = {
    "transformers": _transformers,
    "dynamo": _dynamo,
    "torchscript": _torchscript,
}


def _dynamic_shapes(part: Part) -> dict[str, Any] | None:
    """Per input, the free axes; an axis with the same name is the same size everywhere."""
    if not any(isinstance(dim, str) for spec in part.inputs for dim in spec.shape):
        return None
    names = {dim for spec in part.inputs for dim in spec.shape if isinstance(dim, str)}
    dims = {name: torch.export.Dim(name, min=1) for name in sorted(names)}
    return {
        spec.name: {axis: dims[dim] for axis, dim in enumerate(spec.shape) if isinstance(dim, str)}
        for spec in part.inputs
    }


def _dynamic_axes(part: Part) -> dict[str, dict[int, str]]:
    axes = {
        spec.name: {axis: dim for axis, dim in enumerate(spec.shape) if isinstance(dim, str)} for spec in part.inputs
    }
    return {name: chosen for name, chosen in axes.items() if chosen}


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters print, warn and log by the page; what matters is checked on the result."""
    loggers = [logging.getLogger(name) for name in _NOISY]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
