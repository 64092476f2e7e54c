"""From a report to things that can be done: which nodes to leave float, which tensors to widen."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import get_args

from modelwright.diagnosis import Activation, DebugReport, View, label
from modelwright.repairs._types import Level, Promotion
from modelwright.stages.quantize import (
    WORKERS,
    Method,
    QuantizeParams,
    TensorOverride,
    integer_products,
    reduces_range,
    static_operators,
    steps_of,
)

_MOSTLY = 0.5
# More tensors than these are no longer an exception here and there.
_FEW = 8
# onnxruntime quantizes the weights of these by itself when it loads a model in which they stand, left in float,
# between quantized tensors. To stay float, their results must too.
_TAKEN_BACK = ("Conv", "ConvTranspose", "Gemm")
# Between exceptions of the same size the one that touches fewer nodes is better: this share of the weights for each.
_NODE_SHARE = 1e-4


def settings(params: QuantizeParams, *, saturated: bool = False) -> list[Promotion]:
    """What costs next to nothing: weights that cannot saturate where products `saturated`, a scale for each channel of
    the weights, other ways to find ranges."""
    if steps_of(params.precision)[0].kind != "static":
        return []
    found: list[tuple[str, bool | str]] = []
    if saturated and integer_products(params) and not reduces_range(params):
        found.append(("reduce_range", True))
    if not params.per_channel:
        found.append(("per_channel", True))
    found += [("method", method) for method in get_args(Method) if method != params.method]
    return [_setting(name, value) for name, value in found]


def more_effort(params: QuantizeParams) -> list[Promotion]:
    """What costs nothing when the model runs, but several times as much to build."""
    kinds = {step.kind for step in steps_of(params.precision)}
    return [_setting("effort", "best")] if kinds & {"static", "int4"} and params.effort != "best" else []


def _setting(name: str, value: bool | str) -> Promotion:
    return Promotion(name, "", "setting", "free", 0.0, (), (), value)


def exceptions(report: DebugReport, view: View, params: QuantizeParams, level: Level) -> tuple[list[Promotion], ...]:
    """What can be raised, the most noise for a byte first; two lists to be tried one after the other.

    A few tensors, by the noise that is added there and by the noise that would be once the ones before no longer clip
    what gets there (neither is always right: more bits in one place may make another clip more), and whole operators.
    Then all tensors. With 16 bits, what is clipped still has to become float.
    """
    scope = _scope(view, params)
    weights = {row.node: row.weight_name for row in report.weights}
    noisy = sorted((row for row in report.activations if _noise(row) > 0.0), key=lambda row: (-_noise(row), row.order))

    def actions(rows: Iterable[Activation]) -> list[Promotion]:
        return _distinct(_action(row, view, scope, weights, level) for row in rows)

    few = [*actions(report.originators)[:_FEW], *actions(noisy)[:_FEW], *_operators(report, view, params, level)]
    gains = expected_gains(report)
    dearly = float(sum(_elements(name, view) for name in view.stored)) or 1.0

    def worth(item: Promotion) -> float:
        """Noise for each byte, where a node that leaves the integer kernels costs a little too."""
        touched = len(item.excludes) + len(item.overrides)
        return -gains(item) / (sum(grown(item, params, view).values()) / dearly + _NODE_SHARE * touched)

    return tuple(sorted(_distinct(items), key=worth) for items in (few, [*few, *actions(noisy)]))


def grown(item: Promotion, params: QuantizeParams, view: View) -> dict[str, float]:
    """Bytes that this adds, roughly, by weight: those that stay float or get 16 bits."""
    bits = steps_of(params.precision)[0].weight_bits
    nodes = [view.nodes[view.by_name[name]] for name in item.excludes if name in view.by_name]
    wide = [name for node in nodes if node.op_type in WORKERS for name in node.input if name in view.stored]
    wider = [one.tensor for one in item.overrides if one.tensor in view.stored]
    found = {name: (16 - bits) / 8 * _elements(name, view) for name in wider}
    return found | {name: (32 - bits) / 8 * _elements(name, view) for name in wide}


def combined(chosen: Iterable[Promotion], params: QuantizeParams, view: View) -> QuantizeParams:
    """The parameters of a build with all of these; a tensor that no quantized node touches needs no type."""
    picked = list(chosen)
    excludes = dict.fromkeys((*params.nodes_to_exclude, *(name for item in picked for name in item.excludes)))
    overrides = {item.tensor: item for item in params.overrides}
    overrides |= {item.tensor: item for one in picked for item in one.overrides}
    useful = tuple(item for item in overrides.values() if _touched(item.tensor, view, set(excludes)))
    changed: dict[str, object] = {"nodes_to_exclude": tuple(excludes), "overrides": useful}
    changed |= {item.tensor: item.value for item in picked if item.what == "setting"}
    left_out = {item.tensor for item in picked if item.what == "operator" and item.level == "float"}
    if left_out:
        # Said by their names, so that the recipe stays one that people can read.
        step = steps_of(params.precision)[0]
        kept = set(static_operators(view.graph.model, params, step.activation_bits)) - left_out
        whole = {name for item in picked if item.what == "operator" for name in item.excludes}
        nodes = tuple(name for name in excludes if name not in whole)
        changed |= {"op_types": tuple(sorted(kept)), "nodes_to_exclude": nodes}
    return QuantizeParams(**{**vars(params), **changed})


def _distinct(items: Iterable[Promotion]) -> list[Promotion]:
    """Those that change something, each change once."""
    found = {(item.excludes, item.overrides): item for item in reversed([*items]) if item.excludes or item.overrides}
    return list(reversed(found.values()))


def _elements(stored: str, view: View) -> int:
    return math.prod(view.shape(stored))


def expected_gains(report: DebugReport) -> Callable[[Promotion], float]:
    """The noise that goes when this is raised, as the report has it."""
    of_tensor = {row.tensor_name: _noise(row) for row in report.activations}
    of_operator: dict[str, float] = defaultdict(float)
    for row in report.activations:
        of_operator[row.op_type] += _noise(row)
    return lambda item: (of_operator if item.what == "operator" else of_tensor).get(item.tensor, 0.0)


def _operators(report: DebugReport, view: View, params: QuantizeParams, level: Level) -> list[Promotion]:
    """All nodes of an operator at once; those that quantization is there for come last."""
    step = steps_of(params.precision)[0]
    if step.kind != "static":
        return []
    scope = static_operators(view.graph.model, params, step.activation_bits)
    found = []
    for operator in scope:
        rows = [row for row in report.activations if row.op_type == operator]
        nodes = [node.name for node in view.nodes if node.op_type == operator and node.name]
        wide = tuple(TensorOverride(row.tensor_name, "uint16") for row in rows if row.dtype in ("uint8", "int8"))
        share, noise = sum(row.origin_share or 0.0 for row in rows), sum(_noise(row) for row in rows)
        item = Promotion(
            tensor=operator,
            node="",
            what="operator",
            level=level,
            origin_share=share,
            excludes=tuple(nodes) if level == "float" else (),
            overrides=wide if level == "16bit" else (),
        )
        if item.excludes or item.overrides:
            found.append((operator in WORKERS, -noise, item))
    ordered = [item for _, _, item in sorted(found, key=lambda one: one[:2])]
    # Without any of its workers nothing of the model would be quantized.
    return [item for item in ordered if item.tensor not in WORKERS] if level == "float" else ordered


def _scope(view: View, params: QuantizeParams) -> frozenset[str]:
    """Names of the nodes that this precision quantizes."""
    step = steps_of(params.precision)[0]
    if step.kind != "static":
        return frozenset(node.name for node in view.nodes if node.name)
    operators = {*static_operators(view.graph.model, params, step.activation_bits), "Gather"}
    return frozenset(node.name for node in view.nodes if node.op_type in operators and node.name)


def _action(row: Activation, view: View, scope: frozenset[str], weights: dict[str, str], level: Level) -> Promotion:
    tensor_noise = _is_tensor_noise(row)
    near = set(row.nodes)
    if tensor_noise or row.op_type in _TAKEN_BACK:
        near |= {label(node) for node in view.readers(row.tensor_name)}
    clipped = (row.clip_noise_share or 0.0) > _MOSTLY
    use: Level = "16bit" if level == "16bit" and not (tensor_noise and clipped) and row.dtype != "uint16" else "float"
    overrides: tuple[TensorOverride, ...] = ()
    if use == "16bit" and tensor_noise:
        overrides = (TensorOverride(row.tensor_name, "uint16"),)
    elif use == "16bit":
        overrides = tuple(TensorOverride(weights[name], "int16") for name in row.nodes if name in weights)
    return Promotion(
        tensor=row.tensor_name,
        node=row.node,
        what="activation" if tensor_noise else "weight" if set(row.nodes) & weights.keys() else "node",
        level=use,
        origin_share=row.origin_share or 0.0,
        excludes=tuple(sorted(near & scope)) if use == "float" else (),
        overrides=overrides,
        op_type=row.op_type,
    )


def _noise(row: Activation) -> float:
    """Noise to signal: of what was added here, or of the tensor's own pair on clean values, whichever is more."""
    known = [number for number in (row.introduced_sqnr_db, row.local_sqnr_db) if number is not None]
    return 10.0 ** (-min(known) / 10.0) if known else 0.0


def _is_tensor_noise(row: Activation) -> bool:
    """True when the tensor's own rounding and clipping make most of what was added here; else it is the weights."""
    if row.local_sqnr_db is None or row.introduced_sqnr_db is None:
        return False
    share = 10.0 ** ((row.introduced_sqnr_db - row.local_sqnr_db) / 10.0)
    return bool(share >= _MOSTLY)


def _touched(tensor: str, view: View, excluded: set[str]) -> bool:
    maker = view.maker(tensor)
    nodes = [*view.readers(tensor), *([maker] if maker is not None else [])]
    return any(label(node) not in excluded for node in nodes)
