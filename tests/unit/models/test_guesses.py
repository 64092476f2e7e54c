"""What a graph that says little about its inputs might take."""

import itertools

import onnx
import pytest
from onnx import TensorProto, helper

from modelwright.data import generate
from modelwright.errors import InputError
from modelwright.graph import load
from modelwright.models import guesses
from modelwright.vocabulary import Fill


def write(tmp_path, text):
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}'), path)
    return load(path)


def fills(graph, name):
    return [next(spec.fill for spec in specs if spec.name == name) for specs in guesses(graph)]


def test_what_the_graph_tells_is_guessed_first_and_alone(tmp_path):
    graph = write(tmp_path, "(float[2] x) => (float[2] y) { y = Relu(x) }")
    assert fills(graph, "x")[0] == Fill("normal")


def test_integers_of_an_unknown_range_are_first_numbers_that_nothing_is_divided_by_zero_with(tmp_path):
    graph = write(tmp_path, "(int32[2] x, int32[2] z) => (int32[2] y) { y = Div(x, z) }")
    first = next(iter(guesses(graph)))
    assert all((generate(first, index=index)["z"] > 0).all() for index in range(20))


def test_a_list_of_integers_may_be_the_shape_of_an_output(tmp_path):
    graph = write(tmp_path, "(float[2,3] x, int64[3] s) => (float[3,1,2] y) { y = Reshape(x, s) }")
    assert Fill("given", values=(3, 1, 2)) in fills(graph, "s")
    made = next(generate(specs) for specs in guesses(graph) if specs[1].fill.kind == "given")
    assert made["s"].tolist() == [3, 1, 2]


def test_two_inputs_may_need_different_things(tmp_path):
    text = "(float[4] x, int64[1] starts, int64[1] axes) => (float[n] y) { y = Slice(x, starts, axes) }"
    pairs = {(specs[1].fill, specs[2].fill) for specs in guesses(write(tmp_path, text))}
    assert (Fill("zeros"), Fill("ones")) in pairs


def test_guesses_end_and_none_comes_twice(tmp_path):
    names = [f"i{index}" for index in range(12)]
    value = helper.make_tensor_value_info
    made = helper.make_graph(
        [helper.make_node("Sum", names, ["y"])],
        "g",
        [value(name, TensorProto.INT64, [2]) for name in names],
        [value("y", TensorProto.INT64, [2])],
    )
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "model.onnx")
    found = list(itertools.islice(guesses(load(tmp_path / "model.onnx")), 1000))
    assert len(found) == len(set(found)) < 1000


def test_an_input_without_a_shape_is_no_guess(tmp_path):
    graph = write(tmp_path, "(seq(float[2]) x) => (float[n, 2] y) { y = ConcatFromSequence<axis=0>(x) }")
    with pytest.raises(InputError, match="shape"):
        next(iter(guesses(graph)))
