"""`diagnose` names a planted fault first, and its cure holds; a healthy model is left in peace. `bench/diagnose.py` has
all of them."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import modelwright as mw
from modelwright import diagnosis
from modelwright.errors import InputError, UsageError
from support.models import conv_net, model, save, value


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    return save(conv_net(), tmp_path_factory.mktemp("net"))


def inputs_of(path):
    return onnx.load(path).graph.input[0]


def test_a_healthy_model_is_left_in_peace(net):
    found = mw.diagnose(net)
    assert found.causes == ()
    assert found.healthy is True
    assert {look.what for look in found.looked_at} >= {"the file", "placement", "one run", "weights"}


def test_data_with_its_axes_in_another_order_is_turned_and_then_runs(net, tmp_path):
    first = inputs_of(net)
    sizes = [dim.dim_value or 4 for dim in first.type.tensor_type.shape.dim][1:]
    np.savez(tmp_path / "d.npz", **{first.name: np.zeros((2, *sizes[1:], sizes[0]), np.float32)})
    found = mw.diagnose(net, data=str(tmp_path / "d.npz"))
    assert [cause.rule for cause in found.causes] == ["wrong-layout"]
    assert found.causes[0].cured


def test_two_nodes_of_one_name_are_no_good_placement_and_get_names_of_their_own(net, tmp_path):
    """onnxruntime refuses such a file; a copy with other names, as placements are asked with, would open."""
    proto = onnx.load(net)
    for node in proto.graph.node:
        node.name = "same"
    found = mw.diagnose(save(proto, tmp_path))
    assert [(cause.rule, cause.cured) for cause in found.causes] == [("graph-flaw", True)]
    assert found.causes[0].sentence == "two nodes are called same, and onnxruntime takes a name only once"
    assert mw.analyze(tmp_path / "model.onnx", "cpu").supported is False


def test_a_weight_that_is_no_number_is_named(net, tmp_path):
    proto = onnx.load(net)
    stored = proto.graph.initializer[0]
    array = numpy_helper.to_array(stored).copy()
    array.flat[0] = np.nan
    stored.CopyFrom(numpy_helper.from_array(array, stored.name))
    found = mw.diagnose(save(proto, tmp_path))
    assert found.causes[0].rule == "weight-not-finite"
    assert stored.name in found.causes[0].sentence
    assert found.healthy is False


def masked(filler, tail="Softmax"):
    """Half of the scores are masked away."""
    nodes = [
        helper.make_node("Where", ["inside", "x", "filler"], ["kept"], name="mask"),
        helper.make_node(tail, ["kept"], ["y"], name="tail"),
    ]
    stored = [
        numpy_helper.from_array(np.arange(8) < 4, "inside"),
        numpy_helper.from_array(np.array(filler, np.float32), "filler"),
    ]
    return model(nodes, [value("x", shape=[1, 8])], [value("y", shape=[1, 8])], stored, opsets={"": 17})


def test_a_mask_of_infinities_is_no_broken_weight(tmp_path):
    found = mw.diagnose(save(masked(-np.inf), tmp_path / "whole"))
    assert found.healthy is True
    broken = [0.5] * 7 + [-np.inf]
    assert mw.diagnose(save(masked(broken), tmp_path / "broken")).causes[0].rule == "weight-not-finite"


def test_no_numbers_from_made_up_inputs_are_no_finding(tmp_path):
    """The logarithm of a negative number: whether real inputs are negative is not known."""
    found = mw.diagnose(save(masked(1.0, "Log"), tmp_path))
    assert not found.causes
    assert found.healthy is None
    assert "made-up" in found.undecided[0]


def no_kernel(length=6):
    """Casts and a bfloat16 Erf between operators that are innocent."""
    nodes = [helper.make_node("Relu", ["x"], ["t0"], name="first")]
    nodes += [helper.make_node("Neg", [f"t{place}"], [f"t{place + 1}"], name=f"neg{place}") for place in range(length)]
    nodes += [
        helper.make_node("Cast", [f"t{length}"], ["h"], name="half", to=TensorProto.BFLOAT16),
        helper.make_node("Erf", ["h"], ["e"], name="erf"),
        helper.make_node("Cast", ["e"], ["y"], name="back", to=TensorProto.FLOAT),
    ]
    return model(nodes, [value("x", shape=[1, 8])], [value("y", shape=[1, 8])], opsets={"": 17})


def test_what_fails_is_cut_to_the_smallest_model_and_a_bug_report(tmp_path):
    path = save(no_kernel(), tmp_path / "secret folder")
    found = mw.diagnose(path, bug_report=tmp_path / "bug")
    assert found.causes[0].rule == "kernel-missing"
    assert found.smallest is not None
    assert found.smallest.operators == ("Cast half", "Erf erf")  # nothing can be made up for a bfloat16 input
    assert found.smallest.minimal
    assert mw.diagnose(found.smallest.path).causes[0].rule == "kernel-missing"
    report = (tmp_path / "bug" / "report.md").read_text("utf-8")
    assert "wright diagnose --target cpu smallest.onnx" in report
    assert found.smallest.digest in report
    assert re.search(r"onnxruntime \d", report)
    assert "secret" not in report.replace(path.name, "")
    with pytest.raises(UsageError, match="exists"):
        mw.diagnose(path, reduce=tmp_path / "bug" / "smallest.onnx")


def test_an_ep_that_is_not_there_is_said_with_one_that_runs_it(net):
    found = mw.diagnose(net, "dml-gpu")
    assert found.causes[0].rule == "ep-missing"
    assert found.causes[0].cures[0].held
    assert mw.read(found.record_id).payload == found


def test_a_weights_file_that_is_cut_short_is_named_as_that(net, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(onnx.load(net), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    whole = (tmp_path / "w.bin").read_bytes()
    (tmp_path / "w.bin").write_bytes(whole[: len(whole) // 2])
    assert [cause.rule for cause in mw.diagnose(path).causes] == ["external-data"]


def test_something_else_under_the_name_of_a_model_is_no_contradiction_of_a_graph(tmp_path):
    (tmp_path / "model.onnx").write_text("<html>not found</html>")
    assert [cause.rule for cause in mw.diagnose(tmp_path / "model.onnx").causes] == ["file-damaged"]


def test_a_fusion_that_nothing_here_can_undo_is_still_named_as_one(tmp_path):
    nodes = [helper.make_node("BiasGelu", ["x", "b"], ["y"], name="gelu", domain="com.microsoft")]
    stored = [numpy_helper.from_array(np.ones(8, np.float32), "b")]
    ends = [value("x", shape=[1, 8])], [value("y", shape=[1, 8])]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", *ends, stored),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
        ir_version=9,
    )
    found = mw.diagnose(save(proto, tmp_path), "qnn-npu").causes[0]
    assert found.rule == "fused-operators"
    assert "as it was exported" in found.remedy


def test_a_level_that_does_not_exist_is_refused_and_no_cause(net):
    with pytest.raises(UsageError, match="`level` none is not possible"):
        mw.diagnose(net, level="none")


def with_root(dtype=TensorProto.FLOAT):
    """Computes NaN wherever x is negative, in any precision."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Sqrt", ["h"], ["y"], name="root")]
    stored = [numpy_helper.from_array(np.eye(4, dtype=helper.tensor_dtype_to_np_dtype(dtype)), "w")]
    return model(nodes, [value("x", dtype, [1, 4])], [value("y", dtype, [1, 4])], stored, opsets={"": 17})


def test_what_is_no_number_in_any_precision_is_not_blamed_on_float16(tmp_path):
    half = save(with_root(TensorProto.FLOAT16), tmp_path, "half.onnx")
    plain = save(with_root(), tmp_path, "plain.onnx")
    np.savez(tmp_path / "d.npz", x=np.full((2, 4), -1.0, np.float16))
    np.savez(tmp_path / "float.npz", x=np.full((2, 4), -1.0, np.float32))
    alone = mw.diagnose(half, data=str(tmp_path / "d.npz"))
    assert (alone.causes, alone.healthy, alone.next_steps) == ((), None, ("give the float model as `reference`",))
    found = mw.diagnose(plain, data=str(tmp_path / "float.npz"))
    assert (found.causes, found.healthy) == ((), None)
    assert "no cause was found for one run" in found.undecided[0]


def test_samples_that_are_no_numbers_are_the_cause_and_not_the_model(net, tmp_path):
    first = inputs_of(net)
    sizes = [dim.dim_value or 4 for dim in first.type.tensor_type.shape.dim][1:]
    np.savez(tmp_path / "d.npz", **{first.name: np.full((2, *sizes), np.nan, np.float32)})
    found = mw.diagnose(net, data=str(tmp_path / "d.npz"))
    assert [cause.rule for cause in found.causes] == ["inputs-not-finite"]
    assert found.causes[0].cured


def test_a_model_that_nothing_can_be_made_up_for_is_not_called_bad(tmp_path):
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)]
    blind = model(nodes, [value("x", TensorProto.INT32, [1, 8])], [value("y", shape=[1, 8])], [], opsets={"": 17})
    found = mw.diagnose(save(blind, tmp_path))
    assert (found.causes, found.healthy, found.next_steps) == ((), None, ("give real samples as `data`",))
    assert not [look for look in found.looked_at if look.ok is False]


def test_a_model_that_takes_texts_runs_on_texts_and_numbers_are_the_wrong_type(tmp_path):
    node = helper.make_node("LabelEncoder", ["s"], ["y"], domain="ai.onnx.ml", keys_strings=["a"], values_floats=[1.0])
    io = [value("s", TensorProto.STRING, ["n"])], [value("y", TensorProto.FLOAT, ["n"])]
    path = save(model([node], *io, opsets={"": 17, "ai.onnx.ml": 2}), tmp_path)
    np.savez(tmp_path / "words.npz", s=np.array(["a", "b"]))
    assert mw.diagnose(path, data=str(tmp_path / "words.npz")).healthy is True
    np.savez(tmp_path / "numbers.npz", s=np.arange(2))
    found = mw.diagnose(path, data=str(tmp_path / "numbers.npz"))
    assert [(cause.rule, cause.where) for cause in found.causes] == [("wrong-type", ("s",))]


def two_outputs(*names):
    """A MatMul and the Relu of it, of which those named are outputs."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Relu", ["z"], ["y"])]
    stored = [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")]
    ends = [value(name, shape=[1, 4]) for name in names]
    return model(nodes, [value("x", shape=[1, 4])], ends, stored, opsets={"": 17})


def rows_of(folder, **arrays):
    np.savez(folder / "rows.npz", **arrays)
    return str(folder / "rows.npz")


def said_of(found, what):
    return next((look.ok, look.said) for look in found.looked_at if look.what == what)


def test_an_output_that_only_the_reference_has_is_a_finding_however_close_the_others_are(tmp_path):
    whole = save(two_outputs("z", "y"), tmp_path, "whole.onnx")
    data = rows_of(tmp_path, x=np.ones((2, 4), np.float32))
    found = mw.diagnose(save(two_outputs("z"), tmp_path), reference=whole, data=data)
    assert [(cause.rule, cause.where) for cause in found.causes] == [("output-missing", ("y",))]
    assert found.undecided == ()
    assert said_of(found, "agreement") == (False, "what both answer with is identical; output y has no counterpart")


def test_a_missing_output_does_not_explain_answers_that_are_no_numbers(tmp_path):
    bad, whole = two_outputs("z"), two_outputs("z", "y")
    bad.graph.node[1].output[0], bad.graph.node[0].op_type = "r", "Pow"
    bad.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full((1, 4), 0.5, np.float32), "w"))
    data = rows_of(tmp_path, x=np.array([[-1.0, 1.0, 4.0, 9.0]] * 2, np.float32))
    found = mw.diagnose(save(bad, tmp_path), reference=save(whole, tmp_path, "whole.onnx"), data=data)
    assert [cause.rule for cause in found.causes] == ["output-missing"]
    assert found.undecided == ("no cause was found for one run: NaN or infinity in z",)


def test_what_a_build_said_against_itself_is_among_the_findings(tmp_path):
    proto = two_outputs("y")
    proto.graph.initializer[0].CopyFrom(
        numpy_helper.from_array(np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32), "w")
    )
    path = save(proto, tmp_path)
    data = rows_of(tmp_path, x=np.random.default_rng(1).standard_normal((40, 4)).astype(np.float32))
    strict = {"validation": {"min_cosine": 0.99999999}}
    (built,) = mw.build(path, "cpu", recipe=strict, precision="w8a8", data=data, output=tmp_path / "build")
    assert built.passed is False
    found = mw.diagnose(tmp_path / "build", reference=path, data=data)
    (cause,) = found.causes
    assert cause.rule == "gate-failed"
    assert any("close to the export" in words for words in cause.shown_by)
    assert said_of(found, "the build's own gate")[0] is False


def picked(size=4):
    """Row `place` of a table: out of bounds for most numbers that could be made up."""
    nodes = [
        helper.make_node("Cast", ["place"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Mul", ["whole", "far"], ["row"]),
        helper.make_node("Add", ["row", "further"], ["there"]),
        helper.make_node("Gather", ["table", "there"], ["y"]),
    ]
    stored = [
        numpy_helper.from_array(np.eye(size, dtype=np.float32), "table"),
        numpy_helper.from_array(np.array(100, np.int64), "far"),
        numpy_helper.from_array(np.array(50, np.int64), "further"),
    ]
    return model(nodes, [value("place", shape=[1])], [value("y", shape=[1, size])], stored, opsets={"": 17})


def test_a_model_that_refuses_made_up_inputs_is_not_called_bad(tmp_path):
    path = save(picked(), tmp_path)
    found = mw.diagnose(path)
    assert (found.causes, found.healthy, found.next_steps) == ((), None, ("give real samples as `data`",))
    assert said_of(found, "one run")[0] is None
    real = mw.diagnose(path, data=rows_of(tmp_path, place=np.full((2,), 7.0, np.float32)))
    assert said_of(real, "one run")[0] is False


def test_a_reference_that_it_could_not_be_compared_with_leaves_the_question_open(tmp_path, monkeypatch):
    """What else was asked is good."""

    def refused(*_):
        raise InputError(
            "a compiled model cannot be looked into", cause="it holds an EPContext node", fix="give another"
        )

    monkeypatch.setattr(diagnosis, "debug", refused)
    path = save(two_outputs("y"), tmp_path)
    data = rows_of(tmp_path, x=np.ones((2, 4), np.float32))
    found = mw.diagnose(path, reference=path, data=data)
    assert (found.causes, found.healthy) == ((), None)
    assert found.undecided[0].startswith("cannot tell whether it agrees with its reference: ")
    assert found.without_cause == "nothing wrong was found in what could be asked; not known: agreement"
    assert mw.diagnose(path, data=data).healthy is True


def test_fixed_sizes_are_the_cure_also_where_the_target_does_not_even_open_the_model(tmp_path):
    """What is left then is everything, and the EP itself says why: a part of constants only has no inputs."""
    text = "g (float[n,4] x) => (float[n,4] y) <float[4] c = {1,2,3,4}> { d = Add(c, c) y = Mul(x, d) }"
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), path)
    (cause,) = mw.diagnose(path, "qnn-npu").causes
    assert cause.sentence == "qnn-npu needs fixed sizes, and the model has dynamic ones: it does not open"
    assert "zero graph inputs" in cause.shown_by[0]
    (cure,) = cause.cures
    assert (cure.how, cure.before, cure.after, cure.held) == (
        "--dim n=1",
        "it does not open",
        "0 of 2 nodes left, 1 partition",
        True,
    )
