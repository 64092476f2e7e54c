"""What a comparison of a model with its quantized form found."""

from __future__ import annotations

from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright.models import FileDigest
from modelwright.vocabulary import Result

DebugStatus = Literal["ok", "partial", "no_match", "failed", "interrupted", "crashed"]
MatchKind = Literal["name", "producer", "convert", "absorbed", "position"]
Mode = Literal["static", "fp16", "dynamic", "weight-only", "same-model", "float"]
DEFAULT_SAMPLES = 8
DEFAULT_BUDGET = 1 << 30
INPUT = "(input)"
_MUCH_DB = 6.0


def operator_words(op_type: str, node: str) -> str:
    """`Conv /layer1/conv`; a node without a name is `Conv(y)` already, and an input is an input."""
    return node if node.startswith((f"{op_type}(", "(")) else f"{op_type} {node}"


@dataclass(frozen=True)
class Activation:
    """One tensor of the float model beside its counterpart. Decibels are null with a reason; `identical` is good news.

    - local: the float value through this tensor's own Q/DQ pair, and nothing else
    - cumulative: the float run against the quantized run
    - introduced: what this tensor's own node and pair add, given the inputs they really got; `origin_share` is its
      part of everything that was added anywhere
    """

    tensor_name: str
    order: int
    node: str
    op_type: str
    module: str
    nodes: tuple[str, ...]
    quant_tensor: str
    match_kind: MatchKind
    absorbed: str | None
    dtype: str | None
    local_sqnr_db: float | None
    local_reason: str | None
    cumulative_sqnr_db: float | None
    cumulative_mean_db: float | None
    cumulative_worst_db: float | None
    cumulative_reason: str | None
    introduced_sqnr_db: float | None
    introduced_reason: str | None
    origin_share: float | None
    clip_fraction: float | None
    clip_noise_share: float | None
    cosine: float | None
    max_abs: float | None
    relative_l2: float | None

    @property
    def operator(self) -> str:
        """The type and the name of the node that stands for it."""
        return operator_words(self.op_type, self.node)


@dataclass(frozen=True)
class WeightScore:
    """A stored tensor and what its quantized form stands for. `weight_name` is the float initializer's."""

    weight_name: str
    quant_name: str
    node: str
    dtype: str
    granularity: str
    elements: int
    weight_sqnr_db: float | None
    weight_reason: str | None
    max_abs: float | None


@dataclass(frozen=True)
class OutputScore:
    """One output. `executed` is the quantized model as onnxruntime really runs it, with integer kernels. `top1` is
    the share of rows with the same best class; null where a row is no choice between classes."""

    output_name: str
    quant_name: str
    match_kind: MatchKind
    cumulative_sqnr_db: float | None
    cumulative_mean_db: float | None
    cumulative_worst_db: float | None
    cumulative_reason: str | None
    executed_sqnr_db: float | None
    executed_reason: str | None
    cosine: float | None
    max_abs: float | None
    top1: float | None
    samples: int
    failed: int

    @property
    def lost_in_kernels(self) -> bool:
        """Much worse as executed than as written."""
        written, executed = self.cumulative_sqnr_db, self.executed_sqnr_db
        return executed is not None and (99.0 if written is None else written) - executed > _MUCH_DB


@dataclass(frozen=True)
class Unmatched:
    name: str
    reason: str


@dataclass(frozen=True)
class DecibelSpread:
    """Population statistics over the rows that have a number."""

    count: int
    mean: float | None
    std: float | None
    min: float | None
    max: float | None


@dataclass(frozen=True)
class DebugSummary:
    local: DecibelSpread
    cumulative: DecibelSpread
    weight: DecibelSpread


@dataclass(frozen=True)
class NoiseShare:
    """A group of nodes and its part of the noise that was added anywhere."""

    name: str
    share: float
    tensors: int


@dataclass(frozen=True)
class DataFacts:
    """What the models were fed. `scale` is what pixels were multiplied with."""

    kind: str
    random: bool
    samples: int
    scale: float | None = None


@dataclass(frozen=True)
class Runtimes:
    """What computed each side. Nothing here is a timing; `simulated` says that a simulator computed.

    `saturates`: this machine's CPU kernels lost something when they were asked to add the largest 8-bit products.
    """

    reference: str
    candidate: str
    candidate_nodes: tuple[tuple[str, int], ...]
    simulated: bool
    onnxruntime: str
    ep_version: str | None
    cpu: str | None
    saturates: bool


@dataclass(frozen=True)
class DebugReport(Result):
    """The whole comparison; rows are in graph order.

    `planned_bytes` is what a large model was said to hold at most, before anything was compared: all processes
    together, without what the system can take back. Right within 20 %; None for models that are simply loaded.
    `missing_outputs` are those of the float model that the other one does not have.
    """

    kind: ClassVar[str] = "debug"

    status: DebugStatus
    reason: str | None
    mode: Mode
    float_model: str
    quant_model: str
    target: str
    samples: int
    data: DataFacts
    runtimes: Runtimes | None
    model_outputs: tuple[OutputScore, ...]
    activations: tuple[Activation, ...]
    weights: tuple[WeightScore, ...]
    biases: tuple[WeightScore, ...]
    summary: DebugSummary
    by_op_type: tuple[NoiseShare, ...]
    by_module: tuple[NoiseShare, ...]
    unmatched_float: tuple[Unmatched, ...]
    unmatched_quant: tuple[Unmatched, ...]
    notes: tuple[str, ...]
    chunks: int
    memory_budget_bytes: int
    peak_rss_bytes: int | None = None
    planned_bytes: int | None = None
    float_files: tuple[FileDigest, ...] = ()
    quant_files: tuple[FileDigest, ...] = ()
    missing_outputs: tuple[str, ...] = ()

    @property
    def worst_output_db(self) -> float | None:
        """The lowest output SQNR, as executed; None when nothing differs or nothing is known."""
        numbers = [item.executed_sqnr_db for item in self.model_outputs if item.executed_sqnr_db is not None]
        return min(numbers) if numbers else None

    @property
    def saturated(self) -> bool:
        """Is an output much worse as executed than as written, by kernels that saturate?"""
        return (
            self.runtimes is not None
            and self.runtimes.saturates
            and any(item.lost_in_kernels for item in self.model_outputs)
        )

    @property
    def originators(self) -> tuple[Activation, ...]:
        """Rows that add noise, the largest share first."""
        adding = [row for row in self.activations if row.origin_share]
        return tuple(sorted(adding, key=lambda row: (-(row.origin_share or 0.0), row.order)))


class DebugInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` holds what was compared until then."""

    partial: DebugReport
