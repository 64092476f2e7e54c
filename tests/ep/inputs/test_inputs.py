"""Images as a camera gives them: bytes, channels last, normalized by the model itself."""

import importlib.util
import platform
import sys

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

import modelwright as mw
from modelwright.errors import InputError, UsageError
from modelwright.stages.inputs._run import run_inputs
from support.models import model, save, value, weight

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CAMERA = mw.PixelInputs(dtype="uint8", layout="nhwc", scale=1 / 255, mean=MEAN, std=STD)
needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


def net(folder, taken=("n", 3, "h", "w"), last=False):
    """A Conv with padding: the mean must not be folded into its bias, where the border would be another one."""
    before = [helper.make_node("Transpose", ["x"], ["t"], name="first", perm=[0, 3, 1, 2])] if last else []
    nodes = [
        *before,
        helper.make_node("Conv", ["t" if last else "x", "w0"], ["a"], name="stem", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("GlobalAveragePool", ["b"], ["c"], name="pool"),
        helper.make_node("Flatten", ["c"], ["d"], name="flat"),
        helper.make_node("Gemm", ["d", "w1"], ["e"], name="head"),
        helper.make_node("Softmax", ["e"], ["y"], name="softmax"),
    ]
    weights = [weight("w0", 8, 3, 3, 3), weight("w1", 8, 5)]
    return save(model(nodes, [value("x", shape=list(taken))], [value("y", shape=[taken[0], 5])], weights), folder)


def answer(path, x):
    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def photos(count=1):
    return np.random.default_rng(0).integers(0, 256, (count, 16, 16, 3), dtype=np.uint8)


def declared(path):
    (given,) = onnx.load(path).graph.input
    kind = given.type.tensor_type
    return kind.elem_type, [dim.dim_param or dim.dim_value for dim in kind.shape.dim]


def prepared(pixels, last=False):
    found = (pixels.astype(np.float64) / 255 - MEAN) / STD
    return (found if last else found.transpose(0, 3, 1, 2)).astype(np.float32)


@pytest.mark.parametrize("last", [False, True])
def test_bytes_with_channels_last_are_answered_as_prepared_floats_are(tmp_path, last):
    taken = ("n", 16, 16, 3) if last else ("n", 3, "h", "w")
    path = net(tmp_path, taken, last)
    (tmp_path / "out").mkdir()
    outcome = run_inputs(str(path), str(tmp_path / "out"), CAMERA)
    made = tmp_path / "out/model.onnx"
    assert declared(made) == (onnx.TensorProto.UINT8, ["n", 16, 16, 3] if last else ["n", "h", "w", 3])
    assert outcome.relative_error < 1e-5
    np.testing.assert_allclose(answer(made, photos(2)), answer(path, prepared(photos(2), last)), rtol=1e-4, atol=1e-5)


def test_each_option_works_alone(tmp_path):
    path, pixels = net(tmp_path), photos()
    wanted = answer(path, prepared(pixels))
    floats = pixels.astype(np.float32)
    for name, options, given in (
        ("layout", mw.PixelInputs(layout="nhwc"), prepared(pixels).transpose(0, 2, 3, 1)),
        ("bytes", mw.PixelInputs(dtype="uint8", scale=1 / 255, mean=MEAN, std=STD), pixels.transpose(0, 3, 1, 2)),
        ("normalized", mw.PixelInputs(mean=MEAN, std=STD), floats.transpose(0, 3, 1, 2) / 255),
    ):
        (tmp_path / name).mkdir()
        run_inputs(str(path), str(tmp_path / name), options)
        found = answer(tmp_path / name / "model.onnx", np.ascontiguousarray(given))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_what_is_no_image_is_not_guessed_to_be_one(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    path = save(model(nodes, [value("x", shape=[1, 7])], [value("y", shape=[1, 7])], []), tmp_path)
    with pytest.raises(InputError, match="image inputs"):
        run_inputs(str(path), str(tmp_path), CAMERA)
    with pytest.raises(UsageError, match="what a pixel is worth"):
        mw.PixelInputs(dtype="uint8")


def test_a_quantized_build_is_calibrated_and_judged_on_the_bytes_it_takes(tmp_path):
    path = net(tmp_path)
    np.savez(tmp_path / "photos.npz", x=photos(16))
    built = mw.build(
        path, "cpu", precision="w8a8", inputs=CAMERA, data=str(tmp_path / "photos.npz"), output=tmp_path / "out"
    )[0]
    assert built.passed is True
    assert [stage.stage for stage in built.components[0].stages][1] == "inputs"
    assert built.recipe.inputs == CAMERA
    assert declared(tmp_path / "out/model.onnx")[0] == onnx.TensorProto.UINT8
    found = answer(tmp_path / "out/model.onnx", photos(4))
    wanted = answer(path, prepared(photos(4)))
    assert np.abs(found - wanted).max() < 0.02
    with pytest.raises(InputError):
        mw.build(path, "cpu", inputs=CAMERA, data=str(_floats(tmp_path)))


def _floats(folder):
    np.savez(folder / "floats.npz", x=prepared(photos(4)))
    return folder / "floats.npz"


@needs_simulator
def test_the_npu_takes_the_bytes_too(tmp_path):
    path = net(tmp_path)
    np.savez(tmp_path / "photos.npz", x=photos(16))
    built = mw.build(path, "qnn-npu", precision="w8a16", inputs=CAMERA, data=str(tmp_path / "photos.npz"))[0]
    asked = built.components[0].check
    assert built.passed is True
    assert asked.samples == 2
    # Sizes come from the photos, whose channels are last.
    assert dict(built.recipe.optimize.fix_dims) == {"n": 1, "h": 16, "w": 16}
    assert asked.nodes - asked.on_target <= 2
