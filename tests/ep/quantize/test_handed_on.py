"""An output that is an input of the model stays what it is."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from ep.quantize.graphs import saved
from modelwright.data import DataSource
from modelwright.stages.quantize import QuantizeParams, run_quantize
from modelwright.vocabulary import Data
from support.models import model, value, weight


@pytest.mark.parametrize("precision", ["fp16", "w8a8", "dynamic"])
def test_it_is_handed_on_untouched_beside_what_is_quantized(tmp_path, precision):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], name="product"), helper.make_node("Relu", ["m"], ["y"])]
    x, y = value("x", shape=[4, 16]), value("y", shape=[4, 16])
    path = saved(model(nodes, [x], [x, y], [weight("w", 16, 16)]), tmp_path)
    (tmp_path / "out").mkdir()
    run_quantize(path, str(tmp_path / "out"), QuantizeParams(precision=precision), DataSource(Data(seed=1)))
    onnx.checker.check_model(str(tmp_path / "out/model.onnx"))
    session = ort.InferenceSession(tmp_path / "out/model.onnx", providers=["CPUExecutionProvider"])
    sample = np.random.default_rng(0).standard_normal((4, 16), dtype=np.float32)
    assert [output.name for output in session.get_outputs()] == ["x", "y"]
    np.testing.assert_array_equal(session.run(["x"], {"x": sample})[0], sample)
