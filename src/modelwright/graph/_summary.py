"""What `inspect` says about a model: everything that can be known without running it or reading weights."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from modelwright._dataclass import dataclass
from modelwright.graph._bodies import Body, domain_of
from modelwright.graph._census import may_be_quantized
from modelwright.graph._epcontext import EP_CONTEXT, EpContextNode, ep_context_nodes
from modelwright.graph._external import ExternalTensor, external_data
from modelwright.graph._load import PROTOBUF_LIMIT, Graph, shared
from modelwright.graph._precision import Precision, precision
from modelwright.graph._types import ValueSpec, dtype_name, elements, stored_bytes, value_spec

if TYPE_CHECKING:
    import onnx

_RUNTIME_DOMAINS = frozenset({"", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft"})
_KNOWN_PREFIXES = ("com.microsoft.", "com.ms.", "ai.onnx.")
_CONTROL_FLOW = frozenset({"If", "Loop", "Scan", "SequenceMap"})


@dataclass(frozen=True)
class ModelFilePart:
    """A file the model consists of; the name is relative to the model's folder."""

    name: str
    role: Literal["model", "weights", "compiled"]
    size_bytes: int | None


@dataclass(frozen=True)
class Opset:
    domain: str
    version: int


@dataclass(frozen=True)
class OpCount:
    domain: str
    op_type: str
    count: int


@dataclass(frozen=True)
class DtypeTotal:
    """Stored tensors of one element type; bytes are None for strings, which have no fixed size."""

    dtype: str
    tensors: int
    elements: int
    size_bytes: int | None


@dataclass(frozen=True)
class FunctionEntry:
    domain: str
    name: str
    nodes: int


@dataclass(frozen=True)
class ModelSummary:
    """`node_count` and `ops` include subgraphs and, once each, the bodies of local functions.

    `parameters` and `weights` count every stored tensor. `warnings` holds what is odd but usable.
    """

    path: Path
    files: tuple[ModelFilePart, ...]
    total_bytes: int
    over_2gib: bool
    ir_version: int
    producer: str | None
    producer_version: str | None
    graph_name: str | None
    opsets: tuple[Opset, ...]
    inputs: tuple[ValueSpec, ...]
    outputs: tuple[ValueSpec, ...]
    dynamic: bool
    node_count: int
    top_level_nodes: int
    ops: tuple[OpCount, ...]
    functions: tuple[FunctionEntry, ...]
    subgraphs: int
    control_flow: bool
    parameters: int
    weights: tuple[DtypeTotal, ...]
    precision: Precision
    ep_context: tuple[EpContextNode, ...]
    warnings: tuple[str, ...]

    @property
    def quantized(self) -> bool | None:
        """None when the weights are inside a compiled blob."""
        return self.precision.quantized


def summary(graph: Graph) -> ModelSummary:
    """Summarise a model, a shared one once. Its external files are checked, not read; a bad one is an InputError."""
    return _shared(graph) if graph.shared else _fresh(graph)


def inputs_of(graph: Graph) -> tuple[ValueSpec, ...]:
    """What the summary says of them; its external files are not looked at."""
    return _inputs(graph.model.graph)


def outputs_of(graph: Graph) -> tuple[ValueSpec, ...]:
    return tuple(map(value_spec, graph.model.graph.output))


def operators_in(graph: Graph) -> frozenset[str]:
    """Of subgraphs and local functions too, whatever their domain."""
    return frozenset(node.op_type for body in graph.bodies for node in body.nodes)


def holds_quantized(graph: Graph) -> bool | None:
    """What the summary says; nothing is counted where no operator quantizes anything."""
    operators = operators_in(graph)
    return summary(graph).quantized if EP_CONTEXT in operators or may_be_quantized(operators) else False


def facts(path: str | Path) -> ModelSummary:
    """The summary of the model in a file, for those who only look at it."""
    return summary(shared(path))


def _fresh(graph: Graph) -> ModelSummary:
    return _summary(graph, external_data(graph), ep_context_nodes(graph))


_shared = functools.lru_cache(4)(_fresh)


def _summary(graph: Graph, external: tuple[ExternalTensor, ...], compiled: tuple[EpContextNode, ...]) -> ModelSummary:
    model = graph.model
    files = (ModelFilePart(graph.path.name, "model", graph.file_bytes), *_other_files(graph, external, compiled))
    total = sum(item.size_bytes or 0 for item in files)
    inputs, outputs = inputs_of(graph), outputs_of(graph)
    ops = _ops(graph.bodies)
    weights = _weights(graph.bodies)
    subgraphs = sum(body.kind == "subgraph" for body in graph.bodies)
    return ModelSummary(
        path=graph.path,
        files=files,
        total_bytes=total,
        over_2gib=total > PROTOBUF_LIMIT,
        ir_version=model.ir_version,
        producer=model.producer_name or None,
        producer_version=model.producer_version or None,
        graph_name=model.graph.name or None,
        opsets=tuple(Opset(domain_of(item.domain), item.version) for item in model.opset_import),
        inputs=inputs,
        outputs=outputs,
        dynamic=any(_is_dynamic(value) for value in (*inputs, *outputs)),
        node_count=sum(op.count for op in ops),
        top_level_nodes=len(graph.bodies[0].nodes),
        ops=ops,
        functions=tuple(FunctionEntry(domain_of(item.domain), item.name, len(item.node)) for item in model.functions),
        subgraphs=subgraphs,
        control_flow=subgraphs > 0 or any(op.domain == "" and op.op_type in _CONTROL_FLOW for op in ops),
        parameters=sum(item.elements for item in weights),
        weights=weights,
        precision=precision(graph),
        ep_context=compiled,
        warnings=tuple(_warnings(model, ops, compiled)),
    )


def _other_files(
    graph: Graph, external: tuple[ExternalTensor, ...], compiled: tuple[EpContextNode, ...]
) -> Iterable[ModelFilePart]:
    for location in sorted({tensor.location for tensor in external}):
        yield ModelFilePart(location, "weights", (graph.folder / location).stat().st_size)
    for location in sorted({node.cache_file for node in compiled if node.cache_file}):
        path = graph.folder / location
        yield ModelFilePart(location, "compiled", path.stat().st_size if path.is_file() else None)


def _inputs(graph: onnx.GraphProto) -> tuple[ValueSpec, ...]:
    """Without the weights that old models list as inputs too."""
    stored = {tensor.name for tensor in graph.initializer}
    stored.update(sparse.values.name for sparse in graph.sparse_initializer)
    return tuple(value_spec(value) for value in graph.input if value.name not in stored)


def _is_dynamic(value: ValueSpec) -> bool:
    return value.shape is None or any(not isinstance(dim, int) for dim in value.shape)


def _ops(bodies: tuple[Body, ...]) -> tuple[OpCount, ...]:
    counts = Counter((domain_of(node.domain), node.op_type) for body in bodies for node in body.nodes)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(OpCount(domain, op_type, count) for (domain, op_type), count in ordered)


def _weights(bodies: tuple[Body, ...]) -> tuple[DtypeTotal, ...]:
    alike = Counter((tensor.data_type, tuple(tensor.dims[:])) for body in bodies for tensor in body.tensors())
    tensors: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    raw: dict[int, int | None] = {}
    for (code, dims), count in alike.items():
        tensors[code] += count
        sizes[code] += count * elements(dims)
        size, before = stored_bytes(code, dims), raw.get(code, 0)
        raw[code] = None if size is None or before is None else before + count * size
    totals = (DtypeTotal(dtype_name(code), tensors[code], sizes[code], raw[code]) for code in tensors)
    return tuple(sorted(totals, key=lambda item: (-(item.size_bytes or 0), item.dtype)))


def _warnings(model: onnx.ModelProto, ops: tuple[OpCount, ...], compiled: tuple[EpContextNode, ...]) -> Iterable[str]:
    imported = {domain_of(item.domain) for item in model.opset_import}
    functions = {(domain_of(item.domain), item.name) for item in model.functions}
    for domain in sorted({op.domain for op in ops}):
        shown = domain or "ai.onnx"
        if model.opset_import and domain not in imported:
            yield f"{shown} operators are used, but no opset of it is imported; is the file cut short?"
        needs_library = domain not in _RUNTIME_DOMAINS and not domain.startswith(_KNOWN_PREFIXES)
        undefined = [op.op_type for op in ops if op.domain == domain and (domain, op.op_type) not in functions]
        if needs_library and undefined:
            yield f"{shown}::{undefined[0]} is no standard operator and no function of this file defines it"
    for node in compiled:
        if node.cache_present is False:
            yield f"the compiled context {node.cache_file} is missing beside the model"
