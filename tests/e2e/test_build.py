"""Building as a user types it."""

import json
from pathlib import Path

import numpy as np
import pytest

from support.models import conv_net, mlp, save

DEMO = Path(__file__).parents[2] / "demo"


@pytest.fixture
def model(tmp_path):
    return save(conv_net(), tmp_path)


def test_a_build_for_two_targets_writes_two_checked_folders(wright, model, tmp_path):
    answer = wright("build", "-m", model, "--target", "cpu", "--target", "qnn-npu", "-o", "out", "--json")
    assert answer.code == 0
    assert [build["precision"] for build in answer.json["builds"]] == ["fp32", "w8a16"]
    for folder, passed in (("cpu", True), ("qnn-npu", None)):
        assert json.loads((tmp_path / "out" / folder / "wright.json").read_text())["passed"] is passed
    assert answer.json["passed"] is None
    again = wright("build", "-m", model, "--target", "cpu", "--target", "qnn-npu", "-o", "out")
    assert again.out.count("everything was in the store") == 2


def test_a_gate_that_had_no_real_data_says_so_and_require_pass_exits_6(wright, model, tmp_path):
    words = ("quantize", model, "-p", "w8a8")
    answer = wright(*words)
    assert answer.code == 0
    assert "runs; accuracy unknown: no real data" in " ".join(answer.out.split())
    assert wright(*words, "--require-pass").code == 6
    assert "passed on made-up inputs" in " ".join(wright("build", model, "--require-pass").out.split())


def test_of_several_targets_an_error_says_which_one_it_is_about(wright, model):
    words = ("--target", "cpu", "--target", "qnn-npu", "--passes", "conv_activation_fusion", "--precision", "fp32")
    answer = wright("build", model, *words)
    assert answer.code == 3
    assert "\nerror: qnn-npu: conv_activation_fusion does not suit" in answer.err


def test_the_plan_runs_nothing_and_writes_nothing(wright, model, tmp_path):
    steps = wright("build", "-m", model, "--target", "qnn-npu", "--plan", "--json").json["plans"][0]["stages"]
    assert [(step["stage"], step["state"]) for step in steps] == [
        ("import", "run"),
        ("optimize", "run"),
        ("quantize", "later"),
        ("validate", "later"),
        ("check", "later"),
    ]
    assert not (tmp_path / "home").exists()


def test_the_conv_fusion_hazard_from_end_to_end(wright, model):
    words = ("build", "-m", model, "--target", "qnn-npu", "--precision", "fp32", "--passes")
    known = wright(*words, "ort-extended")
    assert (known.code, "finding qnn-fused-conv" in known.out) == (0, True), known.err
    words = (*words, "conv_activation_fusion")
    refused = wright(*words)
    assert refused.code == 3
    assert "FusedConv" in refused.err
    assert wright(*words, "--force", "-o", "fused").code == 0
    found = wright("analyze", "fused", "--target", "qnn-npu", "--json")
    assert found.code == 1
    analysis = found.json["analyses"][0]
    assert [node["op_type"] for node in analysis["placement"]["left"]] == ["FusedConv"]
    suggestion = analysis["suggestions"][0]
    assert suggestion["how"] == "--passes unfuse_conv"
    assert (suggestion["left_before"], suggestion["left_after"]) == (1, 0)
    assert wright("optimize", "fused/model.onnx", "--passes", "unfuse_conv", "-o", "unfused").code == 0
    assert wright("analyze", "unfused", "--target", "qnn-npu").code == 0


def test_an_ep_that_cannot_be_asked_here_is_unknown_not_guessed(wright, model):
    answer = wright("analyze", model, "--target", "dml-gpu", "--json")
    assert answer.code == 6
    assert answer.json["analyses"][0]["supported"] is None


def test_config_writes_a_recipe_that_build_takes(wright, model, tmp_path):
    assert wright("config", "-m", model, "--target", "qnn-npu", "--save", "recipe.toml").code == 0
    assert wright("build", "-m", model, "--target", "qnn-npu", "-r", "recipe.toml").code == 0
    schema = json.loads(wright("config", "--schema").out)
    assert "quantize" in schema["properties"]


@pytest.mark.parametrize("precision", ["fp16", "dynamic", "w8a8", "w8a16", "w16a16"])
def test_quantize_delivers_the_bits_its_label_says(wright, tmp_path, precision):
    model = save(mlp(hidden=64), tmp_path)
    answer = wright("quantize", model, "-p", precision, "-o", "q", "--json")
    assert answer.code == 0, answer.err
    measured = wright("inspect", "q/model.onnx", "--json").json["precision"]["label"]
    assert measured == {"dynamic": "dynamic int8"}.get(precision, precision)


def test_real_calibration_data_is_recorded_and_random_is_said_loudly(wright, model, tmp_path):
    assert "RANDOM" in wright("quantize", model, "-p", "w8a8").out
    name = wright("inspect", model, "--json").json["inputs"][0]
    sizes = [dim if isinstance(dim, int) else 1 for dim in name["shape"]]
    rows = np.random.default_rng(0).standard_normal((4, *sizes[1:])).astype(np.float32)
    np.savez(tmp_path / "data.npz", **{name["name"]: rows})
    assert "RANDOM" not in wright("quantize", model, "-p", "w8a8", "--data", "data.npz").out
    np.savez(tmp_path / "wrong.npz", other=rows)
    wrong = wright("quantize", model, "-p", "w8a8", "--data", "wrong.npz")
    assert wrong.code == 3
    assert f"{name['name']} is missing" in wrong.err


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["build", "-m", "model.onnx", "--target", "qnn-nup"], 2, "did you mean qnn-npu"),
        (["build", "-m", "model.onnx", "--ep", "QNN", "--device", "TPU"], 2, "npu, gpu"),
        (["build", "-m", "model.onnx", "--target", "cpu", "--ep", "qnn"], 2, "said twice"),
        (["build", "-m", "model.onnx", "--passes", "conv-bn-fussion"], 3, "did you mean conv_bn_fusion"),
        (["build", "-m", "model.onnx", "-o", "out.onnx"], 2, "-o out"),
        (["build", "-m", "model.onnx", "-r", "absent.toml"], 3, "no such file"),
        (["build", "-m", "absent/folder/model"], 3, "no such file"),
        (["quantize", "model.onnx", "-p", "w4a8"], 3, "cannot be produced"),
        (["compile", "model.onnx", "--target", "cpu"], 2, "no EPContext"),
        (["compile", "model.onnx", "--target", "openvino-npu"], 4, "needs"),
        (["optimize"], 2, "wright optimize --help"),
        (["quantize", "model.onnx", "-p", "w8a8", "--data", "nothing.txt"], 3, "does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_bad_input_has_a_code_and_a_next_step(wright, model, words, code, hint):
    answer = wright(*words)
    assert answer.code == code, answer.err
    assert hint in answer.err


def test_a_folder_that_wright_did_not_write_is_not_replaced(wright, model, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    assert wright("build", "-m", model, "-o", "mine").code == 2
    assert (tmp_path / "mine/thesis.txt").exists()


def test_passes_are_listed_and_checked(wright, model):
    assert len(wright("optimize", "--list", "--json").json["passes"]) > 40
    effects = wright("optimize", model, "--check", "--json").json["effects"]
    assert "conv_activation_fusion" in [effect["name"] for effect in effects if effect["fired"]]


@pytest.mark.parametrize(("rows", "percentile", "code"), [(300, 99.99, 0), (12, 99.99, 6), (200, 60.0, 1)])
def test_with_labels_the_drop_of_accuracy_is_the_gate(wright, tmp_path, rows, percentile, code):
    """A few rows decide nothing; ranges that cut off most of what there is lose too much."""
    with np.load(DEMO / "fashion_test.npz") as held:
        images, labels = held["image"][:rows].astype(np.float32) / 255, held["label"][:rows]
    np.savez(tmp_path / "data.npz", image=images, label=labels)
    words = ["build", DEMO / "fashion_cnn.onnx", "--precision", "w8a8", "--data", "data.npz"]
    recipe = {"quantize": {"method": "percentile", "percentile": percentile}}
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    words += ["-r", "recipe.json", "--task", "image-classification", "--max-drop", "8pt", "-o", "out"]
    assert wright(*words).code == code
    found = json.loads((tmp_path / "out/wright.json").read_text())
    # Those that found the ranges are not judged.
    assert found["accuracy"]["samples"] == max(0, rows - 32)
    assert found["accuracy"]["passed"] is {0: True, 1: False, 6: None}[code]


def test_a_drop_without_labels_is_refused_before_anything_is_built(wright, model):
    answer = wright("build", model, "--precision", "w8a8", "--max-drop", "1pt")
    assert answer.code == 2
    assert "labelled data" in answer.err
