"""The peak that a plan states."""

import json

import pytest
from onnx import TensorProto, helper

from modelwright.models import OnnxSource
from modelwright.pipeline import Recipe
from modelwright.pipeline._memory import _of_stream, _stored
from modelwright.stages.quantize import QuantizeParams


def checkpoint(path, **shapes):
    table = {name: {"dtype": "BF16", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    header = json.dumps({"__metadata__": {"format": "pt"}, **table}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)


def test_parameters_are_counted_from_the_headers_of_all_shards(tmp_path):
    checkpoint(tmp_path / "1.safetensors", a=[3, 4], b=[])
    checkpoint(tmp_path / "2.safetensors", c=[5])
    assert _stored(tmp_path, ("model.safetensors.index.json", "1.safetensors", "2.safetensors")) == 12 + 1 + 5


def test_formats_that_have_no_header_are_unknown(tmp_path):
    assert _stored(tmp_path, ("pytorch_model.bin",)) is None


def test_a_header_that_is_none_is_refused(tmp_path):
    (tmp_path / "w.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(ValueError, match="no safetensors"):
        _stored(tmp_path, ("w.safetensors",))


def large(folder, opset=17):
    """A gigabyte of weights that is a hole in a file."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[16384, 16384], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "data"), ("offset", "0"), ("length", str(1 << 30))):
        tensor.external_data.add(key=key, value=value)
    with (folder / "data").open("wb") as file:
        file.truncate(1 << 30)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 16384]) for name in "xy"]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], [tensor])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    return str(folder / "model.onnx")


def need(path, words):
    quantize = QuantizeParams(**words)
    recipe = Recipe(
        policy_version=1,
        target="cpu",
        precision=quantize.precision,
        export=None,
        optimize=None,
        quantize=quantize,
        compile=None,
    )
    return _of_stream(OnnxSource(path), recipe)


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ({"precision": "w8a8"}, True),
        ({"precision": "w8a16"}, True),
        ({"precision": "w8a8", "effort": "best"}, False),
        ({"precision": "w8a8", "method": "percentile"}, False),
        ({"precision": "dynamic"}, False),
    ],
)
def test_the_peak_of_static_quantization_is_said_where_one_weight_follows_the_other(tmp_path, words, known):
    found = need(large(tmp_path), words)
    assert (found.held_bytes is not None) is known
    if known:
        # The largest weight once, and what the tool takes; never all of them in several forms.
        assert 1 << 30 < found.held_bytes < 1.3 * (1 << 30)


def test_before_opset_13_all_weights_are_converted_in_memory(tmp_path):
    assert need(large(tmp_path, 12), {"precision": "w8a8"}).held_bytes is None
