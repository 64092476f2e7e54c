"""Writing a model tensor by tensor."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from modelwright.graph import _write as writing
from modelwright.graph import load, with_weights_in_place, write_model
from support.models import model, save, value, weight


def big(dtype="float32"):
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="m")]
    return model(
        nodes, [value("x", shape=(1, 256))], [value("y", shape=(1, 128))], [weight("w", 256, 128, dtype=dtype)]
    )


def weights_of(path):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}


def test_what_is_written_reads_back_as_the_same_model(tmp_path):
    proto = big()
    path = write_model(ir.from_proto(proto), tmp_path)
    assert onnx.load(path) == proto
    onnx.checker.check_model(str(path), full_check=True)


def test_a_transposed_weight_is_written_in_the_order_of_its_shape(tmp_path):
    loaded = ir.from_proto(big())
    values = np.arange(128 * 256, dtype=np.float32).reshape(128, 256).T
    loaded.graph.initializers["w"].const_value = ir.tensor(values, name="w")
    np.testing.assert_array_equal(weights_of(write_model(loaded, tmp_path))["w"], values)


def test_weights_that_do_not_fit_go_beside_the_model(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "INLINE_BYTES", 1000)
    path = write_model(ir.from_proto(big()), tmp_path)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    np.testing.assert_array_equal(weights_of(path)["w"], numpy_helper.to_array(big().graph.initializer[0]))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_model_with_its_weights_in_place_is_the_same_model(tmp_path, dtype):
    """64 KiB and more stay in the file; the model points at them."""
    proto = (
        big(dtype)
        if dtype != "int8"
        else model(
            [onnx.helper.make_node("Identity", ["w"], ["y"], name="i")],
            [],
            [value("y", onnx.TensorProto.INT8)],
            [weight("w", 512, 512, dtype="int8")],
        )
    )
    graph = load(save(proto, tmp_path))
    pointing = with_weights_in_place(graph)
    onnx.load_external_data_for_model(pointing, str(graph.folder))
    for tensor, original in zip(pointing.graph.initializer, proto.graph.initializer, strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), numpy_helper.to_array(original))
