"""`wright eval` as a user types it, on a trained model with real labels."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from support.models import mlp, save

DEMO = Path(__file__).parents[2] / "demo"
MODEL, DATA = DEMO / "fashion_cnn.onnx", DEMO / "fashion_test.npz"
TASK = ("--data", DATA, "--task", "image-classification", "--scale", "1/255")


@pytest.fixture
def damaged(tmp_path):
    """The trained network with noise on its last layer."""
    proto = onnx.load(MODEL)
    weight = max((item for item in proto.graph.initializer if len(item.dims) == 2), key=lambda item: item.dims[0])
    array = numpy_helper.to_array(weight)
    noise = np.random.default_rng(0).standard_normal(array.shape).astype(array.dtype)
    weight.CopyFrom(numpy_helper.from_array(array + 2.0 * array.std() * noise, weight.name))
    return save(proto, tmp_path, "damaged.onnx")


def test_a_damaged_model_fails_the_gate_and_says_by_how_much(wright, damaged):
    answer = wright("eval", damaged, "--reference", MODEL, *TASK, "--max-drop", "1%", "--json")
    assert answer.code == 1, answer.err
    found = answer.json
    assert found["verdict"] == "fail"
    assert found["values"]["reference"] > 0.88
    assert found["values"]["drop"] > 0.01
    assert found["data"]["selected"] == len(found["scores"]) == len(np.load(DATA)["label"])


def test_the_same_model_passes_and_people_read_why(wright):
    answer = wright("eval", MODEL, "--reference", MODEL, *TASK, "--max-drop", "1pt", env={"COLUMNS": "100"})
    assert answer.code == 0, answer.err
    assert "pass" in answer.out
    assert "1.00 points is allowed" in answer.out
    assert "accuracy" in answer.out


def test_fifty_samples_cannot_see_five_points(wright):
    answer = wright("eval", MODEL, "--reference", MODEL, *TASK, "--samples", "50", "--max-drop", "5pt")
    assert answer.code == 6
    assert "50 samples cannot decide about 5.00 points" in answer.out
    assert "samples would if nothing is lost (90 % power)" in answer.out


def test_samples_are_added_to_a_record_until_they_decide(wright, tmp_path):
    words = ("eval", MODEL, "--reference", MODEL, *TASK, "--max-drop", "5pt")
    first = wright(*words, "--samples", "50")
    assert first.code == 6
    record = first.err.splitlines()[-1].removeprefix("record ")
    more = wright(*words, "--samples", "150", "--retry", record, "--save", "more.json", "--json")
    assert (more.code, more.json["verdict"], more.json["data"]["selected"]) == (0, "pass", 200)
    shown = wright("show", "more.json", "--json").json
    assert shown["record"]["refs"][0].startswith(record)
    other = wright("eval", MODEL, "--reference", MODEL, *TASK[:-2], "--retry", record)
    assert other.code == 2
    assert "the samples differ" in other.err


def test_raw_outputs_are_compared_and_gated(wright, damaged, tmp_path):
    gate = ("--data", "random", "--samples", "4", "--outputs", "--min-cosine", "0.999")
    assert wright("eval", MODEL, "--reference", MODEL, *gate).code == 0
    answer = wright("eval", damaged, "--reference", MODEL, *gate)
    assert answer.code == 1
    assert "cosine of the worst sample" in answer.out


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("--task", "image-clasification"), 2, "did you mean image-classification"),
        ((), 2, "Give --task, --metric or --outputs"),
        (("--task", "image-classification"), 3, "--scale 1/255"),
        (("--task", "image-classification", "--scale", "1/255", "--samples", "0"), 2, "eval --help"),
        (("--task", "image-classification", "--scale", "black"), 2, "eval --help"),
        (("--task", "image-classification", "--max-drop", "little"), 2, "--max-drop is written 1%"),
        (("--task", "image-classification", "--set", "top"), 2, "--set name=value"),
        (("--task", "image-classification", "--target", "qnn-cpux"), 2, "qnn"),
    ],
)
def test_what_cannot_be_done_is_said_with_the_way_out(wright, words, code, hint):
    answer = wright("eval", MODEL, "--reference", MODEL, "--data", DATA, *words)
    assert answer.code == code, answer.err
    assert hint in answer.err
    assert answer.out == ""


def test_data_that_does_not_fit_is_an_input_error(wright, tmp_path):
    arrays = np.load(DATA)
    np.savez(tmp_path / "labels.npz", image=arrays["image"][:20], label=np.full(20, 10))
    np.savez(tmp_path / "names.npz", picture=arrays["image"][:20], label=arrays["label"][:20])
    np.savez(tmp_path / "none.npz", image=arrays["image"][:0], label=arrays["label"][:0])
    for name, hint in (("labels", "label 10 does not fit"), ("names", "input 'image'"), ("none", "is empty")):
        answer = wright(
            "eval", MODEL, "--reference", MODEL, "--data", f"{name}.npz", "--task", "image-classification",
            "--scale", "1/255",
        )  # fmt: skip
        assert answer.code == 3, answer.err
        assert hint in answer.err


def test_another_models_data_is_refused(wright, tmp_path):
    save(mlp(), tmp_path)
    answer = wright("eval", "model.onnx", "--reference", MODEL, *TASK)
    assert answer.code == 3
    assert "input 'x'" in answer.err


def test_your_own_metric_is_a_function_in_a_file(wright, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def right(outputs, row):\n    return outputs['logits'].argmax() == row['label']\n"
    )
    answer = wright(
        "eval", MODEL, "--reference", MODEL, "--data", DATA, "--scale", "1/255", "--metric", "mine.py:right", "--json"
    )
    assert answer.code == 0, answer.err
    assert answer.json["values"]["candidate"] > 0.88
    assert answer.json["metric"]["name"] == "right"


def test_a_metric_without_a_span_proves_nothing_until_one_is_declared(wright, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def error(outputs, row):\n"
        "    logits = outputs['logits'].astype(float)\n"
        "    return 1 - (np.exp(logits) / np.exp(logits).sum())[int(row['label'])]\n"
        "error.higher_is_better = False\n"
    )
    words = ("eval", MODEL, "--reference", MODEL, "--data", DATA, "--scale", "1/255", "--metric", "mine.py:error")
    answer = wright(*words, "--max-drop", "0.05")
    assert answer.code == 6, answer.err
    assert "how much one sample can lose is not known" in answer.out
    assert "--span" in answer.out
    assert wright(*words, "--max-drop", "0.05", "--span", "1").code == 0
    for wrong in (("--metric", "mine.py:error", "--span", "0"), ("--task", "image-classification", "--span", "1")):
        refused = wright("eval", MODEL, "--reference", MODEL, "--data", DATA, "--scale", "1/255", *wrong)
        assert refused.code == 2, refused.err
