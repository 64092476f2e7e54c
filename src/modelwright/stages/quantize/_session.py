"""The plain CPU session that finds types and ranges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.targets import new_options, usable_cpus

if TYPE_CHECKING:
    import onnxruntime as ort
else:
    ort = lazy("onnxruntime")

_ERRORS_ONLY = 4


def open_session(path: Path) -> Any:
    """The graph as it is written: no fusion may remove a tensor that is being watched."""
    options = new_options()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _ERRORS_ONLY
    options.use_deterministic_compute = True
    # As the nodes stand: what looks at a tensor is behind what makes it, and the tensor is let go at once.
    options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    # onnxruntime counts the machine's cores, not the ones this process may use.
    options.intra_op_num_threads = max(1, int(usable_cpus()))
    # Packed copies of the weights would double the memory of a session that runs a few dozen times.
    options.add_session_config_entry("session.disable_prepacking", "1")
    # A plan of all memory pays off after many runs, and looks for each block among all others.
    options.enable_mem_pattern = False
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"], enable_fallback=0)
    # onnxruntime raises many unrelated classes here; all of them mean that the model does not load.
    except Exception as error:
        raise InputError(
            "the model does not load in onnxruntime",
            cause=str(error).splitlines()[0] if str(error) else type(error).__name__,
            fix="Check the model with `wright inspect`, or export it again.",
        ) from error
