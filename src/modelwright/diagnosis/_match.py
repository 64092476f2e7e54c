"""Which tensor of the float model each tensor of the quantized one stands for. By topology, not by spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright.diagnosis._dequant import DEFAULT_AXIS, Grid, make_grid
from modelwright.diagnosis._match_view import DEQUANTIZE, QUANTIZE, RESCALED, View, attribute, label
from modelwright.diagnosis._types import MatchKind, Unmatched
from modelwright.graph import dtype_name

if TYPE_CHECKING:
    import onnx

# A quantizer may fold these into the range of the tensor before them.
FOLDABLE = ("Relu", "Clip", "LeakyRelu")
_SLACK = 0.51


@dataclass(frozen=True, eq=False)
class Pair:
    """A float tensor and its counterpart. `site`: it goes through a Q/DQ pair, on a `grid` when that is stored."""

    tensor: str
    quant: str
    kind: MatchKind
    absorbed: str | None = None
    grid: Grid | None = None
    site: bool = False


@dataclass(frozen=True, eq=False)
class Matching:
    """Pairs in the order of the float graph, and what has no partner on either side."""

    pairs: tuple[Pair, ...]
    float_only: tuple[Unmatched, ...]
    quant_only: tuple[Unmatched, ...]


@dataclass(frozen=True)
class _Site:
    """One QuantizeLinear of an activation: the tensor before it and the first tensor behind it."""

    node: int
    before: str
    behind: str


def match(wanted: View, got: View) -> Matching:
    """Pairs of Q/DQ sites first, then every other tensor that kept its name."""
    sites, quant_only = _sites(got)
    pairs: dict[str, Pair] = {}
    found: dict[str, str] = {}
    for site in sites:
        pair = _pair(site, wanted, got, found)
        if pair is None:
            quant_only.append(Unmatched(site.before, _why_alone(site, got)))
            continue
        found[site.behind] = pair.tensor
        pairs.setdefault(pair.tensor, pair)
    before = {site.before for site in sites if site.behind in found}
    for name in wanted.makers:
        other = None if name in pairs else _same_float(name, wanted, got)
        if other is not None and other.quant not in before:
            pairs[name] = other
    pairs = {name: pair for name, pair in pairs.items() if name not in got.rescaled}
    order = {name: place for place, name in enumerate((*wanted.inputs, *wanted.makers))}
    ordered = tuple(sorted(pairs.values(), key=lambda pair: order[pair.tensor]))
    return Matching(ordered, _float_only(wanted, got, pairs), tuple(quant_only))


def grid_of(got: View, node: onnx.NodeProto) -> Grid | None:
    """The grid of a Q or DQ node; None when its scale is computed while the model runs."""
    scale, zero = node.input[1], node.input[2] if len(node.input) > 2 else ""
    if scale not in got.stored or (zero and zero not in got.stored):
        return None
    if zero:
        dtype = dtype_name(got.stored[zero].data_type)
    elif node.op_type == DEQUANTIZE and node.input[0] in got.stored:
        dtype = dtype_name(got.stored[node.input[0]].data_type)
    else:
        dtype = dtype_name(attribute(node, "output_dtype", 0) or 2)
    axis, block = attribute(node, "axis", DEFAULT_AXIS), attribute(node, "block_size", 0)
    return make_grid(got.values(scale), got.values(zero) if zero else None, dtype, axis, block)


def _sites(got: View) -> tuple[list[_Site], list[Unmatched]]:
    sites, alone = [], []
    for index, node in enumerate(got.nodes):
        if node.op_type != QUANTIZE or node.input[0] in got.stored:
            continue
        behind = [reader.output[0] for reader in got.readers(node.output[0]) if reader.op_type == DEQUANTIZE]
        if behind:
            sites.append(_Site(index, node.input[0], behind[0]))
        else:
            reason = "no DequantizeLinear follows: an integer operator reads it"
            alone.append(Unmatched(node.input[0], reason))
    return sites, alone


def _pair(site: _Site, wanted: View, got: View, found: dict[str, str]) -> Pair | None:
    tensor, kind = _float_tensor(site, wanted, got, found)
    if tensor is None:
        return None
    grid = grid_of(got, got.nodes[site.node])
    folded = _renamed_activation(tensor, site, wanted, got)
    if folded is None:
        after = _folded_activation(tensor, wanted, got, grid)
        if after is not None:
            tensor, folded = after.output[0], after.op_type
    return Pair(tensor, site.behind, "absorbed" if folded else kind, folded, grid, site=True)


def _float_tensor(site: _Site, wanted: View, got: View, found: dict[str, str]) -> tuple[str | None, MatchKind]:
    for name in (site.behind, site.before):
        if wanted.has(name):
            return name, "name"
    if site.before in found:
        return found[site.before], "convert"
    use = got.makers.get(site.before)
    if use is None:
        return None, "name"
    twin = wanted.by_name.get(got.nodes[use.node].name)
    if twin is None or wanted.nodes[twin].op_type != got.nodes[use.node].op_type:
        return None, "name"
    outputs = wanted.nodes[twin].output
    return (outputs[use.position], "producer") if use.position < len(outputs) else (None, "name")


def _same_float(name: str, wanted: View, got: View) -> Pair | None:
    """The counterpart of a tensor that is not quantized: by its name, else by its node's name."""
    if name in got.makers:
        return Pair(name, name, "name")
    use = wanted.makers[name]
    twin = got.by_name.get(wanted.nodes[use.node].name)
    if twin is None or got.nodes[twin].op_type != wanted.nodes[use.node].op_type:
        return None
    outputs = got.nodes[twin].output
    other = outputs[use.position] if use.position < len(outputs) else ""
    # A node that took in the one behind it kept its own name and makes what that one made.
    if not other or wanted.has(other) or wanted.folded_behind(name, got):
        return None
    return Pair(name, other, "producer")


def _renamed_activation(tensor: str, site: _Site, wanted: View, got: View) -> str | None:
    """The float model makes this tensor with a Relu; here the operator before that Relu makes it."""
    float_maker, quant_maker = wanted.maker(tensor), got.maker(site.before)
    if float_maker is None or quant_maker is None or float_maker.op_type not in FOLDABLE:
        return None
    return float_maker.op_type if quant_maker.op_type not in (float_maker.op_type, DEQUANTIZE) else None


def _folded_activation(tensor: str, wanted: View, got: View, grid: Grid | None) -> onnx.NodeProto | None:
    """The Relu or Clip that reads this tensor alone in the float model, and is gone here because the range clamps."""
    readers = wanted.readers(tensor)
    if len(readers) != 1 or readers[0].op_type not in FOLDABLE or tensor in wanted.outputs or grid is None:
        return None
    node = readers[0]
    if got.has(node.output[0]) or (node.name and node.name in got.by_name):
        return None
    return node if _clamps(grid, node, wanted) else None


def _clamps(grid: Grid, node: onnx.NodeProto, wanted: View) -> bool:
    """The range ends where the activation ends, to within a step."""
    reach = grid.reach()
    if reach is None:
        return False
    low, high = _activation_range(node, wanted)
    slack = _SLACK * float(grid.scale.max())
    return (low is None or reach[0] >= low - slack) and (high is None or reach[1] <= high + slack)


def _activation_range(node: onnx.NodeProto, wanted: View) -> tuple[float | None, float | None]:
    if node.op_type != "Clip":
        return 0.0, None
    ends: list[float | None] = []
    for position, name in ((1, "min"), (2, "max")):
        stored = node.input[position] if position < len(node.input) else ""
        old = next((item.f for item in node.attribute if item.name == name), None)
        ends.append(float(wanted.values(stored).reshape(())) if stored in wanted.stored else old)
    return ends[0], ends[1]


def _why_alone(site: _Site, got: View) -> str:
    maker = got.maker(site.before)
    if maker is None:
        return "the float model has no such input"
    return f"the float model has neither this tensor nor a node {label(maker)} of the same type"


def _float_only(wanted: View, got: View, pairs: dict[str, Pair]) -> tuple[Unmatched, ...]:
    found = []
    for name, use in wanted.makers.items():
        if name in pairs or wanted.nodes[use.node].op_type in ("Shape", "Constant"):
            continue
        found.append(Unmatched(name, _why_gone(name, wanted, got, pairs)))
    return tuple(found)


def _why_gone(name: str, wanted: View, got: View, pairs: dict[str, Pair]) -> str:
    for reader in wanted.readers(name):
        for output in reader.output:
            if output in pairs and pairs[output].absorbed:
                return f"compared behind its {reader.op_type} {output}, which the quantized range absorbed"
    if name in got.rescaled:
        return RESCALED
    maker = wanted.maker(name)
    node = label(maker) if maker is not None else name
    folded = wanted.folded_behind(name, got)
    if folded is not None:
        return f"{label(folded)} behind it was folded into {node}"
    if maker is not None and maker.name in got.by_name:
        return f"node {node} exists on both sides, but its output has another name"
    return f"the quantized model has neither this tensor nor the node {node}: fused or removed"
