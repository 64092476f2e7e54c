"""The onnxruntime session optimizer with exactly the chosen transformers switched on."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.optimize._table import Pass, find_pass, passes
from modelwright.targets import captured_output, initialized_apart, new_options, one_line

if TYPE_CHECKING:
    import onnx_ir as ir
    import onnxruntime as ort
    import onnxruntime.capi.onnxruntime_pybind11_state as ort_errors
else:
    ort = lazy("onnxruntime")
    ort_errors = lazy("onnxruntime.capi.onnxruntime_pybind11_state")

DATA_SUFFIX = ".data"
# Initializers that onnxruntime adds without looking whether the name is taken: the next session then fails.
CARELESS = ("gemm_input_shape", "gemm_output_shape")
_LEVELS = {1: "ORT_ENABLE_BASIC", 2: "ORT_ENABLE_EXTENDED", 3: "ORT_ENABLE_ALL"}
_SMALLEST_EXTERNAL = "1024"
_INFO = 1
# Transformers that are no passes of ours: other EPs only, training only, or superseded by a parameter of the stage.
_NEVER = (
    "BiasDropoutFusion",
    "BiasSoftmaxFusion",
    "EmbedLayerNormFusion",
    "TransposeOptimizer_CPUExecutionProvider",
    "MatMulActivationFusion",
    "GroupQueryAttentionFusion",
    "GroupQueryAttentionPreNormFusion",
    "RocmBlasAltImpl",
    "FreeDimensionOverrideTransformer",
    "DQMatMulNBitsFusion",
    "MatMulNBitsMlpFusion",
    "MatMulNBitsQkvFusion",
    "GqaValueLayoutTransformer",
    "ConstantFoldingDQ",
    "Avx2WeightS8ToU8Transformer",
)


@dataclass(frozen=True)
class OrtRequest:
    """Which transformers run. `level` is that of the whole request, also when a probe runs only some of it."""

    names: tuple[str, ...]
    level: int

    @classmethod
    def of(cls, names: Iterable[str]) -> OrtRequest:
        chosen = tuple(names)
        return cls(chosen, max((find_pass(name).level for name in chosen), default=1))

    def only(self, names: Iterable[str]) -> OrtRequest:
        return OrtRequest(tuple(names), self.level)


def optimize_bytes(
    model: bytes, folder: Path, output: Path, request: OrtRequest, *, beside: bool = False, nodes: int = 0
) -> str:
    """Write `output` from a model in memory whose external data is in `folder`; what onnxruntime says about its work.

    Weights that stay as they are are not written: `output` points into `folder` for them. `beside` writes all of them
    into `output` + `.data` instead, for models whose changed weights might not fit into one file. `nodes`: how many it
    has, where that is known.
    """
    options = _options(request, output)
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    if beside:
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_file_name", output.name + DATA_SUFFIX
        )
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_min_size_in_bytes", _SMALLEST_EXTERNAL
        )
    try:
        with captured_output() as said, initialized_apart(nodes):
            ort.InferenceSession(
                model,
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=sorted(disabled(request.names)),
                enable_fallback=0,
            )
    except _failures() as error:
        raise InputError(
            "onnxruntime cannot load the model to optimize it",
            cause=one_line(error),
            fix="Ask `wright diagnose` about the model: it names the cause and tries what cures it.",
        ) from error
    return said.text


def _options(request: OrtRequest, output: Path) -> Any:
    options = new_options()
    options.optimized_model_filepath = str(output)
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, _LEVELS[request.level])
    options.log_severity_level = _INFO
    options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    # The session never runs: nobody needs a plan of its memory, nor kernels the weights in their own layout.
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.disable_prepacking", "1")
    for row in _rows(request.names):
        if row.switch:
            options.add_session_config_entry(row.switch, "1")
    return options


def step_aside(model: ir.Model, names: Iterable[str]) -> None:
    """Rename initializers, so that a later session can use their names."""
    weights = model.graph.initializers
    for name in list(names):
        new = f"opt_{name}"
        while new in weights:
            new = f"opt_{new}"
        weights[name].name = new


def disabled(names: Iterable[str]) -> frozenset[str]:
    """Every transformer onnxruntime has, except those of the named passes."""
    every = {name for row in passes() for name in row.ort} | set(_NEVER)
    return frozenset(every - {name for row in _rows(names) for name in row.ort})


def _rows(names: Iterable[str]) -> tuple[Pass, ...]:
    return tuple(find_pass(name) for name in names)


@functools.cache
def _failures() -> tuple[type[Exception], ...]:
    names = ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NotImplemented", "RuntimeException")
    return tuple(getattr(ort_errors, name) for name in names)
