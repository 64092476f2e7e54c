"""Weights that are changed one at a time while they are written."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi._pybind_state import quantize_matmul_4bits
from onnxruntime.transformers.float16 import convert_np_to_float16

from ep.quantize.test_precisions import MODELS, parity, saved
from modelwright.data import DataSource
from modelwright.errors import InputError
from modelwright.graph import _streamed as streaming
from modelwright.graph import external_data, load
from modelwright.stages.quantize import QuantizeParams, run_quantize
from modelwright.stages.quantize._blocks import pack_symmetric
from modelwright.stages.quantize._half import _Clipping
from modelwright.targets import CALM, open_as_written, open_exact, open_lean, open_session, parse_target


def onnxruntimes_own(matrix, size):
    rows, columns = matrix.shape
    count = -(-rows // size)
    packed = np.zeros((columns, count, size // 2), np.uint8)
    scales, zeros = np.zeros((columns, count), matrix.dtype), np.zeros((columns, -(-count // 2)), np.uint8)
    whole = np.pad(matrix, ((0, count * size - rows), (0, 0)))
    quantize_matmul_4bits(packed, whole, scales, zeros, size, columns, rows, True)
    return packed, scales


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("rows", "columns", "size"), [(64, 48, 32), (50, 7, 16), (300, 1030, 32), (30, 3, 256)])
def test_blocks_are_bit_for_bit_those_of_onnxruntime(rows, columns, size, dtype):
    rng = np.random.default_rng(rows)
    matrix = (rng.standard_normal((rows, columns)) * rng.choice([1e-6, 1, 300], columns)).astype(dtype)
    matrix[:, 0] = 0
    matrix[:, 1] = np.round(matrix[:, 1] * 2) / 2  # halves: how ties are rounded
    for given in (matrix, np.ascontiguousarray(matrix.T).T):
        made, wanted = pack_symmetric(given, size), onnxruntimes_own(matrix, size)
        np.testing.assert_array_equal(made.scales, wanted[1])
        np.testing.assert_array_equal(made.packed, wanted[0])


def tied(folder, width=128, *, broken=False):
    """A table that is read by rows and, turned, as the last matrix; a product used twice; one inside an If."""
    rng = np.random.default_rng(0)
    table, matrix = (rng.standard_normal(shape, dtype=np.float32) / 11 for shape in ((320, width), (width, width)))
    if broken:
        matrix[3, 4] = np.nan
    inside = helper.make_graph(
        [helper.make_node("MatMul", ["again", "own"], ["then"], name="inner")],
        "then", [], [helper.make_tensor_value_info("then", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(table[:width].copy(), "own")],
    )  # fmt: skip
    outside = helper.make_graph(
        [helper.make_node("Identity", ["again"], ["else"], name="as_is")],
        "else", [], [helper.make_tensor_value_info("else", TensorProto.FLOAT, None)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"], name="rows"),
        helper.make_node("MatMul", ["x", "matrix"], ["once"], name="first"),
        helper.make_node("MatMul", ["once", "matrix"], ["again"], name="second"),
        helper.make_node("If", ["choice"], ["chosen"], name="if", then_branch=inside, else_branch=outside),
        helper.make_node("Transpose", ["table"], ["turned"], name="turn", perm=[1, 0]),
        helper.make_node("MatMul", ["chosen", "turned"], ["y"], name="last"),
    ]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 5])
    choice = helper.make_tensor_value_info("choice", TensorProto.BOOL, [])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5, 320])
    weights = [numpy_helper.from_array(table, "table"), numpy_helper.from_array(matrix, "matrix")]
    graph = helper.make_graph(nodes, "tied", [ids, choice], [y], weights)
    path = folder / "float.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(made, path, save_as_external_data=True, location="float.data", size_threshold=1024)
    return str(path)


def words(index):
    ids = np.random.default_rng(index).integers(0, 320, (1, 5))
    return {"ids": ids, "choice": np.array(True)}


@pytest.mark.parametrize(("word", "bound"), [("int4", 0.95), ("w4a16", 0.95), ("fp16", 0.999)])
@pytest.mark.parametrize("beside", [False, True])
def test_every_weight_is_written_once_beside_the_model_or_in_it(tmp_path, monkeypatch, word, bound, beside):
    if beside:
        monkeypatch.setattr(streaming, "INLINE_BYTES", 1000)
    work = tmp_path / "work"
    work.mkdir()
    source = tied(tmp_path)
    outcome = run_quantize(source, str(work), QuantizeParams(word), None)
    files = ["model.onnx", "model.onnx.data"] if beside else ["model.onnx"]
    assert sorted(item.name for item in work.iterdir()) == files
    onnx.checker.check_model(str(work / "model.onnx"))
    found = load(work / "model.onnx")
    assert bool(external_data(found)) == beside
    names = [tensor.name for tensor in found.model.graph.initializer]
    assert len(names) == len(set(names))
    if word != "fp16":
        assert sorted(names) == ["matrix_Q4", "matrix_scales", "table", "turned_Q4", "turned_scales"]
        inner = next(item.g for node in found.model.graph.node for item in node.attribute if item.name == "then_branch")
        assert [node.op_type for node in inner.node if node.op_type != "Cast"] == ["MatMulNBits"]
    assert outcome.measured == {"int4": "w4a32"}.get(word, word)
    assert parity(source, work / "model.onnx", words) > bound


@pytest.mark.parametrize("word", ["int4", "fp16"])
def test_a_weight_that_is_no_number_is_refused_where_it_lies(tmp_path, word):
    with pytest.raises(InputError, match="weight matrix holds NaN"):
        run_quantize(tied(tmp_path, broken=True), str(tmp_path), QuantizeParams(word), None)


def test_halves_are_bit_for_bit_those_of_the_converter():
    rng = np.random.default_rng(0)
    scales = rng.choice([1e-9, 1e-8, 3e-8, 1e-5, 1, 60000, 1e5, 1e30], (300, 40))
    values = (rng.standard_normal((300, 40)) * scales).astype(np.float32)
    values[0, :4] = 0, -0.0, np.inf, -np.inf
    made, wanted = _Clipping().half("w", values), convert_np_to_float16(values)
    np.testing.assert_array_equal(made.view(np.uint16), wanted.view(np.uint16))


def test_fp16_counts_what_it_moves_in_weights_that_stay_in_files(tmp_path):
    source, work = tied(tmp_path, 256), tmp_path / "work"
    work.mkdir()
    model = onnx.load(source)
    values = numpy_helper.to_array(model.graph.initializer[1]).copy()
    values[0, :3], values[1, :2] = 1e6, 1e-9
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(values, "matrix"))
    onnx.save(model, source)
    outcome = run_quantize(source, str(work), QuantizeParams("fp16"), None)
    assert (outcome.clipped.to_largest, outcome.clipped.to_smallest) == (3, 2)
    assert any("moved to its largest" in line for line in outcome.warnings)


def test_a_half_precision_model_answers_the_same_with_its_weights_left_in_the_file(tmp_path):
    source, work = tied(tmp_path), tmp_path / "work"
    work.mkdir()
    run_quantize(source, str(work), QuantizeParams("fp16"), None)
    answers = []
    for opened in (open_as_written, open_lean):
        with opened(work / "model.onnx") as session:
            answers.append(session.run(words(1))["y"])
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize("word", ["w8a8", "w8a16", "dynamic"])
@pytest.mark.parametrize("kind", MODELS)
def test_integer_kernels_give_the_same_numbers_from_weights_left_in_the_file(tmp_path, kind, word):
    make, feed = MODELS[kind]
    source, work = saved(make(), tmp_path), tmp_path / "work"
    work.mkdir()
    run_quantize(source, str(work), QuantizeParams(word, samples=2), DataSource())
    made = str(work / "model.onnx")
    for usual, lean in (
        (lambda: open_session(made, parse_target("cpu"), CALM), lambda: open_lean(made)),
        (lambda: open_exact(made), lambda: open_exact(made, lean=True)),
    ):
        with usual() as one, lean() as other:
            one, other = one.run(feed(1)), other.run(feed(1))
        for name, wanted in one.items():
            np.testing.assert_array_equal(other[name], wanted)
