"""What the stage is told, and what it tells."""

from __future__ import annotations

from typing import Literal

from modelwright._dataclass import dataclass
from modelwright._extensions import EPS, extension_packages
from modelwright.stages.stage import Stage
from modelwright.worker import RemoteTask

Method = Literal["minmax", "mse", "percentile"]
Pairs = Literal["all", "needed"]
Effort = Literal["fast", "normal", "best"]
QuantizedType = Literal["int8", "uint8", "int16", "uint16"]
ALL_OPERATORS = "all"
# Fewer seldom show how large values get.
_ENOUGH_SAMPLES = 16


@dataclass(frozen=True)
class TensorOverride:
    """Another integer type for one tensor, weight or activation, by its name in the input model."""

    tensor: str
    dtype: QuantizedType


@dataclass(frozen=True)
class QuantizeParams:
    """One quantization.

    - `precision`: a word of the table in `_precision`, or a chain `w8a16+fp16`.
    - `method`, `percentile`, `samples`: how activation ranges are found (static precisions). `mse` looks for the least
      squared error and `percentile` leaves a share of the values out; both read the samples twice.
    - `op_types`: empty is the safe set. With 8-bit activations these are the operators that carry the work
      (Conv, ConvTranspose, Gemm, MatMul) and those that only move values: quantizing every operator to 8 bits
      ruins transformers and many small models. With 16-bit activations it is every operator, which is what an
      NPU needs. `("all",)` asks for every operator.
    - `per_channel`: a scale per output channel for the weights of Conv, ConvTranspose, Gemm and MatMul.
    - `reduce_range`: weights whose products cannot saturate, because two products of 8 bits do not fit the 16 in which
      x86 CPUs without VNNI add them: 7 bits, and with `pairs = "needed"` as many as two neighbours can have together.
      Unset is so wherever such products are made, so that the result is right on any CPU.
    - `symmetric_weights` is ignored where a scale per channel or int4 blocks need symmetry anyway.
    - `pairs`: `needed` leaves out every Q/DQ pair that no integer kernel of onnxruntime's CPU provider needs, so that
      float operators read floats; `all` is what an NPU needs. Unset is `all`; a recipe for the CPU says `needed`.
    - `float_where_faster`: a product stays float where its integer kernel on a CPU, with the ways there and back, takes
      longer by a model of their costs; with `pairs = "needed"` only. A recipe for the CPU says so.
    - `scope`: an EP whose compiler was asked which operators it computes on integers: with 8-bit activations those
      between the products carry pairs of 16 bits too, so that nothing there is float but what it takes in float only.
      A recipe for an NPU of such an EP says so.
    - `wide_where_noisy`: with a `scope`, real samples and 8-bit activations, the few products that make most of the
      noise read and write 16 bits, where the noise is too much. A recipe for an NPU with a scope says so.
    - `bias_correction`: what rounding the weights adds to the mean of each output channel is taken off its bias. Needs
      real samples; made-up ones have no mean to trust.
    - `effort`: how long it may take to keep the accuracy (static precisions, int4). `fast` calibrates with the first 8
      of the samples and corrects no biases; `best` also tries what takes long (`_best`) and keeps what helps.
    - `keep_io_types` and `op_types_float`: inputs and outputs, and operators, that fp16 leaves alone.
    """

    precision: str = "w8a8"
    method: Method = "minmax"
    percentile: float = 99.999
    samples: int = 32
    per_channel: bool = True
    symmetric_activations: bool = False
    symmetric_weights: bool = True
    reduce_range: bool | None = None
    op_types: tuple[str, ...] = ()
    nodes_to_exclude: tuple[str, ...] = ()
    overrides: tuple[TensorOverride, ...] = ()
    block_size: int = 32
    keep_io_types: bool = True
    op_types_float: tuple[str, ...] = ()
    pairs: Pairs | None = None
    float_where_faster: bool | None = None
    scope: str | None = None
    wide_where_noisy: bool | None = None
    bias_correction: bool = True
    effort: Effort = "normal"


@dataclass(frozen=True)
class ReducedOps:
    """Nodes of one operator: how many compute with reduced precision and how many do not."""

    op_type: str
    reduced: int
    untouched: int


@dataclass(frozen=True)
class Calibration:
    """Where the ranges came from. `random` is true when the samples were made up."""

    kind: str
    random: bool
    samples: int
    digest: str
    method: str
    tensors: int

    @property
    def few(self) -> bool:
        """Too few real samples to rely on their ranges."""
        return not self.random and self.samples < _ENOUGH_SAMPLES


@dataclass(frozen=True)
class Gain:
    """A technique that was tried at so many places, and by how much the noise of the outputs fell with it, on so many
    samples that it was not fitted to: on average, and two standard errors below and above. Those that bring nothing
    are not kept."""

    technique: str
    places: int
    decibels: float
    kept: bool
    low: float
    high: float
    samples: int


@dataclass(frozen=True)
class Widened:
    """Tensors that noisy products write, in 16 bits with what these read; of how many products; by how much the
    noise of the outputs fell with that, on samples that judge."""

    tensors: tuple[str, ...]
    of: int
    decibels: float

    @property
    def words(self) -> str:
        count = f"{len(self.tensors)} of {self.of} products"
        less = f"{self.decibels:.1f} dB less of it in the outputs of up to 4 samples"
        return f"16 bits for {count}, which made most of the noise: {less}"


@dataclass(frozen=True)
class Clipped:
    """Weights that float16 cannot hold: moved to its largest, or to its smallest non-zero value."""

    to_largest: int = 0
    to_smallest: int = 0


@dataclass(frozen=True)
class QuantizeOutcome:
    """Facts about the produced file. `measured` and the bits were read from it, not from the request.

    `pairs_left_out`: Q/DQ pairs that no kernel of the target needs. `kept_float`: products that are faster in float.
    `biases_corrected`: products whose bias was moved. `between`: tensors between products that carry 16 bits.
    `widened`: products that compute in 16 bits because most of the noise came from them; null where none does.
    `gains`: what the effort `best` tried, and the decibels that each brought.
    `weight_range_bits`: what the 8-bit weights really use, 7 where the range was reduced; null without such weights.
    """

    precision: str
    steps: tuple[str, ...]
    measured: str | None
    measured_reason: str | None
    weight_bits: int | None
    weight_range_bits: int | None
    activation_bits: int | None
    quantized_share: float | None
    granularity: tuple[str, ...]
    ops: tuple[ReducedOps, ...]
    excluded: tuple[str, ...]
    calibration: Calibration | None
    pairs_left_out: int
    biases_corrected: int
    kept_float: int
    between: int
    clipped: Clipped
    opset: int
    warnings: tuple[str, ...]
    input_bytes: int
    output_bytes: int
    seconds: float
    gains: tuple[Gain, ...] = ()
    widened: Widened | None = None


QUANTIZE = Stage(
    name="quantize",
    version="19",
    params=QuantizeParams,
    outcome=QuantizeOutcome,
    task=RemoteTask("modelwright.stages.quantize._run:run_quantize"),
    packages=("onnx", "onnxruntime", "numpy", *extension_packages(EPS)),
    imports=("onnxruntime", "onnx"),
    patience_s=900.0,
    later=("effort",),
)
