"""Models that do not say what they take are built all the same; only the gate may have nothing to say."""

import onnx
import pytest

import modelwright as mw
from modelwright.errors import InputError


def write(folder, text, opset=17):
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}'), path)
    return path


@pytest.fixture(scope="module", autouse=True)
def _own_home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODELWRIGHT_HOME", str(tmp_path_factory.mktemp("home")))
        yield


def gate(path):
    (build,) = mw.build(path, "cpu").builds
    (part,) = build.components
    return build.passed, part.validation


@pytest.mark.parametrize(
    "text",
    [
        "(int32[2] x, int32[2] z) => (int32[2] y) { y = Div(x, z) }",
        "(float[2,3] x, int64[2] s) => (float[3,2] y) { y = Reshape(x, s) }",
        "(float[4,5] x, int64[2] starts, int64[2] ends, int64[2] axes) => (float[n,m] y)"
        " { y = Slice(x, starts, ends, axes) }",
        "(float[1,1,2,2] x, float[4] scales) => (float[1,1,4,4] y) { y = Resize(x, , scales) }",
        "(string[2] x) => (float[2] y) { y = Cast<to=1>(x) }",
    ],
    ids=["divisor", "shape", "axes", "scales", "text"],
)
def test_inputs_that_the_graph_bears_are_found_and_the_gate_runs(tmp_path, text):
    passed, found = gate(write(tmp_path, text))
    assert passed is True
    assert found.samples > 0


def test_where_nothing_can_be_made_up_the_build_delivers_and_the_gate_says_why_it_did_not_run(tmp_path):
    """No guess is the shape of seven by eleven by thirteen values that only the data would tell."""
    text = "(float[7,11,13] x, int64[2] s) => (float[n,m] y) { y = Reshape(x, s) }"
    passed, found = gate(write(tmp_path, text))
    assert passed is None
    (check,) = [check for check in found.checks if check.passed is None]
    assert check.detail.startswith("not run: give real data")


def test_a_size_that_was_guessed_wrong_is_no_fault_of_the_model(tmp_path):
    """A window of 4,000 samples does not fit into what is made up. With its size said, it runs."""
    text = "(float[1,1,n] x) => (float[1,1,m] y) <int64[3] s = {1,1,4000}>"
    path = write(tmp_path, text + " { w = ConstantOfShape <value = float[1] {0.5}>(s) y = Conv(x, w) }")
    assert gate(path)[0] is None
    (build,) = mw.build(path, "cpu", dims={"n": 4096}).builds
    assert build.passed is True


def test_a_model_without_shapes_is_built_too(tmp_path):
    passed, _ = gate(write(tmp_path, "(seq(float[2]) x) => (float[n] y) { y = ConcatFromSequence<axis=0>(x) }"))
    assert passed is None


def test_a_quantized_build_still_needs_inputs(tmp_path):
    text = "(float[2,3] x, int64[2] s) => (float[3,3] y) <float[2,3] w = {1,2,3,4,5,6}>"
    text += " { r = Reshape(x, s) y = MatMul(r, w) }"
    with pytest.raises(InputError, match="unknown range") as caught:
        mw.build(write(tmp_path, text), "cpu", precision="w8a8")
    assert "`data`" in caught.value.fix


def test_a_model_that_refuses_a_guessed_size_is_told_so(tmp_path):
    """A reader of lines takes pictures of one height; nothing in the file says which."""
    text = "(float[1,3,h,8] x) => (float[1,3,8] y) <int64[1] axes = {2}>"
    path = write(tmp_path, text + " { p = MaxPool<kernel_shape=[32,1], strides=[32,1]>(x) y = Squeeze(p, axes) }")
    with pytest.raises(InputError, match="cannot load") as caught:
        mw.build(path, "qnn-npu", precision="fp32")
    assert caught.value.fix.startswith("Sizes were guessed (h 224): give `dims`, or real `data`.")
    found = mw.build(path, ["cpu", "qnn-npu"], precision="fp32")
    assert [(one.target, "guessed (h 224)" in one.error.fix) for one in found.failed] == [("qnn-npu", True)]
    with pytest.raises(InputError) as caught:
        mw.build(path, "qnn-npu", precision="fp32", dims={"h": 64})
    assert caught.value.fix.startswith("Its sizes were fixed (h 64): see that every part of it bears them.")


def test_what_has_nothing_to_do_with_sizes_is_not_blamed_on_them(tmp_path):
    path = write(tmp_path, "(float[1,n] x) => (float[1,n] y) { y = Relu(x) }")
    with pytest.raises(InputError) as caught:
        mw.build(path, "qnn-npu", precision="fp16")
    assert "sizes" not in caught.value.fix.lower()
