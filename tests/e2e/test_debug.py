"""`wright debug` as a user types it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from ep.debug.nets import deep, planted_outlier, write_samples
from modelwright.store import Store
from support.models import mlp, save


@pytest.fixture
def built(wright, tmp_path):
    """A model with a planted outlier, its per-tensor w8a8 build, and samples."""
    onnx.save(planted_outlier(deep()), tmp_path / "float.onnx")
    write_samples(tmp_path, 8, "calibration.npz", first=0)
    write_samples(tmp_path, 24)
    answer = wright(
        "quantize", "float.onnx", "-p", "w8a8", "--per-tensor", "--data", "calibration.npz", "--samples", "8",
        "-o", "quantized", "--json",
    )  # fmt: skip
    assert answer.code in (0, 1), answer.err
    return wright


def test_the_answer_names_the_node_and_keeps_the_known_keys(built):
    answer = built("debug", "quantized", "--reference", "float.onnx", "--data", "data.npz", "--json")
    assert answer.code == 0, answer.err
    found = answer.json
    assert found["status"] == "ok"
    assert found["passed"] is True
    loudest = max(found["activations"], key=lambda row: row["origin_share"] or 0)
    assert loudest["node"] == "layer3/gemm"
    assert {"tensor_name", "local_sqnr_db", "cumulative_sqnr_db"} <= loudest.keys()
    assert {"weight_name", "weight_sqnr_db"} <= found["weights"][0].keys()
    assert {"output_name", "cumulative_sqnr_db"} <= found["model_outputs"][0].keys()
    assert found["summary"]["weight"]["count"] == 6


def test_tables_say_where_the_noise_is_made(built):
    answer = built("debug", "quantized", "--reference", "float.onnx", "--data", "data.npz", env={"COLUMNS": "100"})
    assert answer.code == 0, answer.err
    for title in ("Outputs", "Where the noise is made", "Worst local", "Worst cumulative", "Worst weights"):
        assert title in answer.out
    assert "layer3/gemm" in answer.out
    assert "made-up" not in answer.out


def test_made_up_samples_are_said_loudly(built):
    answer = built("debug", "quantized", "--reference", "float.onnx")
    assert "made-up samples" in answer.out


@pytest.mark.parametrize(("bound", "code"), [("1", 0), ("30", 1)])
def test_fail_under_db_is_a_gate(built, bound, code):
    words = ("debug", "quantized", "--reference", "float.onnx", "--data", "data.npz", "--json")
    answer = built(*words, "--fail-under-db", bound)
    assert answer.code == code
    assert answer.json["passed"] is (code == 0)


def test_the_page_has_a_row_for_every_tensor(built, tmp_path):
    built("debug", "quantized", "--reference", "float.onnx", "--data", "data.npz", "--html", "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "layer3/<wbr>gemm" in text
    assert text.partition("<h2>Tensors")[2].partition("</tbody>")[0].count("<tr>") >= 2
    assert "<small>7 compared" in text


def test_fix_builds_a_model_that_holds_on_other_samples(built, tmp_path):
    answer = built(
        "debug", "quantized", "--reference", "float.onnx", "--data", "data.npz", "--samples", "24",
        "--fix", "--target-sqnr", "28", "-o", "repaired", "--save-recipe", "repaired.toml", "--json",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    found = answer.json["fix"]
    assert found["status"] == "met"
    assert found["minimal"], "every part of a repair was left out once, in vain"
    assert (found["raised"][0]["node"], found["raised"][0]["op_type"]) == ("layer3/gemm", "Gemm")
    manifest = json.loads((tmp_path / "repaired" / "wright.json").read_text())
    assert manifest["recipe"]["quantize"]["nodes_to_exclude"] == found["quantize"]["nodes_to_exclude"]
    assert "layer3/gemm" in (tmp_path / "repaired.toml").read_text()
    again = built("debug", "repaired", "--reference", "float.onnx", "--data", "data.npz", "--fail-under-db", "28")
    assert again.code == 0, again.out


def test_a_repair_that_fails_exits_1_and_writes_nothing(built, tmp_path):
    words = ("debug", "quantized", "--reference", "float.onnx", "--data", "data.npz", "--samples", "8")
    answer = built(*words, "--fix", "--target-sqnr", "150", "-o", "repaired", "--json")
    assert answer.code == 1
    assert answer.json["fix"]["status"] == "not_met"
    assert not (tmp_path / "repaired").exists()


def test_strangers_exit_1_with_no_match(built, tmp_path):
    save(mlp(), tmp_path, "other.onnx")
    answer = built("debug", "quantized", "--reference", "other.onnx", "--json")
    assert answer.code == 1
    assert answer.json["status"] == "no_match"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("quantized", "--reference", "float.onnx", "--samples", "0"), 2, "0 is not in the range"),
        (("float.onnx",), 2, "nothing to compare with"),
        (("quantized", "--reference", "gone.onnx"), 3, "gone.onnx does not exist"),
        (("quantized", "--reference", "float.onnx", "--data", "gone.npz"), 3, "gone.npz"),
        (("quantized", "--reference", "float.onnx", "--target-sqnr", "30"), 2, "needs --fix"),
        (("quantized", "--reference", "float.onnx", "--fix"), 2, "say what must hold"),
        (("quantized", "--reference", "data.npz"), 3, "data.npz is not an ONNX model"),
    ],
)
def test_bad_input_is_said_in_one_line(built, words, code, said):
    answer = built("debug", *words)
    assert answer.code == code
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_nan_outputs_fail(built, tmp_path):
    from onnx import numpy_helper

    model = onnx.load(tmp_path / "quantized" / "model.onnx")
    scales = [item for item in model.graph.initializer if item.name.endswith("_scale")]
    for scale in scales:
        scale.CopyFrom(numpy_helper.from_array(np.full_like(numpy_helper.to_array(scale), np.nan), scale.name))
    onnx.save(model, tmp_path / "broken.onnx")
    answer = built("debug", "broken.onnx", "--reference", "float.onnx", "--json")
    assert answer.code == 1
    assert answer.json["status"] == "failed"
    assert "NaN" in answer.json["reason"]


def interrupted(words, folder, home):
    """The search, ended once it has scored some candidates; None where it was done before this could be seen."""
    script, env = Path(sys.executable).with_name("wright"), {**os.environ, "MODELWRIGHT_HOME": str(home)}
    process = subprocess.Popen(
        [script, *words], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with Store(home / "store") as store:
        while sum(entry.key.stage == "score" for entry in store.entries()) < 3 and process.poll() is None:
            time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode in (0, 130), err
    return out if process.returncode == 130 else None


def test_ctrl_c_in_a_search_shows_what_was_tried_and_the_next_one_goes_on(built, tmp_path, monkeypatch):
    words = ("debug", "quantized", "--reference", "float.onnx", "--data", "data.npz", "--fix", "--target-sqnr", "28")
    homes = [tmp_path / f"home-{attempt}" for attempt in range(8)]
    # On a busy machine the search may be over before anybody sees how far it is.
    home, out = next((home, out) for home in homes if (out := interrupted(words, tmp_path, home)) is not None)
    monkeypatch.setenv("MODELWRIGHT_HOME", str(home))
    assert "not finished: SQNR of every output at least 28 dB" in out
    assert "candidate 2" in out
    answer = built(*words, "--json")
    assert answer.code == 0, answer.err
    assert answer.json["fix"]["from_store"] >= 2
