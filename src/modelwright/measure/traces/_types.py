"""What an op trace says. One shape in every state: what is not known is None, never 0."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.targets import SessionFacts
from modelwright.vocabulary import HasPage

TraceLevel = Literal["basic", "detail"]
LEVELS: tuple[TraceLevel, ...] = ("basic", "detail")
Origin = Literal["model", "fused", "inserted", "unresolved"]
Vocabulary = str
"""Whose word an operator type is: `onnx`, `onnxruntime`, or the key of an EP."""
OperatorKind = Literal["kernel", "partition", "io"]
Fidelity = Literal["kernel", "partition"]


class TraceStatus(Enum):
    """How a trace ended. `partial`: there is data, but less than the level promises; `reason_code` says what."""

    NOT_RUN = "not_run"
    OK = "ok"
    PARTIAL = "partial"
    NO_DATA = "no_data"
    PARSE_FAILED = "parse_failed"
    RUN_FAILED = "run_failed"


class TraceReason(StrEnum):
    """Why a trace is not `ok`, for machines; `error` says it in words. EPs have further reasons of their own."""

    RUN_COUNT = "run_count"
    NO_NODE_EVENTS = "no_node_events"
    PROFILE_MISSING = "profile_missing"
    PROFILE_DAMAGED = "profile_damaged"
    TRUNCATED = "truncated"
    EP_FAILED = "ep_failed"
    CHILD_DIED = "child_died"
    BLOCK_COUNT = "block_count"


@dataclass(frozen=True)
class TraceRequested:
    target: str
    ep: str
    device: str
    level: TraceLevel


@dataclass(frozen=True)
class TraceSource:
    """Where the numbers come from. `timing_valid` is False on a simulator: its times mean nothing."""

    backends: tuple[str, ...]
    fidelity: Fidelity | None
    timing_valid: bool | None


@dataclass(frozen=True)
class TraceWindow:
    """`runs` is what was asked for; `measured` is how many samples each operator has."""

    runs: int
    warmup: int
    measured: int | None


@dataclass(frozen=True)
class TraceTotals:
    """Medians over the measured runs. `kernel_us` adds up those of all operators, which need not come from one run, so
    that it may differ from what any run took; overhead is the time of a run outside all of them."""

    model_run_us: float | None
    kernel_us: float | None
    overhead_us: float | None
    model_run_samples_us: tuple[float, ...]


@dataclass(frozen=True)
class Spread:
    """Of the runs in which it was called."""

    mean: float
    p50: float
    p90: float
    min: float
    max: float


@dataclass(frozen=True)
class ShareSpread:
    """Where nine runs in ten have a share, in per cent, and the ranks it may have: who overlaps is not told apart."""

    low: float
    high: float
    first_rank: int
    last_rank: int


@dataclass(frozen=True)
class TraceLoad:
    """What else the machine did while the runs were traced; None comes with the reason."""

    foreign_cpus: float | None
    usable_cpus: float
    reason: str | None


@dataclass(frozen=True)
class OperatorBytes:
    """Sizes of one call's tensors as onnxruntime counts them."""

    inputs: int | None
    parameters: int | None
    outputs: int | None


@dataclass(frozen=True)
class Operator:
    """One operator of the graph that really ran.

    `node` is the runtime's name, `onnx_nodes` the nodes of the given model whose work it does, the one with
    most of it first. `self_us` leaves out
    what ran inside it (bodies of Loop and If, operators of a compiled partition). A sample is None for a run that
    did not call it. `percent` is its median's share of all medians, so one disturbed run does not make a finding;
    None where every median is 0 µs. `spread` is that share from run to run; None for fewer than five runs. `inputs`,
    `outputs` (such as `float32[1,3,8,8]`) and `bytes` come with level detail, and never for operators inside a
    partition.
    """

    id: str
    node: str
    onnx_nodes: tuple[str, ...]
    origin: Origin
    op_type: str
    vocabulary: Vocabulary
    kind: OperatorKind
    provider: str
    partition: str | None
    parent: str | None
    calls_per_run: float
    self_us: Spread
    percent: float | None
    spread: ShareSpread | None
    cycles: float | None
    inputs: tuple[str, ...] | None
    outputs: tuple[str, ...] | None
    bytes: OperatorBytes | None
    samples_us: tuple[float | None, ...]


@dataclass(frozen=True)
class TraceShare:
    """Operators of one type, or of one provider, together: the sum of their medians."""

    name: str
    operators: int
    self_us: float
    percent: float | None
    spread: ShareSpread | None


@dataclass(frozen=True)
class TracePartition:
    """A piece one EP compiled. `wall_us` is seen from onnxruntime, `accelerator_us` is the EP's own count; medians."""

    id: str
    provider: str
    operators: int
    wall_us: float
    accelerator_us: float | None


@dataclass(frozen=True)
class TimelineSpan:
    """One call in the run that was nearest the usual time. An operator inside a partition is placed in order:
    its length is measured, its start is not."""

    operator: str
    start_us: float
    duration_us: float
    depth: int


@dataclass(frozen=True)
class OpTrace(HasPage):
    """Where the time of a model goes, operator by operator. Its runs are slower than untraced ones."""

    schema_version: int
    model: str
    status: TraceStatus
    reason_code: str | None
    error: str | None
    requested: TraceRequested
    bound: SessionFacts | None
    load: TraceLoad | None
    source: TraceSource
    window: TraceWindow
    totals: TraceTotals
    operators: tuple[Operator, ...]
    by_op_type: tuple[TraceShare, ...]
    by_provider: tuple[TraceShare, ...]
    partitions: tuple[TracePartition, ...]
    timeline: tuple[TimelineSpan, ...]

    @property
    def has_data(self) -> bool:
        return self.status in (TraceStatus.OK, TraceStatus.PARTIAL)


SCHEMA_VERSION = 1


def empty_trace(model: str, requested: TraceRequested, runs: int, warmup: int) -> OpTrace:
    """The trace before anything ran: the same keys, no data."""
    return OpTrace(
        schema_version=SCHEMA_VERSION,
        model=model,
        status=TraceStatus.NOT_RUN,
        reason_code=None,
        error=None,
        requested=requested,
        bound=None,
        load=None,
        source=TraceSource((), None, None),
        window=TraceWindow(runs, warmup, None),
        totals=TraceTotals(None, None, None, ()),
        operators=(),
        by_op_type=(),
        by_provider=(),
        partitions=(),
        timeline=(),
    )
