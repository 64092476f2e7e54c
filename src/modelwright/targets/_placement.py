"""Which EP takes which node: the real partitioner's answer, never a table of rules. Runs in a child."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.errors import ExecutionError
from modelwright.graph import Graph, load
from modelwright.targets._assignment import (
    Item,
    Located,
    Question,
    crossings,
    edges,
    islands,
    locate,
    question,
    source,
    strip_token,
)
from modelwright.targets._binding import NotBound, SessionSpec, bind
from modelwright.targets._native_output import captured_output, failed_claim
from modelwright.targets._session import AssignedGroup, BoundSession, ModelBytes, SessionFacts, open_session
from modelwright.targets._sizes import tensor_bytes
from modelwright.targets._target import Target
from modelwright.targets.eps import Refusal
from modelwright.worker import task

PlacementStatus = Literal["placed", "failed", "unknown"]
_CONTEXT_FILE = "ep.context_file_path"
_NO_FALLBACK = "session.disable_cpu_ep_fallback"
_VERBOSE = 0
_LOOK = "check the EP's options and libraries with `wright sys`; its own words are in the worker's log"
# Disappears at load, without ever being offered to an EP: its value becomes an initializer.
_ABSORBED = ("Constant",)


@dataclass(frozen=True)
class OpTally:
    op_type: str
    count: int


@dataclass(frozen=True)
class EpShare:
    """One EP's part: nodes of the model, nodes onnxruntime added for it, and in how many pieces it runs."""

    ep: str
    nodes: int
    inserted: int
    partitions: int
    op_types: tuple[OpTally, ...]


@dataclass(frozen=True)
class LeftNode:
    """A node of the model the target's EP did not take. `why` is None where the EP does not tell."""

    name: str
    op_type: str
    domain: str
    ep: str
    why: Refusal | None


@dataclass(frozen=True)
class PlacedNode:
    """A node of the model and the EP that takes it, None for one that is gone after loading.

    `reads` are the places, in the list of all nodes, of those whose tensors it takes.
    """

    name: str
    op_type: str
    ep: str | None
    reads: tuple[int, ...]


@dataclass(frozen=True)
class BoundaryCopy:
    """A tensor one EP makes and another reads; bytes are None where its shape is not static."""

    tensor: str
    source_ep: str
    reader_ep: str
    size_bytes: int | None


@dataclass(frozen=True)
class Placement:
    """The answer for one model and one target.

    `unknown`: no such EP can be asked here. `failed`: it was asked and broke.
    Copies are tensors of the model: its inputs and outputs, and what onnxruntime inserts, are not among them.
    """

    target: str
    status: PlacementStatus
    reason: str | None
    fix: str | None
    nodes: int
    facts: SessionFacts | None = None
    cpu_fallback: bool = True
    virtual: bool = False
    eps: tuple[EpShare, ...] = ()
    left: tuple[LeftNode, ...] = ()
    copies: tuple[BoundaryCopy, ...] = ()
    absorbed: tuple[OpTally, ...] = ()
    expanded: tuple[str, ...] = ()
    inserted: tuple[OpTally, ...] = ()
    graph: tuple[PlacedNode, ...] = ()
    seconds: float = 0.0

    @property
    def running(self) -> int:
        """Nodes that some EP got: constants, for example, are gone before anyone is asked."""
        return sum(share.nodes for share in self.eps) if self.status == "placed" else self.nodes

    @property
    def unsupported(self) -> tuple[LeftNode, ...]:
        """What the EP cannot take, without what it is only told to leave to the CPU."""
        return tuple(node for node in self.left if node.why is None or node.why.kind != "policy")

    @property
    def left_by_type(self) -> dict[str, tuple[LeftNode, ...]]:
        groups: dict[str, list[LeftNode]] = defaultdict(list)
        for node in self.left:
            groups[node.op_type].append(node)
        return {op_type: tuple(nodes) for op_type, nodes in groups.items()}

    @property
    def copied_bytes(self) -> int | None:
        """All boundary copies of one run; None when the size of one is unknown."""
        sizes = [copy.size_bytes for copy in self.copies]
        return None if None in sizes else sum(size for size in sizes if size is not None)


@task
def placement(model: str, target: Target, spec: SessionSpec | None = None, *, cpu_fallback: bool = True) -> Placement:
    """Ask the target's EP about the model as it is: no graph optimizations unless the spec turns them on."""
    return placed_and_used(model, target, _quick(target, spec), cpu_fallback=cpu_fallback)


def placed_and_used(
    model: str,
    target: Target,
    spec: SessionSpec,
    use: Callable[[BoundSession], None] | None = None,
    *,
    cpu_fallback: bool = True,
) -> Placement:
    """The placement, and `use` made of the very session that told it."""
    started = time.perf_counter()
    graph = load(model)
    asked = question(graph)
    # A compiled model that is opened from memory still has its binary beside the file.
    spec = replace(spec, config={_CONTEXT_FILE: str(graph.path), **(spec.config or {})})
    answer = _ask(source(graph, asked), target, _spec(target, spec, cpu_fallback), use)
    found = Placement(str(target), "placed", None, None, len(asked.items), cpu_fallback=cpu_fallback)
    if isinstance(answer, _NotPlaced):
        found = replace(found, status=answer.status, reason=answer.reason, fix=answer.fix, virtual=answer.virtual)
        return replace(found, seconds=time.perf_counter() - started)
    located = locate(asked, answer.groups)
    gone = [item for item in asked.items if item.key not in located.ep_of]
    return replace(
        found,
        facts=answer.facts,
        virtual=answer.virtual,
        eps=_shares(asked, located, answer.groups),
        left=_left(asked, located, target.provider.name, target.adapter.refusals(answer.log)),
        copies=_copies(graph, asked, located),
        absorbed=_tally(item.op_type for item in gone if item.op_type in _ABSORBED),
        expanded=tuple(item.label for item in gone if item.op_type not in _ABSORBED),
        inserted=_tally(node.op_type for _, node in located.inserted),
        graph=_placed(asked, located),
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True)
class _Placed:
    facts: SessionFacts
    groups: tuple[AssignedGroup, ...]
    log: str
    virtual: bool


@dataclass(frozen=True)
class _NotPlaced:
    status: PlacementStatus
    reason: str
    fix: str
    virtual: bool = False


def _quick(target: Target, spec: SessionSpec | None) -> SessionSpec:
    spec = spec or SessionSpec(graph_optimization="disabled")
    return replace(spec, provider_options={**target.adapter.quick_options, **(spec.provider_options or {})})


def _spec(target: Target, spec: SessionSpec, cpu_fallback: bool) -> SessionSpec:
    return replace(
        spec,
        config={_NO_FALLBACK: "0" if cpu_fallback else "1", **(spec.config or {})},
        allow_unused=True,
        log_severity=_VERBOSE if target.adapter.tells_why else spec.log_severity,
    )


def _ask(
    model: str | ModelBytes, target: Target, spec: SessionSpec, use: Callable[[BoundSession], None] | None
) -> _Placed | _NotPlaced:
    absent = _bind_error(target, spec, virtual=False)
    if absent is not None and _bind_error(target, spec, virtual=True) is not None:
        return _NotPlaced("unknown", absent.cause, absent.fix)
    virtual = absent is not None
    try:
        with captured_output() as output, open_session(model, target, spec, virtual=virtual) as session:
            facts, groups = session.facts, session.assignment()
            if use is not None:
                use(session)
    except NotBound as error:
        return _NotPlaced("unknown", error.cause, error.fix, virtual)
    except ExecutionError as error:
        if absent is None:
            known = target.adapter.explain(error.cause, target.soc)
            return _NotPlaced("failed", error.cause, _LOOK if known is None else known.fix)
        reason = f"{absent.cause}; the EP's virtual device cannot answer either: {error.cause}"
        return _NotPlaced("unknown", reason, absent.fix, virtual)
    broken = failed_claim(output.text)
    if broken is not None:
        return _NotPlaced("failed", broken, _LOOK)
    return _Placed(facts, groups, output.text, virtual)


def _bind_error(target: Target, spec: SessionSpec, *, virtual: bool) -> ExecutionError | None:
    try:
        bind(target, spec, virtual=virtual)
    except ExecutionError as error:
        return error
    return None


def _left(asked: Question, located: Located, ep_name: str, refused: dict[str, Refusal]) -> tuple[LeftNode, ...]:
    why = {strip_token(name): refusal for name, refusal in refused.items()} | refused
    elsewhere = [item for item in asked.items if located.ep_of.get(item.key, ep_name) != ep_name]
    return tuple(
        LeftNode(item.label, item.op_type, item.domain, located.ep_of[item.key], _shown(item, why.get(item.key)))
        for item in elsewhere
    )


def _shown(item: Item, why: Refusal | None) -> Refusal | None:
    """The EP's words with the label in place of the key, where the two differ."""
    if why is None or item.key == item.label:
        return why
    reason, line = (text.replace(item.key, item.label) for text in (why.reason, why.line))
    return replace(why, reason=reason, line=line)


def _shares(asked: Question, located: Located, groups: tuple[AssignedGroup, ...]) -> tuple[EpShare, ...]:
    types: dict[str, list[str]] = {group.ep_name: [] for group in groups}
    for item in asked.items:
        if item.key in located.ep_of:
            types[located.ep_of[item.key]].append(item.op_type)
    added = Counter(ep_name for ep_name, _ in located.inserted)
    return tuple(
        EpShare(ep_name, len(ops), added[ep_name], _partitions(asked, located, groups, ep_name), _tally(ops))
        for ep_name, ops in types.items()
    )


def _placed(asked: Question, located: Located) -> tuple[PlacedNode, ...]:
    place = {item.key: number for number, item in enumerate(asked.items)}
    reads: dict[str, dict[int, None]] = defaultdict(dict)
    for _, producer, consumer in edges(asked):
        reads[consumer][place[producer]] = None
    return tuple(
        PlacedNode(item.label, item.op_type, located.ep_of.get(item.key), tuple(reads[item.key]))
        for item in asked.items
    )


def _partitions(asked: Question, located: Located, groups: tuple[AssignedGroup, ...], ep_name: str) -> int:
    """Compiled groups as the EP made them; one that compiles nothing lists single nodes, so count islands."""
    sizes = [len(group.nodes) for group in groups if group.ep_name == ep_name]
    if len(sizes) == 1 or max(sizes) > 1:
        return len(sizes)
    return islands(asked, located.ep_of, ep_name)


def _copies(graph: Graph, asked: Question, located: Located) -> tuple[BoundaryCopy, ...]:
    crossing = crossings(asked, located.ep_of)
    sizes = tensor_bytes(graph, (tensor for tensor, _, _ in crossing))
    return tuple(BoundaryCopy(tensor, here, there, sizes[tensor]) for tensor, here, there in crossing)


def _tally(op_types: Iterable[str]) -> tuple[OpTally, ...]:
    counts = Counter(op_types)
    return tuple(OpTally(op_type, counts[op_type]) for op_type in sorted(counts, key=lambda op: (-counts[op], op)))
