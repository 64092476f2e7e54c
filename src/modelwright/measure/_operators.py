"""Why a quantized model is slower or faster than its float one: traces of both, operator type by operator type."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from statistics import median

from modelwright._dataclass import dataclass
from modelwright.errors import ExecutionError, WrightError
from modelwright.graph import Graph, load, summary
from modelwright.measure._operator_types import OperatorChange, OperatorChanges
from modelwright.measure.races._arm import ReadyArm
from modelwright.measure.races._types import ArmResult, CompareResult
from modelwright.measure.timing._subject import Subject
from modelwright.measure.traces._names import ModelNode, ModelNodes, undecorated
from modelwright.measure.traces._trace import TraceOptions, trace_subject
from modelwright.measure.traces._types import Operator, OpTrace
from modelwright.vocabulary import OnProgress, Progress, silent

TRACES = 2
_RUNS, _WARMUP = 20, 3
# Enough to see medians, and an end for models that take minutes.
_LONGEST_S, _FEWEST = 20.0, 8
_CONVERSIONS = ("QuantizeLinear", "DequantizeLinear")
_EDGES = "(inputs and outputs)"
_INTEGER = ("QGemm", "QAttention", "DynamicQuantizeMatMul")
_MS = 1e-3
Runs = list[float]


def explained(result: CompareResult, arms: Sequence[ReadyArm], on_progress: OnProgress | None = None) -> CompareResult:
    """The comparison, with the operators of every arm that is a quantized form of the float base."""
    base = _Side(arms[0])
    if base.subject.model.quantized:
        return result
    told = [result.arms[0]]
    for timed, arm in zip(result.arms[1:], arms[1:], strict=True):
        side = _Side(arm)
        worth = side.subject.model.quantized and timed.times_ms[0] is not None
        told.append(replace(timed, operators=_changes(base, side, timed, on_progress or silent)) if worth else timed)
    return replace(result, arms=tuple(told))


def traced_changes(
    base: ReadyArm, arm: ReadyArm, timed: ArmResult, on_progress: OnProgress | None = None
) -> OperatorChanges:
    """Which operators take longer in an arm than in the base: of the same model in another runtime, for example."""
    return _changes(_Side(base), _Side(arm), timed, on_progress or silent)


def traced_operators(arm: ReadyArm) -> tuple[Operator, ...]:
    """The operators of an arm as they ran, each with the EP that has it."""
    found = _Side(arm).trace(_FEWEST)
    if not found.has_data:
        raise ExecutionError(f"{arm.name} could not be traced", cause=str(found.error), fix="look at its log")
    return found.operators


class _Side:
    """An arm that can be traced."""

    def __init__(self, arm: ReadyArm) -> None:
        graph = load(arm.path)
        self.arm = arm
        self.subject = Subject(arm.path, graph, summary(graph), arm.feeds, arm.files)

    def trace(self, runs: int) -> OpTrace:
        options = TraceOptions(session=self.arm.spec, runtime=self.arm.runtime)
        return trace_subject(self.subject, self.arm.target, "detail", runs=runs, warmup=_WARMUP, options=options)


def _changes(base: _Side, arm: _Side, timed: ArmResult, tell: OnProgress) -> OperatorChanges:
    sides, runs = (base, arm), _runs(timed)
    gathered: tuple[list[OpTrace], list[OpTrace]] = ([], [])
    # Mirrored, so that a machine that gets slower meanwhile does not favour one of them.
    for turn in range(TRACES):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            name = sides[side].arm.name
            tell(Progress(f"tracing {name}, {turn + 1} of {TRACES}"))
            try:
                found = sides[side].trace(runs)
            except WrightError as error:
                return OperatorChanges(0, runs, reason=f"{name} could not be traced: {error}")
            if not found.has_data:
                return OperatorChanges(0, runs, reason=f"{name} could not be traced: {found.error}")
            gathered[side].append(found)
    changes = operator_changes(base.subject.graph, gathered[0], arm.subject.graph, gathered[1])
    return OperatorChanges(TRACES, runs, changes)


def _runs(timed: ArmResult) -> int:
    seconds = max((time or 0.0 for time in timed.times_ms), default=0.0) * _MS
    return _RUNS if seconds * _RUNS <= _LONGEST_S else max(_FEWEST, int(_LONGEST_S / seconds))


@dataclass
class _Group:
    """The operators of one type in one model: a time for each run of each trace."""

    traces: list[Runs] = field(default_factory=list)
    kernels: Counter[str] = field(default_factory=Counter)
    floats: set[str] = field(default_factory=set)
    converting: list[Runs] = field(default_factory=list)
    conversions: float = 0.0


def operator_changes(
    base_graph: Graph, base: Sequence[OpTrace], arm_graph: Graph, arm: Sequence[OpTrace]
) -> tuple[OperatorChange, ...]:
    """Every type whose time is not the same for sure, the most that is lost first."""
    ours, theirs = _grouped(ModelNodes(base_graph), base), _grouped(ModelNodes(arm_graph), arm)
    counts = [Counter(node.op_type for node in ModelNodes(graph).top) for graph in (base_graph, arm_graph)]
    rows = [
        _change(name, ours.get(name), theirs.get(name), (counts[0][name], counts[1][name]))
        for name in dict.fromkeys((*theirs, *ours))
    ]
    return tuple(sorted(rows, key=lambda row: -row.difference_ms))


def _grouped(nodes: ModelNodes, traces: Sequence[OpTrace]) -> dict[str, _Group]:
    by_label = {node.label: node for node in nodes.top}
    readers: dict[str, list[ModelNode]] = {}
    for node in nodes.top:
        for tensor in node.inputs:
            readers.setdefault(tensor, []).append(node)
    found: dict[str, _Group] = {}
    for number, trace in enumerate(traces):
        for operator in trace.operators:
            converted = _converted(operator, nodes, by_label, readers)
            for name in converted or [_type_of(operator, by_label)]:
                group = found.setdefault(name, _Group())
                _add(group, operator, number, 1 / len(converted or [name]), converting=bool(converted))
    return found


def _add(group: _Group, operator: Operator, number: int, part: float, *, converting: bool) -> None:
    times = [part * (sample or 0.0) * _MS for sample in operator.samples_us]
    for sums in (group.traces, group.converting) if converting else (group.traces,):
        while len(sums) <= number:
            sums.append([0.0] * len(times))
        sums[number] = [one + more for one, more in zip(sums[number], times, strict=True)]
    if number == 0 and converting:
        group.conversions += part
    elif number == 0:
        group.kernels[operator.op_type] += 1
        if any(value.startswith("float") for value in (operator.inputs or ())[:1]):
            group.floats.add(operator.op_type)


def _type_of(operator: Operator, nodes: Mapping[str, ModelNode]) -> str:
    """The model's word for what it does; what onnxruntime added is told apart from the model's own."""
    own = next((nodes[name] for name in operator.onnx_nodes if name in nodes), None)
    return own.op_type if own is not None else f"{operator.op_type} (added by onnxruntime)"


def _converted(
    operator: Operator, nodes: ModelNodes, by_label: Mapping[str, ModelNode], readers: Mapping[str, list[ModelNode]]
) -> list[str]:
    """For whom it converts: the types that read what a DequantizeLinear gives, or made what a QuantizeLinear takes.
    Nobody, where it is no conversion."""
    if operator.op_type not in _CONVERSIONS:
        return []
    names = [*operator.onnx_nodes, *undecorated(operator.node.partition("/duplicated")[0])]
    node = next((by_label[name] for name in names if name in by_label), None)
    if node is None or node.op_type != operator.op_type:
        return []
    if node.op_type == "QuantizeLinear":
        maker = nodes.maker.get(node.inputs[0])
        others = [maker] if maker is not None else []
    else:
        others = readers.get(node.outputs[0], [])
    served = {other.op_type for other in others if other.op_type not in _CONVERSIONS}
    return sorted(served) or [_EDGES]


def _change(name: str, base: _Group | None, arm: _Group | None, counts: tuple[int, int]) -> OperatorChange:
    before, after = base or _Group(), arm or _Group()
    lows, highs = zip(_interval(before.traces), _interval(after.traces), strict=True)
    found = OperatorChange(
        op_type=name,
        nodes=counts[1],
        base_nodes=counts[0],
        kernels=tuple(sorted(after.kernels)),
        base_kernels=tuple(sorted(before.kernels)),
        base_ms=_middle(before.traces),
        arm_ms=_middle(after.traces),
        conversions=round(after.conversions),
        conversion_ms=_middle(after.converting),
        low_ms=lows[1] - highs[0],
        high_ms=highs[1] - lows[0],
        why="",
    )
    return replace(found, why=_why(found, after.floats))


def _middle(traces: Sequence[Runs]) -> float:
    return median(time for runs in traces for time in runs) if traces else 0.0


def _interval(traces: Sequence[Runs]) -> tuple[float, float]:
    """From the lowest to the highest bound that any trace has for its median: sessions differ, too."""
    bounds = [median_interval(runs) for runs in traces] or [(0.0, 0.0)]
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def median_interval(times: Sequence[float], alpha: float = 0.05) -> tuple[float, float]:
    """Order statistics between which the median lies with 1 - `alpha`, whatever the times are distributed like."""
    ordered, count = sorted(times), len(times)
    rank, tail = 0, 0.5**count
    while rank + 1 < count / 2 and tail + math.comb(count, rank + 1) * 0.5**count <= alpha / 2:
        rank += 1
        tail += math.comb(count, rank) * 0.5**count
    return ordered[rank], ordered[count - 1 - rank]


def _why(row: OperatorChange, floats: set[str]) -> str:
    """What the traces show about the type in the arm, and how the base has it."""
    if row.op_type == _EDGES:
        return "converted where they enter and leave the model"
    if row.op_type.endswith(")"):
        return "no operator of the model"
    if not row.kernels and not row.conversions:
        return "part of other kernels here"
    words = _how_run(row, floats)
    if row.conversions:
        plural = "s" if row.conversions > 1 else ""
        words += f" with {row.conversions} conversion{plural} around them ({row.conversion_ms:.2g} ms)"
    if row.base_nodes and not row.base_kernels:
        words += "; the base has them as part of other kernels"
    elif not row.base_nodes:
        words += "; the base has none"
    elif set(row.base_kernels) - {row.op_type}:
        words += f"; the base as {_listed(row.base_kernels)}"
    return words


def _how_run(row: OperatorChange, floats: set[str]) -> str:
    """By what the kernels are and what they were fed."""
    integer = [name for name in row.kernels if is_integer_kernel(name)]
    others = [name for name in row.kernels if name not in integer]
    words = [f"run as {_listed(integer)}"] if integer else []
    if any(name in floats for name in others):
        words.append("run in float")
    elif others:
        words.append("run on integers as they are")
    return " or ".join(words) or "part of other kernels"


def is_integer_kernel(op_type: str) -> bool:
    return op_type.startswith("QLinear") or "Integer" in op_type or op_type in _INTEGER


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
