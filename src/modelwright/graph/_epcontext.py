"""Nodes that hold a model compiled for one accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright.graph._external import inside_folder
from modelwright.graph._load import Graph

if TYPE_CHECKING:
    import onnx

EP_CONTEXT = "EPContext"


@dataclass(frozen=True)
class EpContextNode:
    """One compiled partition. `cache_present` is None when the blob is embedded or another node's."""

    name: str
    source: str | None
    partition: str | None
    sdk_version: str | None
    hardware: str | None
    main_context: bool
    embedded: bool
    cache_file: str | None
    cache_present: bool | None


def ep_context_nodes(graph: Graph) -> tuple[EpContextNode, ...]:
    """In file order. A cache file outside the model's folder is refused, like external data."""
    return tuple(_node(graph, node) for body in graph.bodies for node in body.nodes if node.op_type == EP_CONTEXT)


def _node(graph: Graph, node: onnx.NodeProto) -> EpContextNode:
    attributes = {attribute.name: attribute for attribute in node.attribute}

    def text(name: str) -> str | None:
        return attributes[name].s.decode(errors="replace") or None if name in attributes else None

    def flag(name: str) -> bool:
        return bool(attributes[name].i) if name in attributes else True

    embedded, main = flag("embed_mode"), flag("main_context")
    cache = None
    # With embed_mode the same attribute is the blob itself.
    if not embedded and main and (location := text("ep_cache_context")):
        cache = inside_folder(graph, location, f"compiled context of node '{node.name}'")
    return EpContextNode(
        name=node.name,
        source=text("source"),
        partition=text("partition_name"),
        sdk_version=text("ep_sdk_version"),
        hardware=text("hardware_architecture"),
        main_context=main,
        embedded=embedded,
        cache_file=cache,
        cache_present=None if cache is None else (graph.folder / cache).is_file(),
    )
