"""In which order nodes are written."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from onnx import GraphProto, helper

from modelwright.stages.quantize._order import sort_nodes


def graph_of(*nodes: tuple[str, str, str]) -> GraphProto:
    """By name, what each reads and what it makes."""
    made = [helper.make_node("Op", reads.split(), [makes], name=name) for name, reads, makes in nodes]
    return helper.make_graph(made, "made", [], [])


def sorted_names(graph: GraphProto) -> list[str]:
    sort_nodes(graph)
    return [node.name for node in graph.node]


def test_halves_of_pairs_on_weights_stand_before_everything_that_waits_for_another_node():
    graph = graph_of(
        ("quantize", "x x_scale", "q"),
        ("dequantize", "q x_scale", "d"),
        ("weight", "w w_scale", "wd"),
        ("product", "d wd", "y"),
        ("next weight", "v v_scale", "vd"),
        ("next product", "y vd", "z"),
    )
    expected = ["quantize", "weight", "next weight", "dequantize", "product", "next product"]
    assert sorted_names(graph) == expected


def test_the_others_keep_their_order_where_their_data_lets_them():
    graph = graph_of(("c", "b", "c"), ("a", "x", "a"), ("b", "a", "b"), ("d", "a", "d"))
    assert sorted_names(graph) == ["a", "b", "c", "d"]


@given(st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_whatever_a_node_reads_is_made_before_it(count, seed):
    rng = np.random.default_rng(seed)
    reads = [rng.choice(index, min(index, 2), replace=False) if index else [] for index in range(count)]
    nodes = [(f"n{i}", " ".join(f"t{j}" for j in found), f"t{i}") for i, found in enumerate(reads)]
    graph = graph_of(*(nodes[index] for index in rng.permutation(count)))
    names = sorted_names(graph)
    assert sorted(names) == sorted(f"n{i}" for i in range(count))
    for node in graph.node:
        assert all(names.index(f"n{name[1:]}") < names.index(node.name) for name in node.input)
