"""Which products of a CPU build are integers: those that are faster so, by the cheapest parting of the graph."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from modelwright.stages.quantize._cut import Cut
from modelwright.stages.quantize._payoff import FloatScope, faster_in_float

OPERATORS = ("Clip", "Conv", "Gemm", "MatMul", "Relu")


def brute_force(names: str, edges: dict[tuple[str, str], float]) -> float:
    sides = (
        {Cut.SOURCE, *chosen} for count in range(len(names) + 1) for chosen in itertools.combinations(names, count)
    )
    return min(sum(cost for (tail, head), cost in edges.items() if tail in side and head not in side) for side in sides)


@pytest.mark.parametrize("seed", range(20))
def test_the_cut_is_the_cheapest_of_all(seed):
    rng, names = np.random.default_rng(seed), "abcdef"
    ends = [*itertools.permutations(names, 2), *((Cut.SOURCE, n) for n in names), *((n, Cut.SINK) for n in names)]
    edges = {pair: float(rng.integers(1, 20)) for pair in ends if rng.random() < 0.5}
    cut = Cut()
    for (tail, head), cost in edges.items():
        cut.add(tail, head, cost)
    for more in (0.0, 7.0, 0.0):
        dearer = {ends: cost + more * (ends[0] == Cut.SOURCE) for ends, cost in edges.items()}
        side, told = cut.cheapest(dict.fromkeys(names, more))
        found = sum(cost for (tail, head), cost in dearer.items() if tail in side and head not in side)
        assert found == pytest.approx(told) == pytest.approx(brute_force(names, dearer))


def chain(*layers: tuple[int, int, int, int, int], sigmoid_before: int | None = None):
    """Convolutions one after the other, (places, output channels, input channels, kernel, groups), and their sizes."""
    nodes, weights, sizes = [], [], {"x": layers[0][0] * layers[0][2]}
    for index, (places, outputs, inputs, kernel, group) in enumerate(layers):
        weight = np.zeros((outputs, inputs // group, kernel, kernel), np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{index}"))
        read, written = f"t{index - 1}" if index else "x", f"t{index}"
        if index == sigmoid_before:
            nodes.append(helper.make_node("Sigmoid", [read], ["s"], name="sigmoid"))
            sizes["s"] = sizes[read]
            read = "s"
        nodes.append(helper.make_node("Conv", [read, f"w{index}"], [written], name=f"conv{index}", group=group))
        sizes[written] = places * outputs
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", f"t{len(layers) - 1}")]
    return helper.make_graph(nodes, "chain", values[:1], values[1:], weights), sizes


def floats(*layers: tuple[int, int, int, int, int], sigmoid_before: int | None = None) -> set[str]:
    graph, sizes = chain(*layers, sigmoid_before=sigmoid_before)
    return set(faster_in_float(graph, FloatScope(OPERATORS, ()), sizes).floats)


def test_wide_convolutions_are_integers_and_those_that_read_an_image_or_write_a_few_scores_are_not():
    image, wide, scores = (1600, 16, 3, 3, 1), (1600, 64, 16, 3, 1), (1600, 18, 64, 1, 1)
    assert floats(image, wide, (1600, 64, 64, 3, 1), scores, sigmoid_before=3) == {"conv0", "conv3"}


def test_a_depthwise_convolution_between_integers_stays_with_them_where_its_channels_fill_the_lanes():
    def first(channels: int) -> set[str]:
        wide = (196, channels, channels, 1, 1)
        return floats((196, channels, channels, 5, channels), wide, wide)

    assert first(480) == set()
    assert first(8 * 61) == {"conv0"}


def test_where_nothing_pays_the_label_still_holds():
    assert len(floats((4, 8, 8, 1, 1), (4, 8, 8, 1, 1), (4, 8, 8, 1, 1))) <= 1


def test_it_is_known_where_integers_are_in_vain():
    def in_vain(*layers: tuple[int, int, int, int, int]) -> bool:
        graph, sizes = chain(*layers)
        return faster_in_float(graph, FloatScope(OPERATORS, ()), sizes).in_vain

    assert in_vain((64, 24, 24, 1, 1), (64, 24, 24, 1, 1), (64, 24, 24, 1, 1))
    assert not in_vain((1600, 64, 64, 3, 1), (1600, 64, 64, 3, 1))


def test_a_pooling_between_floats_and_integers_is_paid_for():
    """onnxruntime quantizes before it, and pools 8 bits slowly."""
    graph, sizes = chain((1600, 64, 3, 3, 1), (1600, 64, 64, 3, 1), (1600, 128, 64, 3, 1), sigmoid_before=2)
    scope = FloatScope((*OPERATORS, "MaxPool"), {"conv0"})
    assert faster_in_float(graph, scope, sizes).floats == frozenset()
    graph.node.insert(1, helper.make_node("MaxPool", ["t0"], ["p"], name="pool", kernel_shape=[3, 3]))
    graph.node[2].input[0], sizes["p"] = "p", sizes["t0"]
    assert faster_in_float(graph, scope, sizes).floats == {"conv1"}


def test_what_was_left_out_or_has_no_known_size_is_not_decided():
    graph, sizes = chain((25600, 16, 3, 3, 1), (25600, 64, 16, 3, 1))
    assert faster_in_float(graph, FloatScope(OPERATORS, {"conv0"}), sizes).floats == frozenset()
    assert faster_in_float(graph, FloatScope(OPERATORS, ()), {}).floats == frozenset()
