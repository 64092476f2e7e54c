"""The gate compares whatever a model answers: NaN, nothing, truth values, integers, words, sequences."""

import numpy as np
import onnx
import pytest
from onnx import helper

from modelwright.data import DataSource
from modelwright.stages.validate import Gate, _ways, judged_as, run_validate
from support.models import FLOAT, model, save, scalar, value, weight

INT64, BOOL, STRING = onnx.TensorProto.INT64, onnx.TensorProto.BOOL, onnx.TensorProto.STRING


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def nets(scale):
    """What they compute of x [2, 3]; `scale` is what an artifact may get wrong."""
    factor = scalar("s", scale)
    scaled = node("Mul", "x s", "h")
    words = onnx.numpy_helper.from_array(np.array(["a", "b", "c", "d"], object), "words")
    sequence = helper.make_tensor_sequence_value_info("y", FLOAT, None)
    maybe = helper.make_value_info("y", helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [2, 3])))
    return {
        "NaN": model([scaled, node("Sqrt", "h", "y")], *io(value("y", FLOAT, [2, 3])), [factor]),
        "infinity": model([scaled, node("Div", "h z", "y")], *io(value("y", FLOAT, None)), [factor, scalar("z", 0)]),
        "bool": model([scaled, node("Greater", "h z", "y")], *io(value("y", BOOL, [2, 3])), [factor, scalar("z", 0)]),
        "integers": model([scaled, node("ArgMax", "h", "y", axis=1)], *io(value("y", INT64, None)), [factor]),
        "words": model(
            [scaled, node("ArgMax", "h", "i", axis=1, keepdims=0), node("Gather", "words i", "y")],
            *io(value("y", STRING, None)),
            [factor, words],
        ),
        "sequence": model([scaled, node("SequenceConstruct", "x h", "y")], *io(sequence), [factor]),
        "optional": model([scaled, node("Optional", "h", "y")], *io(maybe), [factor]),
        "nothing": model(
            [scaled, node("Slice", "h b b", "y")],
            *io(value("y", FLOAT, None)),
            [factor, onnx.numpy_helper.from_array(np.array([0]), "b")],
        ),
    }


def io(output):
    return [value("x", FLOAT, [2, 3])], [output]


def asked(tmp_path, candidate, reference):
    paths = [str(save(net, tmp_path, name)) for name, net in (("c.onnx", candidate), ("r.onnx", reference))]
    return run_validate(*paths, str(tmp_path), Gate(precision="fp32"), DataSource())


@pytest.mark.parametrize("name", nets(1.0))
def test_the_same_answers_pass_and_others_do_not(tmp_path, name):
    same, other = nets(1.0)[name], nets(-1.0)[name]
    answer = asked(tmp_path, same, same)
    # Where nothing is finite, or nothing is given, there was nothing to compare.
    assert answer.passed is (None if name in ("infinity", "nothing") else True), answer.checks
    # Nothing is always the same nothing, whatever the model is.
    assert asked(tmp_path, other, same).passed is (None if name == "nothing" else False)


def test_a_model_without_weights_has_no_precision_and_may_lose_nothing(tmp_path):
    """Nobody can say w8a8 of it, so it is not judged by what w8a8 may lose."""
    net = model([node("Mul", "x x", "y")], *io(value("y", FLOAT, [2, 3])))
    path = str(save(net, tmp_path))
    gate = Gate(precision=judged_as("unknown"), inherited=True)
    same = run_validate(path, path, str(tmp_path), gate, DataSource())
    assert (same.passed, same.precision, same.bound) == (True, "fp32", 0.9999)


def test_weights_that_are_no_numbers_are_no_yes(tmp_path):
    """NaN equals NaN; but nothing was compared, and the answer says so."""
    net = nets(float("nan"))["NaN"]
    answer = asked(tmp_path, net, net)
    assert answer.passed is None
    assert any("nothing finite was compared: y" in check.detail for check in answer.checks)


def test_what_the_export_gives_counts_and_not_what_it_declares(tmp_path):
    """An output that is declared with fewer axes than it has, as exporters do."""
    honest, wrong = (
        model([node("Relu", "x", "y")], [value("x", FLOAT, ["n", 3])], [value("y", FLOAT, shape)])
        for shape in (["n", 3], ["n"])
    )
    assert asked(tmp_path, honest, wrong).passed is True


def test_a_large_model_is_judged_without_a_second_copy_of_its_weights(tmp_path, monkeypatch):
    weights = [weight("w", 64, 64), weight("v", 64, 64)]
    nodes = [node("MatMul", "x w", "p"), node("Tanh", "p", "q"), node("MatMul", "q v", "y")]
    good = model(nodes, [value("x", FLOAT, [2, 64])], [value("y", FLOAT, [2, 64])], weights)
    bad = model(nodes, [value("x", FLOAT, [2, 64])], [value("y", FLOAT, [2, 64])], [weights[1], weight("v", 64, 64)])
    bad.graph.initializer[0].name = "w"
    small = asked(tmp_path, good, good)
    monkeypatch.setattr("modelwright.stages.validate._ways.LARGE_BYTES", 0)
    large = asked(tmp_path, good, good)
    assert large.passed is small.passed is True
    assert large.worst_cosine == pytest.approx(small.worst_cosine, abs=1e-9)
    assert asked(tmp_path, bad, good).passed is False


def test_a_file_that_no_stage_changed_is_compared_on_few_samples(tmp_path):
    path, gate = str(save(nets(1.0)["sequence"], tmp_path)), Gate(precision="fp32")
    found = run_validate(path, path, str(tmp_path), gate, DataSource())
    assert (found.passed, found.unchanged, found.samples) == (True, True, 4)
    copy = run_validate(
        str(save(nets(1.0)["sequence"], tmp_path, "copy.onnx")), path, str(tmp_path), gate, DataSource()
    )
    assert (copy.passed, copy.unchanged, copy.samples > 4) == (True, False, True)


def test_a_file_that_no_stage_changed_and_that_is_executed_otherwise_than_written_has_not_passed(tmp_path, monkeypatch):
    """As a fusion of onnxruntime's own that is wrong would do it."""
    opened, other = _ways.open_in_place, str(save(nets(-3.0)["sequence"], tmp_path, "other.onnx"))
    monkeypatch.setattr(_ways, "open_in_place", lambda path: opened(other))
    path = str(save(nets(1.0)["sequence"], tmp_path))
    found = run_validate(path, path, str(tmp_path), Gate(precision="fp32"), DataSource())
    assert (found.passed, found.unchanged) == (False, True)


def test_a_file_that_no_stage_changed_and_that_does_not_run_has_not_passed(tmp_path):
    broken = model([node("Gather", "x i", "y")], *io(value("y", FLOAT, None)), [scalar("i", 9, "int64")])
    path = str(save(broken, tmp_path))
    found = run_validate(path, path, str(tmp_path), Gate(precision="fp32"), DataSource())
    assert (found.passed, found.unchanged) == (False, True)


def drawing(scale):
    """Dropout as in training: half of the numbers go, others each time."""
    training = onnx.numpy_helper.from_array(np.array(True), "training")
    nodes = [node("Mul", "x s", "h"), node("Dropout", "h ratio training", "y")]
    weights = [scalar("s", scale), scalar("ratio", 0.5), training]
    return model(nodes, [value("x", FLOAT, [8, 32])], [value("y", FLOAT, [8, 32])], weights)


def test_a_model_that_draws_random_numbers_is_not_called_wrong(tmp_path):
    found = asked(tmp_path, drawing(1.0001), drawing(1.0))
    assert found.passed is None
    assert any("draws random numbers" in check.detail for check in found.checks if check.passed is None)


def test_a_model_that_draws_random_numbers_and_gives_nan_is_wrong(tmp_path):
    assert asked(tmp_path, drawing(float("nan")), drawing(1.0)).passed is False


def test_whether_an_export_repeats_itself_is_asked_only_where_something_is_wrong(tmp_path, monkeypatch):
    questions = []
    answer = _ways._is_repeatable
    monkeypatch.setattr(_ways, "_is_repeatable", lambda *words: questions.append(words) or answer(*words))
    assert asked(tmp_path, nets(1.0)["integers"], nets(1.0)["integers"]).passed
    assert questions == []
    assert asked(tmp_path, nets(-1.0)["integers"], nets(1.0)["integers"]).passed is False
    assert len(questions) == 1


def test_a_wrong_artifact_of_an_export_that_cannot_draw_opens_it_once(tmp_path, monkeypatch):
    opened = []
    real = _ways.open_as_written
    monkeypatch.setattr(_ways, "open_as_written", lambda path: opened.append(path) or real(path))
    assert asked(tmp_path, nets(-1.0)["integers"], nets(1.0)["integers"]).passed is False
    assert len(opened) == 1
