"""Graphs of any size become few boxes without a cycle among them."""

import random
from graphlib import TopologicalSorter

import pytest

from modelwright.report.html._blocks import MOST_BOXES, collapse
from modelwright.targets import PlacedNode
from support.results import placed


def checked(nodes, apart=frozenset()):
    view = collapse(nodes, apart)
    inside = [place for block in view.blocks for place in block.nodes]
    assert sorted(inside) == [place for place, node in enumerate(nodes) if node.op_type != "Constant"]
    before = {place: [] for place in range(len(view.blocks))}
    for start, end in view.arrows:
        before[end].append(start)
    list(TopologicalSorter(before).static_order())
    assert len(view.blocks) <= MOST_BOXES
    return view


def test_a_small_graph_shows_every_node():
    view = checked(placed(30).graph)
    assert all(len(block.nodes) == 1 for block in view.blocks)


def test_a_large_graph_is_shown_by_the_parts_of_its_names_and_what_is_left_stays_apart():
    nodes = placed().graph
    apart = frozenset(place for place, node in enumerate(nodes) if node.ep == "CPUExecutionProvider")
    view = checked(nodes, apart)
    alone = {block.nodes[0] for block in view.blocks if len(block.nodes) == 1}
    assert apart <= alone
    assert "encoder/layer.7" in {block.scope for block in view.blocks}


def test_names_without_parts_give_pieces_of_the_order():
    nodes = [PlacedNode(f"n{place}", "Relu", "cpu", (place - 1,) if place else ()) for place in range(900)]
    assert 20 <= len(checked(nodes).blocks) <= 60


@pytest.mark.parametrize("seed", range(6))
def test_no_mixture_of_eps_and_branches_makes_a_cycle(seed):
    coins = random.Random(seed)
    nodes = [
        PlacedNode(
            coins.choice(("", "/a/", "/a/b/", "/c/d/e/")) + f"n{place}",
            coins.choice(("Conv", "Constant")),
            coins.choice(("cpu", "qnn", None)),
            tuple({coins.randrange(place) for _ in range(coins.randrange(4))}) if place else (),
        )
        for place in range(600)
    ]
    checked(nodes, frozenset(coins.sample(range(600), 200)))
