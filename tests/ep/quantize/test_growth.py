"""What w8a8 costs grows with the nodes: steps are counted, no time is measured."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from ep.quantize.graphs import saved
from modelwright.data import DataSource
from modelwright.stages.quantize import QuantizeParams, _ranges, run_quantize
from modelwright.targets import _reference_sessions, open_as_written
from support.models import model, value, weight

_COUNTED = ("stages/quantize/", "onnxruntime/quantization/")
_SMALL, _TIMES = 20, 4


def _net(nodes: list[onnx.NodeProto], weights: list[onnx.TensorProto]) -> onnx.ModelProto:
    return model(nodes, [value("x", shape=[4, 16])], [value("y", shape=[4, 16])], weights)


def _weight(name: str, *dims: int) -> onnx.TensorProto:
    """Small, so that a hundred of them in a row do not overflow."""
    return numpy_helper.from_array(numpy_helper.to_array(weight(name, *dims)) * np.float32(0.1), name)


def deep(count: int) -> onnx.ModelProto:
    """Products and additions one behind the other, each with weights of its own."""
    nodes, weights = [], []
    for index in range(count // 2):
        source, target = f"h{index}" if index else "x", f"h{index + 1}" if index + 1 < count // 2 else "y"
        weights += [_weight(f"w{index}", 16, 16), _weight(f"b{index}", 16)]
        nodes.append(helper.make_node("MatMul", [source, f"w{index}"], [f"m{index}"], name=f"matmul{index}"))
        nodes.append(helper.make_node("Add", [f"m{index}", f"b{index}"], [target], name=f"add{index}"))
    return _net(nodes, weights)


def shared(count: int) -> onnx.ModelProto:
    """As `deep`, with one bias for all."""
    names = ["x", *(f"h{index}" for index in range(1, count // 2)), "y"]
    nodes = [
        helper.make_node("Gemm", [source, f"w{index}", "b"], [target], name=f"gemm{index}")
        for index, (source, target) in enumerate(itertools.pairwise(names))
    ]
    return _net(nodes, [_weight("b", 16), *(_weight(f"w{index}", 16, 16) for index in range(count // 2))])


def wide(count: int) -> onnx.ModelProto:
    """One tensor that every product reads; their answers are added one by one."""
    products = range(count // 2)
    sums = ["m0", *(f"s{index}" for index in products[1:-1]), "y"]
    nodes = [helper.make_node("MatMul", ["x", f"w{index}"], [f"m{index}"], name=f"matmul{index}") for index in products]
    nodes += [
        helper.make_node("Add", [sums[index - 1], f"m{index}"], [sums[index]], name=f"add{index}")
        for index in products[1:]
    ]
    return _net(nodes, [_weight(f"w{index}", 16, 16) for index in products])


def moved(kind: str) -> Callable[[int], onnx.ModelProto]:
    """One product behind the other, with a long way of one operator between them."""

    def made(count: int) -> onnx.ModelProto:
        names = ["p", *(f"v{index}" for index in range(count))]
        ends = [helper.make_node("MatMul", ["x", "w"], ["p"], name="first")]
        way = [helper.make_node(kind, [a], [b], name=b) for a, b in itertools.pairwise(names)]
        ends.append(helper.make_node("MatMul", [names[-1], "v"], ["y"], name="second"))
        shape = value("x", shape=[16, 16]), value("y", shape=[16, 16])
        weights = [weight("w", 16, 16), weight("v", 16, 16, seed=1)]
        return model([ends[0], *way, ends[1]], [shape[0]], [shape[1]], weights)

    return made


TOPOLOGIES = {
    "deep": deep,
    "one bias": shared,
    "wide": wide,
    "transposes": moved("Transpose"),
    "tables": moved("LeakyRelu"),
}


def quantize(folder: Path, proto: onnx.ModelProto, pairs: str) -> None:
    folder.mkdir()
    (folder / "out").mkdir()
    params = QuantizeParams("w8a8", samples=1, pairs=pairs)
    run_quantize(saved(proto, folder), str(folder / "out"), params, DataSource())


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Lines of the quantizers, ours and onnxruntime's, by function."""
    lines: Counter[str] = Counter()

    def each(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if not any(place in code.co_filename.replace("\\", "/") for place in _COUNTED):
            return None
        lines[f"{Path(code.co_filename).name} {code.co_qualname}"] += event == "line"
        return each

    before = sys.gettrace()
    sys.settrace(each)
    try:
        yield lines
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("pairs", ["all", "needed"])
@pytest.mark.parametrize("topology", list(TOPOLOGIES))
def test_no_function_does_more_than_its_share_for_more_nodes(tmp_path, topology, pairs):
    quantize(tmp_path / "warm", TOPOLOGIES[topology](8), pairs)
    found = []
    for count in (_SMALL, _SMALL * _TIMES):
        with counted() as lines:
            quantize(tmp_path / str(count), TOPOLOGIES[topology](count), pairs)
        found.append(lines)
    small, large = found
    assert {name: (small[name], large[name]) for name in large if large[name] > 1.4 * _TIMES * small[name] + 100} == {}


@pytest.mark.parametrize("kind", ["LeakyRelu", "Relu", "Transpose"])
def test_a_way_longer_than_the_stack_of_python_is_walked(tmp_path, kind):
    quantize(tmp_path / "long", moved(kind)(sys.getrecursionlimit() + 100), "needed")


def ready_steps(graph: onnx.GraphProto) -> int:
    """What onnxruntime's sorting goes through: every node that becomes ready is held beside all that are ready."""
    makers = {name: place for place, node in enumerate(graph.node) for name in node.output}
    needs = [{makers[name] for name in node.input if name in makers} for node in graph.node]
    readers: list[list[int]] = [[] for _ in needs]
    for place, found in enumerate(needs):
        for maker in found:
            readers[maker].append(place)
    missing = [len(found) for found in needs]
    ready, steps = sorted(place for place, count in enumerate(missing) if not count), 0
    while ready:
        for reader in readers[ready.pop(0)]:
            missing[reader] -= 1
            if not missing[reader]:
                steps += len(ready)
                ready = sorted([*ready, reader])
    return steps


def test_what_looks_at_tensors_does_not_wait_in_line_until_the_end(tmp_path, monkeypatch):
    steps = []
    opened = _ranges.open_session

    def look(path: Path) -> Any:
        steps.append(ready_steps(onnx.load(path, load_external_data=False).graph))
        return opened(path)

    monkeypatch.setattr(_ranges, "open_session", look)
    for count in (_SMALL, _SMALL * _TIMES):
        quantize(tmp_path / str(count), deep(count), "all")
    assert len(steps) == 2
    assert steps[1] <= 1.1 * _TIMES * steps[0]


def test_nodes_are_sorted_for_memory_only_where_there_is_some_to_save(tmp_path, monkeypatch):
    """That order costs the most steps, and a small model has nothing to gain by it; the answers are the same."""
    quantize(tmp_path / "made", deep(_SMALL), "all")
    written = tmp_path / "made" / "out" / "model.onnx"
    sorted_nodes: list[int] = []

    def seen(nodes: Any, stored: Any) -> Any:
        sorted_nodes.append(len(nodes))
        return theirs(nodes, stored)

    theirs = _reference_sessions.late
    monkeypatch.setattr(_reference_sessions, "late", seen)
    answers = []
    for worth in (_reference_sessions._WORTH_SORTING_BYTES, 0):
        monkeypatch.setattr(_reference_sessions, "_WORTH_SORTING_BYTES", worth)
        with open_as_written(written) as session:
            answers.append(session.run({"x": np.ones((4, 16), np.float32)})["y"].tobytes())
    assert sorted_nodes == [len(onnx.load(written).graph.node)]
    assert answers[0] == answers[1]
