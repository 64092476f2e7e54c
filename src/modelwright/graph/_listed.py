"""Weights that are listed among the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_FIRST_IR_WITHOUT_INPUTS = 4


def freeze_weights(model: onnx.ModelProto) -> int:
    """Weights that are inputs too are inputs no longer; how many. Nothing is folded into, fused with or converted with
    what a caller may replace, and NPUs do not take it.

    Only where all of them are listed, as exporters once did: a few such inputs are meant to be given. Before IR 4 every
    weight had to be an input, and what quantization adds is none.
    """
    names = {tensor.name for tensor in model.graph.initializer}
    if not names or not names <= {value.name for value in model.graph.input}:
        return 0
    kept = [value for value in model.graph.input if value.name not in names]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.ir_version = max(model.ir_version, _FIRST_IR_WITHOUT_INPUTS)
    return len(names)
