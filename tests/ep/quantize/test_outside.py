"""Static quantization of weights that stay in their file: the same bytes as from memory."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from ep.quantize.graphs import conv_net, image, tokens, transformer
from ep.quantize.test_streamed import tied, words
from modelwright.data import DataSource
from modelwright.graph import _streamed
from modelwright.stages.quantize import QuantizeParams, _bias, _neighbours, _static, _weights, run_quantize
from modelwright.vocabulary import Data
from support.models import model, value, weight


def written(folder: Path, proto: onnx.ModelProto) -> str:
    path = folder / "float.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="float.data", size_threshold=1024)
    return str(path)


def large_biases() -> onnx.ModelProto:
    """A bias of two products, a weight that is turned, an added matrix; each of several pages."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["p"], name="first", transB=1),
        helper.make_node("Gemm", ["x", "v", "b"], ["q"], name="second", transB=1),
        helper.make_node("Add", ["p", "q"], ["r"], name="join"),
        helper.make_node("Transpose", ["w"], ["turned"], name="turn", perm=[1, 0]),
        helper.make_node("Transpose", ["turned"], ["back"], name="turn_back"),
        helper.make_node("MatMul", ["r", "back"], ["s"], name="third"),
        helper.make_node("Add", ["s", "m"], ["y"], name="matrix"),
    ]
    sizes = {"w": (1100, 40), "v": (1100, 40), "b": (1100,), "m": (30, 40)}
    weights = [weight(name, *size, seed=seed) for seed, (name, size) in enumerate(sizes.items())]
    return model(nodes, [value("x", shape=[30, 40])], [value("y", shape=[30, 40])], weights)


def rows(index: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(index).standard_normal((30, 40), dtype=np.float32)}


MODELS = {
    "conv": (lambda folder: written(folder, conv_net()), image),
    "transformer": (lambda folder: written(folder, transformer()), tokens),
    "biases": (lambda folder: written(folder, large_biases()), rows),
    "tied": (tied, words),
}


def quantized(source: str, work: Path, params: QuantizeParams, data: Path) -> bytes:
    work.mkdir()
    run_quantize(source, str(work), params, DataSource(Data(str(data))))
    assert [item.name for item in work.iterdir()] == ["model.onnx"]
    return (work / "model.onnx").read_bytes()


PARAMS = {
    "all": QuantizeParams("w8a8", samples=2),
    "needed": QuantizeParams("w8a8", samples=2, pairs="needed"),
    "tensor": QuantizeParams("w8a8", samples=2, per_channel=False, reduce_range=False),
    "half": QuantizeParams("w8a8+fp16", samples=2),
}
CASES = [
    *((kind, "all") for kind in MODELS),
    ("tied", "needed"),
    ("biases", "needed"),
    ("biases", "tensor"),
    ("transformer", "half"),
]


@pytest.mark.parametrize(("kind", "how"), CASES)
def test_the_same_bytes_as_from_memory(tmp_path, monkeypatch, kind, how):
    (make, feed), params = MODELS[kind], PARAMS[how]
    source, data = make(tmp_path), tmp_path / "data"
    data.mkdir()
    for index in range(2):
        np.savez(data / f"{index}.npz", **feed(index))
    with monkeypatch.context() as patched:
        patched.setattr(_weights, "KEPT", math.inf)
        patched.setattr(_static._outside, "outside", lambda _: contextlib.nullcontext())
        plain = quantized(source, tmp_path / "plain", params, data)
    monkeypatch.setattr(_weights, "KEPT", 0)
    # Some rows at a time; parts of a sum are added up in another order, so what is summed stays together.
    monkeypatch.setattr(_streamed, "_PIECE", 600)
    monkeypatch.setattr(_neighbours, "_PIECE", 300)
    assert quantized(source, tmp_path / "outside", params, data) == plain


def test_biases_are_the_same_whether_they_are_corrected_in_parts_or_not(tmp_path, monkeypatch):
    source, data = written(tmp_path, large_biases()), tmp_path / "data"
    data.mkdir()
    np.savez(data / "0.npz", **rows(0))
    found = []
    for size in (1 << 22, 700):
        monkeypatch.setattr(_bias, "_PIECE", size)
        quantized(source, tmp_path / str(size), QuantizeParams("w8a8", samples=1), data)
        stored = onnx.load(tmp_path / str(size) / "model.onnx").graph.initializer
        found.append({item.name: numpy_helper.to_array(item).astype(np.float64) for item in stored})
    assert found[0].keys() == found[1].keys()
    for name, values in found[0].items():
        np.testing.assert_allclose(found[1][name], values, rtol=1e-6, atol=1, err_msg=name)
