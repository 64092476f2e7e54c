"""A detector with its non-maximum suppression inside: rows change places, and the gate looks at what is seen."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

import modelwright as mw
from modelwright.data import DataSource
from modelwright.stages.validate import Gate, run_validate
from modelwright.vocabulary import Data
from support.models import FLOAT, model, save, value

PLACES, CLASSES, WIDTH, SAMPLES = 60, 3, 16, 48


def detector(weights):
    """Features and anchors in, detections out: rows of box, score and class, as many as survive."""
    stored = {
        "weights": weights,
        "most": np.array([20], np.int64),
        "overlap": np.array([0.45], np.float32),
        "least": np.array([0.3], np.float32),
        "place": np.array([2], np.int64),
        "kind": np.array([1], np.int64),
        "all": np.array([-1], np.int64),
        "first": np.array([0], np.int64),
    }
    step = helper.make_node
    nodes = [
        step("MatMul", ["features", "weights"], ["logits"], name="head"),
        step("Sigmoid", ["logits"], ["chances"]),
        step("Transpose", ["chances"], ["scores"], perm=[0, 2, 1]),
        step("NonMaxSuppression", ["anchors", "scores", "most", "overlap", "least"], ["picked"]),
        step("Gather", ["picked", "place"], ["at"], axis=1),
        step("Gather", ["picked", "kind"], ["class"], axis=1),
        step("Reshape", ["at", "all"], ["places"]),
        step("Squeeze", ["anchors", "first"], ["boxes"]),
        step("Gather", ["boxes", "places"], ["chosen"], axis=0),
        step("GatherND", ["scores", "picked"], ["sure"]),
        step("Unsqueeze", ["sure", "kind"], ["score"]),
        step("Cast", ["class"], ["what"], to=FLOAT),
        step("Concat", ["chosen", "score", "what"], ["detections"], axis=1),
    ]
    inputs = [value("features", FLOAT, [1, PLACES, WIDTH]), value("anchors", FLOAT, [1, PLACES, 4])]
    tensors = [numpy_helper.from_array(item, name) for name, item in stored.items()]
    return model(nodes, inputs, [value("detections", FLOAT, ["found", 6])], tensors)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    rng = np.random.default_rng(7)
    folder = tmp_path_factory.mktemp("detector")
    weights = rng.standard_normal((WIDTH, CLASSES)).astype(np.float32)
    corner = rng.uniform(0, 300, (SAMPLES, 1, PLACES, 2))
    anchors = np.concatenate([corner, corner + rng.uniform(30, 90, corner.shape)], axis=-1).astype(np.float32)
    features = (1.5 * rng.standard_normal((SAMPLES, 1, PLACES, WIDTH)) - 0.25 * weights.sum(axis=1)).astype(np.float32)
    np.savez(folder / "data.npz", features=features, anchors=anchors)
    return folder, weights, {"features": features, "anchors": anchors}


def rows(path, feeds, place):
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {name: item[place] for name, item in feeds.items()})[0]


def test_a_good_build_passes_though_its_rows_change_places(seen, tmp_path):
    folder, weights, feeds = seen
    path = save(detector(weights), tmp_path)
    built = mw.build(str(path), "cpu", precision="w8a8", data=str(folder / "data.npz"), output=tmp_path / "out")
    made = next((tmp_path / "out").rglob("model.onnx"))
    both = [(rows(path, feeds, place), rows(made, feeds, place)) for place in range(SAMPLES)]
    in_place = [one.shape == other.shape and np.array_equal(one[:, :4], other[:, :4]) for one, other in both]
    assert not all(in_place), "rows that stay where they are show nothing"
    assert built.passed is True
    data = DataSource(Data(str(folder / "data.npz")))
    by_place = Gate(precision="w8a8", outputs={"detections": "other"})
    assert run_validate(str(made), str(path), str(tmp_path), Gate(precision="w8a8"), data).passed is True
    assert run_validate(str(made), str(path), str(tmp_path), by_place, data).passed is False


@pytest.mark.parametrize("fault", ["blind", "classes mixed up", "noise"])
def test_a_broken_one_fails(seen, tmp_path, fault):
    folder, weights, _ = seen
    rng = np.random.default_rng(1)
    broken = {
        "blind": 0.3 * weights,
        "classes mixed up": weights[:, ::-1].copy(),
        "noise": weights + 0.5 * rng.standard_normal(weights.shape).astype(np.float32),
    }[fault]
    paths = [str(save(detector(item), tmp_path, name)) for item, name in ((broken, "c.onnx"), (weights, "r.onnx"))]
    data = DataSource(Data(str(folder / "data.npz")))
    found = run_validate(*paths, str(tmp_path), Gate(precision="w8a8"), data)
    assert found.passed is False
    assert any(check.name == "same detections" and not check.passed for check in found.checks), found.checks
    onnx.checker.check_model(paths[0])
