"""How long `placement` of a ResNet-50-size model takes for qnn-npu, in a fresh child as `analyze` runs it.

The bare call beside it opens the session with its default options in a fresh process, nothing else; the two
are interleaved. Run it on a quiet machine: `python bench/analyze_speed.py [--runs 5] [--target qnn-npu]`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from modelwright.targets import SessionSpec, open_session, parse_target, placement
from modelwright.worker import run as run_in_child
from modelwright.worker import task

LIMIT_S = 5.0
STAGES = (3, 4, 6, 3)


class _Net:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(0)

    def add(self, op_type: str, *inputs: str, **attributes: object) -> str:
        name = f"{op_type.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], name=f"node_{name}", **attributes))
        return name

    def weight(self, *shape: int) -> str:
        name = f"weight{len(self.weights)}"
        values = 0.02 * self._rng.standard_normal(shape, dtype=np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def conv(self, source: str, before: int, after: int, size: int, stride: int = 1) -> str:
        kernel, bias = self.weight(after, before, size, size), self.weight(after)
        return self.add("Conv", source, kernel, bias, pads=[size // 2] * 4, strides=[stride] * 2)

    def bottleneck(self, source: str, before: int, width: int, stride: int) -> str:
        inner = self.add("Relu", self.conv(source, before, width, 1))
        inner = self.add("Relu", self.conv(inner, width, width, 3, stride))
        inner = self.conv(inner, width, 4 * width, 1)
        short = source if before == 4 * width else self.conv(source, before, 4 * width, 1, stride)
        return self.add("Relu", self.add("Add", inner, short))


def resnet50(path: Path) -> int:
    """25.5 million parameters in 53 convolutions; gives the number of nodes."""
    net = _Net()
    value = net.add("Relu", net.conv("x", 3, 64, 7, 2))
    value = net.add("MaxPool", value, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    channels = 64
    for stage, blocks in enumerate(STAGES):
        for block in range(blocks):
            width = 64 * 2**stage
            value = net.bottleneck(value, channels, width, 2 if stage and not block else 1)
            channels = 4 * width
    value = net.add("Flatten", net.add("GlobalAveragePool", value))
    value = net.add("Gemm", value, net.weight(channels, 1000))
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 224, 224])]
    outputs = [helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, [1, 1000])]
    graph = helper.make_graph(net.nodes, "resnet50", inputs, outputs, net.weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return len(net.nodes)


@task
def bare(model: str, target: str) -> int:
    """The session with the defaults of the catalogue, and its answer."""
    spec = SessionSpec(graph_optimization="disabled")
    with open_session(model, parse_target(target), spec) as session:
        return sum(count for _, count in session.facts.nodes_per_ep)


def run_bench(runs: int, target_name: str) -> dict[str, object]:
    target = parse_target(target_name)
    rows: dict[str, list[tuple[float, float]]] = {"placement": [], "bare session": []}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "resnet50.onnx")
        nodes = resnet50(model)
        for _ in range(runs):
            calls = {
                "placement": placement.call(str(model), target),
                "bare session": bare.call(str(model), str(target)),
            }
            for name, call in calls.items():
                started = time.perf_counter()
                result = run_in_child(call, timeout=120)
                rows[name].append((time.perf_counter() - started, result.cpu_s or 0.0))
                result.unwrap()
    wall = {name: round(statistics.median(seconds for seconds, _ in samples), 2) for name, samples in rows.items()}
    cpu = {name: round(statistics.median(seconds for _, seconds in samples), 2) for name, samples in rows.items()}
    slowest = max(seconds for seconds, _ in rows["placement"])
    return {
        "nodes": nodes,
        "target_ep": target_name,
        "runs": runs,
        "median_wall_s": wall,
        "median_cpu_s": cpu,
        "slowest_placement_s": round(slowest, 2),
        "target": f"placement < {LIMIT_S} s",
        "met": slowest < LIMIT_S,
    }


def run() -> dict[str, object]:
    return run_bench(5, "qnn-npu")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--target", default="qnn-npu")
    options = parser.parse_args()
    print(run_bench(options.runs, options.target))
