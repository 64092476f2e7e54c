"""A model as it was written, opened to ask it for a few answers."""

from __future__ import annotations

from pathlib import Path

from modelwright.graph import facts, shared, summary, with_weights_in_place
from modelwright.targets._binding import SessionSpec
from modelwright.targets._session import BoundSession, ModelBytes, open_session
from modelwright.targets._target import parse_target

_IN_BLOCKS = "MatMulNBits"
_INTEGER = ("QLinear", "QGemm", "QAttention", "MatMulInteger", "ConvInteger", "DynamicQuantize")
_EXACT = {"session.x64quantprecision": "1", "session.intra_op.allow_spinning": "0"}


def open_exact(path: str | Path) -> BoundSession:
    """On the CPU, optimized as for a user, with integer kernels that are slower and never saturate."""
    return open_session(str(path), parse_target("cpu"), SessionSpec(config=_EXACT))


def open_as_meant(path: str | Path) -> BoundSession:
    """On the CPU, what a quantized graph says: pairs computed in float; integer operators, which have no float form,
    without saturating."""
    integers = any(op.op_type.startswith(_INTEGER) for op in facts(path).ops)
    return open_exact(path) if integers else open_as_written(path)


def open_as_written(path: str | Path) -> BoundSession:
    """On the CPU, without graph optimization. For a run or two it is cheaper not to copy or repack the weights, but
    for those in blocks: without, every run unpacks all of them to floats."""
    graph = shared(path)
    blocks = any(op.op_type == _IN_BLOCKS for op in summary(graph).ops)
    config = {
        "session.model_external_initializers_file_folder_path": str(graph.folder),
        "session.disable_prepacking": "0" if blocks else "1",
        "session.intra_op.allow_spinning": "0",
    }
    model = ModelBytes(with_weights_in_place(graph).SerializeToString())
    return open_session(model, parse_target("cpu"), SessionSpec(graph_optimization="disabled", config=config))
