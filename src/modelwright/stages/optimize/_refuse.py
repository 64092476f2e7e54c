"""Models and combinations that this stage must not touch."""

from __future__ import annotations

from collections.abc import Sequence

from modelwright.errors import InputError
from modelwright.stages.optimize._inventory import Snapshot
from modelwright.stages.optimize._table import find_pass

_EP_CONTEXT = "com.microsoft.EPContext"
_QDQ = ("QuantizeLinear", "com.microsoft.QuantizeLinear")


def refuse(found: Snapshot, names: Sequence[str]) -> None:
    """Compiled models, and QDQ models together with passes that take the pairs apart."""
    ops = dict(found.ops)
    if any(op.rpartition(".")[2] == "EPContext" for op in ops):
        raise InputError(
            "a compiled model cannot be optimized",
            cause=f"it holds {ops.get(_EP_CONTEXT, 'some')} EPContext nodes: blobs that only their EP can read",
            fix="Optimize the model it was compiled from, then compile again.",
        )
    breaking = [name for name in names if find_pass(name).breaks_qdq]
    if breaking and any(op in ops for op in _QDQ):
        raise InputError(
            f"a quantized model is not given to {', '.join(breaking)}",
            cause="EPs read the QuantizeLinear/DequantizeLinear pairs, and these passes move or remove them",
            fix=f"Leave out {', '.join(breaking)}, or optimize the model before it is quantized.",
        )
