"""Evaluations of models whose inputs and outputs are no plain numbers: sequences, maps, texts."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from ep.eval.graphs import CLASSES, FEATURES, WEIGHTS, samples
from modelwright.errors import InputError
from modelwright.evaluation import EvalOptions, evaluate
from modelwright.judge import VerdictKind
from modelwright.vocabulary import Data
from support.models import FLOAT, model, save, value

LEARNED = {"": 17, "ai.onnx.ml": 2}
WORDS = ["cat", "dog", "owl"]


def compared(candidate, reference, data, **options):
    return evaluate(candidate, reference, Data(str(data)), None, EvalOptions(outputs=True, **options))


def scores(*more):
    """`y = x · w`, and what is made of it."""
    return [helper.make_node("MatMul", ["x", "w"], ["y"]), *more]


def written(folder, name, nodes, outputs, weights=WEIGHTS, inputs=None):
    rows = inputs or [value("x", FLOAT, ["batch", FEATURES])]
    stored = [numpy_helper.from_array(weights.astype(np.float32), "w")]
    return save(model(nodes, rows, outputs, stored, opsets=LEARNED), folder, name)


def mapped(folder, name, weights=WEIGHTS):
    """As scikit-learn's converter writes a classifier: for each row a map from class to score."""
    node = helper.make_node("ZipMap", ["y"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=list(range(CLASSES)))
    kind = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(FLOAT, []))
    out = helper.make_value_info("maps", helper.make_sequence_type_proto(kind))
    return written(folder, name, scores(node), [out], weights)


def in_sequence(folder, name, parts=1, axis=1):
    node = helper.make_node("SplitToSequence", ["y", "cut"], ["parts"], axis=axis)
    cut = helper.make_node("Constant", [], ["cut"], value_int=parts)
    out = helper.make_tensor_sequence_value_info("parts", FLOAT, None)
    return written(folder, name, [cut, *scores(node)], [out])


def naming(folder, name, words=WORDS):
    """The class of a row as a word."""
    nodes = scores(
        helper.make_node("ArgMax", ["y"], ["best"], axis=1, keepdims=0),
        helper.make_node("Mod", ["best", "three"], ["place"]),
        helper.make_node(
            "LabelEncoder", ["place"], ["word"], domain="ai.onnx.ml", keys_int64s=[0, 1, 2], values_strings=words
        ),
    )
    three = helper.make_node("Constant", [], ["three"], value_int=3)
    return written(folder, name, [three, *nodes], [value("word", TensorProto.STRING, ["batch"])])


def reading(folder, name="reading.onnx", given="word"):
    """A word's row of a table."""
    nodes = [
        helper.make_node(
            "LabelEncoder", [given], ["place"], domain="ai.onnx.ml", keys_strings=WORDS, values_int64s=[0, 1, 2]
        ),
        helper.make_node("Gather", ["w", "place"], ["y"]),
    ]
    words = [value(given, TensorProto.STRING, ["batch"])]
    return written(folder, name, nodes, [value("y", FLOAT, ["batch", CLASSES])], inputs=words)


def test_a_map_is_compared_class_by_class_and_row_by_row(tmp_path):
    reference, data = mapped(tmp_path, "ref.onnx"), samples(tmp_path, 40)
    found = compared(mapped(tmp_path, "half.onnx", 0.5 * WEIGHTS), reference, data)
    assert [output.output for output in found.outputs] == [f"maps[{place}]" for place in range(CLASSES)]
    whole = np.abs(np.load(data)["x"] @ WEIGHTS).max(axis=0)
    assert [output.scores.samples for output in found.outputs] == [40] * CLASSES
    assert [output.scores.max_abs.worst for output in found.outputs] == pytest.approx(whole / 2, rel=1e-4)


def test_a_map_of_other_numbers_fails_though_one_number_is_parallel_to_any_other(tmp_path):
    x = np.abs(np.random.default_rng(0).standard_normal((40, FEATURES))).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x)
    other = np.abs(WEIGHTS) * np.linspace(0, 2, FEATURES)[:, None] ** 4
    both = mapped(tmp_path, "other.onnx", other), mapped(tmp_path, "ref.onnx", np.abs(WEIGHTS))
    found = compared(*both, tmp_path / "d.npz", min_cosine=0.999)
    assert found.outputs[0].scores.cosine.worst == pytest.approx(1)
    assert found.verdict is VerdictKind.FAIL
    assert "output maps[0]: cosine over all samples" in found.reasons[0]


def test_a_sequence_output_is_compared_part_by_part(tmp_path):
    data = samples(tmp_path, 20)
    found = compared(in_sequence(tmp_path, "a.onnx"), in_sequence(tmp_path, "b.onnx"), data, min_cosine=0.99)
    assert found.verdict is VerdictKind.PASS
    names = ["parts.length", *(f"parts[{place}]" for place in range(CLASSES))]
    assert [output.output for output in found.outputs] == names
    assert {output.scores.identical for output in found.outputs} == {20}


def test_a_sequence_of_another_length_fails(tmp_path):
    data = samples(tmp_path, 20)
    found = compared(in_sequence(tmp_path, "a.onnx", 2), in_sequence(tmp_path, "b.onnx"), data)
    assert found.verdict is VerdictKind.FAIL
    assert "output parts[4]: the candidate has no such output" in found.reasons


def test_texts_are_compared_by_equality(tmp_path):
    reference, data = naming(tmp_path, "ref.onnx"), samples(tmp_path, 40)
    assert compared(reference, reference, data, min_cosine=0.99).verdict is VerdictKind.PASS
    found = compared(naming(tmp_path, "fish.onnx", ["cat", "dog", "fish"]), reference, data, min_cosine=0.99)
    assert found.verdict is VerdictKind.FAIL
    assert 0 < found.outputs[0].scores.identical < 40
    assert "texts differ: 'owl' and 'fish'" in found.reasons[0]


@pytest.mark.parametrize("given", ["word", "text"])
def test_a_model_that_takes_texts_is_fed_texts(tmp_path, given):
    np.savez(tmp_path / "words.npz", **{given: np.array(WORDS * 7)})
    reader = reading(tmp_path, given=given)
    found = compared(reader, reader, tmp_path / "words.npz", min_cosine=0.99)
    assert found.verdict is VerdictKind.PASS
    np.savez(tmp_path / "others.npz", **{given: np.array(WORDS[:1] * 21)})
    assert compared(reader, reader, tmp_path / "others.npz").data.digest != found.data.digest


def test_numbers_for_a_model_that_takes_texts_are_refused(tmp_path):
    np.savez(tmp_path / "numbers.npz", word=np.arange(5))
    reader = reading(tmp_path)
    with pytest.raises(InputError, match="the model takes texts"):
        compared(reader, reader, tmp_path / "numbers.npz")


def test_what_holds_is_no_reason_for_a_failure(tmp_path):
    outputs = [value(name, FLOAT, ["batch", CLASSES]) for name in ("y", "z")]
    zero = helper.make_node("Constant", [], ["c"], value_float=0.0)
    nodes = {op: [zero, *scores(helper.make_node(op, ["y", "c"], ["z"]))] for op in ("Add", "Max")}
    candidate = written(tmp_path, "max.onnx", nodes["Max"], outputs)
    reference = written(tmp_path, "add.onnx", nodes["Add"], outputs)
    found = compared(candidate, reference, samples(tmp_path, 20), min_cosine=0.999)
    assert found.verdict is VerdictKind.FAIL
    assert [reason.split(":")[0] for reason in found.reasons] == ["output z"]
