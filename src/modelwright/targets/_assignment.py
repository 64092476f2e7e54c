"""The partitioner's answer laid over the model as given: what is where, what crosses, what came and went."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph import Graph, external_data, subgraphs_of
from modelwright.targets._session import AssignedGroup, AssignedNode, ModelBytes

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

# onnxruntime makes names unique by this suffix, and calls the nodes of a layout change "Transpose".
_TOKEN = re.compile(r"(?:_token_\d+)+$")
_AMBIGUOUS = re.compile(r"_token_\d+$|^Transpose$")


@dataclass(frozen=True)
class Item:
    """One node of the model under the key onnxruntime is given and the label a user is shown."""

    key: str
    label: str
    op_type: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scope: int


@dataclass(frozen=True, eq=False)
class Question:
    """The model to ask about. `renamed` when its own names cannot tell its nodes apart."""

    items: tuple[Item, ...]
    renamed: bool
    parents: tuple[int | None, ...]

    @property
    def labels(self) -> dict[str, str]:
        return {item.key: item.label for item in self.items}


@dataclass(frozen=True)
class Located:
    """`ep_of` by node key; `inserted` are nodes onnxruntime added, per EP."""

    ep_of: Mapping[str, str]
    inserted: tuple[tuple[str, AssignedNode], ...]


def question(graph: Graph) -> Question:
    scopes = _scopes(graph.model)
    names = [node.name for nodes, _ in scopes for node in nodes]
    renamed = len(set(names)) < len(names) or any(not name or _AMBIGUOUS.search(name) for name in names)
    items: list[Item] = []
    for scope, (nodes, _) in enumerate(scopes):
        items.extend(_item(node, len(items) + offset, scope, renamed) for offset, node in enumerate(nodes))
    return Question(tuple(items), renamed, tuple(parent for _, parent in scopes))


def source(graph: Graph, asked: Question) -> str | ModelBytes:
    """What to open: the file itself, or a copy in memory whose nodes carry the keys.

    onnxruntime refuses a graph in which two nodes have one name. The copy would hide that."""
    if not asked.renamed or any(map(_twice_named, _scopes(graph.model))):
        return str(graph.path)
    # Read again: a Graph leaves the bytes of large weights on disk.
    copy = onnx.load(graph.path, load_external_data=False)
    keys = iter(asked.items)
    for nodes, _ in _scopes(copy):
        for node in nodes:
            node.name = next(keys).key
    return ModelBytes(copy.SerializeToString(), mapped_data(graph))


def _twice_named(scope: tuple[Sequence[onnx.NodeProto], int | None]) -> bool:
    names = [node.name for node in scope[0] if node.name]
    return len(set(names)) < len(names)


def mapped_data(graph: Graph) -> dict[str, mmap.mmap | bytes]:
    """The model's external files, mapped, by the location the model uses."""
    files: dict[str, mmap.mmap | bytes] = {}
    for tensor in external_data(graph):
        if tensor.location not in files:
            files[tensor.location] = _mapped(tensor.path)
    return files


def _mapped(path: Path) -> mmap.mmap | bytes:
    if path.stat().st_size == 0:
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def locate(asked: Question, groups: Iterable[AssignedGroup]) -> Located:
    """Match assigned nodes to the model's: by name, by name without the suffix, then by what is lost."""
    kinds = {item.key: item.op_type for item in asked.items}
    nodes = [(group.ep_name, node) for group in groups for node in group.nodes]
    found = {node.name: ep_name for ep_name, node in nodes if kinds.get(node.name) == node.op_type}
    inserted = []
    for ep_name, node in nodes:
        key = strip_token(node.name)
        if kinds.get(node.name) == node.op_type:
            continue
        if key not in found and kinds.get(key) == node.op_type:
            found[key] = ep_name
        else:
            inserted.append((ep_name, node))
    return _with_remade(asked, found, inserted)


def _with_remade(asked: Question, found: dict[str, str], inserted: list[tuple[str, AssignedNode]]) -> Located:
    """Around a layout change onnxruntime makes Q and DQ nodes anew and names them after their type.

    A lost node is taken for such a one: where all of its type are on one EP, that EP; else the one EP of the
    nodes it belongs to; else it stays unlocated.
    """
    partners = _partners(asked)
    remade = [entry for entry in inserted if strip_token(entry[1].name) == entry[1].op_type]
    for item in (item for item in asked.items if item.key not in found):
        spare = [entry for entry in remade if entry[1].op_type == item.op_type]
        candidates = {ep_name for ep_name, _ in spare}
        if len(candidates) > 1:
            candidates &= {found[key] for key in partners.get(item.key, ()) if key in found}
        if len(candidates) == 1:
            entry = next(entry for entry in spare if entry[0] in candidates)
            found[item.key] = entry[0]
            remade.remove(entry)
            inserted.remove(entry)
    return Located(found, tuple(inserted))


def _partners(asked: Question) -> dict[str, set[str]]:
    """The nodes a node goes with: a Q goes with what it reads, a DQ with what reads it, others with both."""
    kinds = {item.key: item.op_type for item in asked.items}
    found: dict[str, set[str]] = {}
    for _, producer, consumer in edges(asked):
        if kinds[producer] != "QuantizeLinear":
            found.setdefault(producer, set()).add(consumer)
        if kinds[consumer] != "DequantizeLinear":
            found.setdefault(consumer, set()).add(producer)
    return found


def strip_token(name: str) -> str:
    """The name a node had before onnxruntime rewrote it."""
    return _TOKEN.sub("", name)


def crossings(asked: Question, ep_of: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(tensor, from EP, to EP) for every tensor that one EP makes and another reads, in graph order."""
    found: dict[tuple[str, str, str], None] = {}
    for tensor, producer, consumer in edges(asked):
        here, there = ep_of.get(producer), ep_of.get(consumer)
        if here is not None and there is not None and here != there:
            found[tensor, here, there] = None
    return list(found)


def islands(asked: Question, ep_of: Mapping[str, str], ep_name: str) -> int:
    """Connected groups of nodes on one EP."""
    root = {key: key for key, name in ep_of.items() if name == ep_name}

    def find(key: str) -> str:
        while root[key] != key:
            root[key] = key = root[root[key]]
        return key

    for _, producer, consumer in edges(asked):
        if producer in root and consumer in root:
            root[find(producer)] = find(consumer)
    return sum(key == up for key, up in root.items())


def edges(asked: Question) -> Iterator[tuple[str, str, str]]:
    """(tensor, key of its producer, key of a consumer); a subgraph also reads what its parents make."""
    made: dict[tuple[int, str], str] = {
        (item.scope, name): item.key for item in asked.items for name in item.outputs if name
    }
    for item in asked.items:
        for name in filter(None, item.inputs):
            scope: int | None = item.scope
            while scope is not None and (scope, name) not in made:
                scope = asked.parents[scope]
            if scope is not None:
                yield name, made[scope, name], item.key


def _scopes(model: onnx.ModelProto) -> list[tuple[Sequence[onnx.NodeProto], int | None]]:
    """The nodes of the main graph and of every subgraph, each with the number of its parent."""
    pending: list[tuple[onnx.GraphProto, int | None]] = [(model.graph, None)]
    for number, (graph, _) in enumerate(pending):
        for node in graph.node:
            pending.extend((subgraph, number) for subgraph in subgraphs_of(node))
    return [(graph.node, parent) for graph, parent in pending]


def _item(node: onnx.NodeProto, number: int, scope: int, renamed: bool) -> Item:
    first = next((name for name in node.output if name), "")
    return Item(
        key=f"wright_{number}_{node.op_type}" if renamed else node.name,
        label=node.name or f"{node.op_type}({first})",
        op_type=node.op_type,
        domain=node.domain,
        inputs=tuple(node.input),
        outputs=tuple(node.output),
        scope=scope,
    )
