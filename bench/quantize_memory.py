"""Static int8 of a BERT-base-size model: our stage beside bare `quantize_static`, in CPU seconds and peak memory.

Both run as children, taking turns, on the same work: the same 32 samples and operators, min and max, signed weights
per channel, unsigned activations. `python bench/quantize_memory.py` prints the ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SAMPLES = 32
TURNS = 2
LIMITS = {"peak_memory": 0.6, "cpu_seconds": 1.15}

OURS = """
import resource, sys, time
from modelwright.data import DataSource
from modelwright.stages.quantize import QuantizeParams, run_quantize
run_quantize(sys.argv[1], sys.argv[2], QuantizeParams("w8a8", samples=int(sys.argv[3])), DataSource())
"""

BARE = """
import logging, resource, sys, time
import onnxruntime.quantization as q
from modelwright.graph import load
from modelwright.data import generate
from modelwright.models import specs_from_graph
logging.disable(logging.CRITICAL)
class Reader(q.CalibrationDataReader):
    def __init__(self, specs, count):
        self.drawn = (generate(specs, 0, index) for index in range(count))
    def get_next(self):
        return next(self.drawn, None)
reader = Reader(specs_from_graph(load(sys.argv[1])), int(sys.argv[3]))
q.quantize_static(sys.argv[1], sys.argv[2] + "/model.onnx", reader, per_channel=True,
                  op_types_to_quantize=["Gather", "Gemm", "MatMul", "Reshape", "Transpose", "Unsqueeze"],
                  activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8)
"""

REPORT = """
usage = resource.getrusage(resource.RUSAGE_SELF)
print("MEASURED", usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
"""


def run(turns: int = TURNS, samples: int = SAMPLES, layers: int = 12) -> dict:
    """Measure both, interleaved; the ratios are ours divided by bare."""
    measured: dict[str, list[tuple[float, float]]] = {"ours": [], "bare": []}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "bert.onnx"
        subprocess.run([sys.executable, __file__, "--write", str(model), "--layers", str(layers)], check=True)
        for _ in range(turns):
            for arm, code in (("bare", BARE), ("ours", OURS)):
                measured[arm].append(_child(code, model, samples))
        size = model.stat().st_size
    middle = {arm: [statistics.median(column) for column in zip(*rows, strict=True)] for arm, rows in measured.items()}
    ratios = {
        "cpu_seconds": middle["ours"][0] / middle["bare"][0],
        "peak_memory": middle["ours"][1] / middle["bare"][1],
    }
    return {
        "model_mb": size / 2**20,
        "samples": samples,
        "turns": turns,
        "cpu_seconds": {arm: values[0] for arm, values in middle.items()},
        "peak_mb": {arm: values[1] for arm, values in middle.items()},
        "ratios": ratios,
        "limits": LIMITS,
        "met": all(ratios[name] <= limit for name, limit in LIMITS.items()),
        "raw": measured,
    }


def _child(code: str, model: Path, samples: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(dir=model.parent) as work:
        done = subprocess.run(
            [sys.executable, "-c", code + REPORT, str(model), work, str(samples)],
            capture_output=True,
            text=True,
            check=True,
        )
    words = done.stdout.split("MEASURED")[1].split()
    return float(words[0]), float(words[1])


def write_bert(path: Path, layers: int, hidden: int = 768, heads: int = 12, seq: int = 128) -> None:
    """BERT-base by shape, with seeded random weights: 109 million parameters at 12 layers."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def constant(name: str, value: object) -> str:
        weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(name: str, *shape: int) -> str:
        return constant(name, rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02))

    def node(op: str, *inputs: str, **attributes: object) -> str:
        name = f"{op}_{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def linear(x: str, name: str, inputs: int, outputs: int) -> str:
        return node("Add", node("MatMul", x, weight(f"{name}.w", inputs, outputs)), weight(f"{name}.b", outputs))

    def norm(x: str, name: str) -> str:
        gamma = constant(f"{name}.g", np.ones(hidden, np.float32))
        return node("LayerNormalization", x, gamma, weight(f"{name}.b", hidden), axis=-1)

    def heads_of(x: str, perm: list[int]) -> str:
        return node("Transpose", node("Reshape", x, split), perm=perm)

    split = constant("split", np.array([1, seq, heads, hidden // heads], np.int64))
    whole = constant("whole", np.array([1, seq, hidden], np.int64))
    axes, first = constant("axes", np.array([1, 2], np.int64)), constant("first", np.int64(0))
    one, half, low = (constant(n, np.float32(v)) for n, v in (("one", 1), ("half", 0.5), ("low", -10000)))
    root, scale = constant("root", np.float32(2**0.5)), constant("scale", np.float32((hidden / heads) ** -0.5))
    mask = node("Cast", node("Unsqueeze", "attention_mask", axes), to=TensorProto.FLOAT)
    mask = node("Mul", node("Sub", one, mask), low)
    x = node("Add", node("Gather", weight("words", 30522, hidden), "input_ids"), weight("positions", seq, hidden))
    x = norm(node("Add", x, node("Gather", weight("types", 2, hidden), "token_type_ids")), "embedded")
    for layer in range(layers):
        q, k, v = (linear(x, f"{layer}.{part}", hidden, hidden) for part in "qkv")
        scores = node("MatMul", heads_of(q, [0, 2, 1, 3]), heads_of(k, [0, 2, 3, 1]))
        scores = node("Softmax", node("Add", node("Mul", scores, scale), mask), axis=-1)
        mixed = node("Transpose", node("MatMul", scores, heads_of(v, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        mixed = linear(node("Reshape", mixed, whole), f"{layer}.o", hidden, hidden)
        x = norm(node("Add", mixed, x), f"{layer}.n1")
        up = linear(x, f"{layer}.up", hidden, 4 * hidden)
        gelu = node("Mul", node("Mul", up, node("Add", node("Erf", node("Div", up, root)), one)), half)
        x = norm(node("Add", linear(gelu, f"{layer}.down", 4 * hidden, hidden), x), f"{layer}.n2")
    pooled = node("Tanh", linear(node("Gather", x, first, axis=1), "pool", hidden, hidden))
    nodes.append(helper.make_node("Identity", [linear(pooled, "head", hidden, 2)], ["logits"], name="logits"))
    spec = helper.make_tensor_value_info
    inputs = [spec(n, TensorProto.INT64, [1, seq]) for n in ("input_ids", "attention_mask", "token_type_ids")]
    graph = helper.make_graph(nodes, "bert", inputs, [spec("logits", TensorProto.FLOAT, [1, 2])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    options = parser.parse_args()
    if options.write:
        write_bert(options.write, options.layers)
        return 0
    result = run(options.turns, options.samples, options.layers)
    print(json.dumps(result, indent=2))
    return 0 if result["met"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
