"""`wright tune` as a user types it."""

import importlib.util
import platform
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from support import models

DEMO = Path(__file__).parents[2] / "demo"

needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


def conv_relu(folder):
    """What onnxruntime's fusion makes an operator of its own of."""
    proto = models.model(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["y"], name="relu"),
        ],
        [models.value("x", shape=[1, 3, 8, 8])],
        [models.value("y", shape=[1, 4, 8, 8])],
        [models.weight("w", 4, 3, 3, 3)],
    )
    return models.save(proto, folder)


def rows(answer):
    return {row["label"]: row for row in answer.json["rows"]}


def test_a_search_ends_in_a_champion_and_the_same_command_measures_nothing_again(wright, tmp_path):
    models.save(models.mlp(), tmp_path)
    words = ("tune", "model.onnx", "--axis", "denormals", "--budget", "20s", "--by", "p50", "--json")
    first = wright(*words, "-o", "best", "--html", "page.html")
    assert first.code == 0, first.err
    assert set(rows(first)) == {"baseline", "denormals=off"}
    assert (tmp_path / "best" / "wright.json").exists()
    assert (tmp_path / "page.html").exists()
    again = wright(*words)
    assert again.json["resumed"] > 0
    assert [again.json[name] for name in ("champion", "units", "rows")] == [
        first.json[name] for name in ("champion", "units", "rows")
    ]


@needs_simulator
def test_fusions_that_the_npu_does_not_take_are_dropped_by_placement_before_anything_is_timed(wright, tmp_path):
    conv_relu(tmp_path)
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).normal(size=(4, 3, 8, 8)).astype("float32"))
    answer = wright("tune", "model.onnx", "--target", "qnn-npu", "--precision", "fp32", "--axis", "pass", "--json")
    assert answer.code == 0, answer.err
    fused = rows(answer)["+conv_activation_fusion"]
    assert fused["word"] == "placement"
    assert fused["left_nodes"] > rows(answer)["baseline"]["left_nodes"]
    assert "finding qnn-fused-conv (general)" in fused["reason"]
    (known,) = [one for one in answer.json["insights"] if one["change"] == "+conv_activation_fusion"]
    assert (known["did"], known["finding"]) == ("last", "qnn-fused-conv")
    learnt = wright("kb", "show", "qnn-fused-conv", "--json").json
    assert "model" in learnt["finding"]["scope"]["models"]
    assert (answer.json["timed"], answer.json["units"]) == (False, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--forbid", "denormal"), "did you mean denormals"),
        (("--axis", "colour"), "colour"),
        (("--only", "denormals=of"), "did you mean denormals=off"),
        (("--max-drop", "1pt"), "labelled data"),
        (("--axis", "spinning", "--threads", "1"), "there is nothing to search"),
    ],
)
def test_what_cannot_be_searched_is_said(wright, tmp_path, words, said):
    models.save(models.mlp(), tmp_path)
    answer = wright("tune", "model.onnx", *words)
    assert answer.code in (2, 3)
    assert said in answer.err


def test_a_limit_of_memory_that_nothing_keeps_is_answered_with_no_and_nothing_is_timed_for_memory(wright, tmp_path):
    models.save(models.mlp(), tmp_path)
    words = ("--axis", "denormals", "--objective", "memory", "--max-memory", "1MB")
    answer = wright("tune", "model.onnx", *words, "--json")
    assert (answer.code, answer.json["fits"], answer.json["units"]) == (1, False, 0)
    assert rows(answer)["denormals=off"]["word"] == "memory"
    assert rows(answer)["baseline"]["peak_bytes"] > 1e6


def test_a_recipe_and_a_choice_of_changes_make_the_search(wright, tmp_path):
    models.save(models.mlp(), tmp_path)
    table = '[tune]\naxes = ["level", "denormals"]\npin = ["threads=1"]\nforbid = ["level=extended"]\n'
    (tmp_path / "none.toml").write_text(f"optimize = false\n{table}")
    words = ("tune", "model.onnx", "-r", "none.toml", "--objective", "size", "--json")
    wide = wright(*words)
    assert set(rows(wide)) == {"baseline", "level=basic", "denormals=off"}
    assert wide.json["settings"] == {"threads": "1"}
    answer = wright(*words, "--only", "level=basic", "--latency", "10s", "--budget", "1s")
    assert answer.code in (0, 6), answer.err
    assert answer.json["latency"]["limit_ms"] == 10000
    assert set(rows(answer)) == {"baseline", "level=basic"}
    assert answer.json["champion"] == "baseline"
    assert "no variant takes less size" in answer.json["sentence"]


def test_rows_that_found_the_ranges_of_a_variant_do_not_judge_it(wright, tmp_path):
    with np.load(DEMO / "fashion_test.npz") as held:
        np.savez(tmp_path / "few.npz", image=held["image"][:12].astype(np.float32) / 255, label=held["label"][:12])
    words = ("--data", "few.npz", "--task", "image-classification", "--max-drop", "50pt")
    answer = wright(
        "tune", DEMO / "fashion_cnn.onnx", *words, "--only", "precision=w8a8", "--objective", "size", "--json"
    )
    assert answer.code == 0, answer.err
    row = rows(answer)["precision=w8a8"]
    assert row["word"] == "gate"
    assert "give more rows" in row["reason"]


def test_several_targets_are_tuned_and_what_was_answered_is_not_run_again(wright, tmp_path):
    models.save(models.mlp(), tmp_path)
    words = ("tune", "model.onnx", "--target", "cpu", "--target", "cpu:isa=avx2", "--axis", "denormals")
    words = (*words, "--objective", "size", "--json")
    first, again = wright(*words), wright(*words)
    assert (first.code, again.code) == (0, 0), first.err
    assert [row["fresh"] for row in first.json["rows"]] == [True, True]
    assert [row["fresh"] for row in again.json["rows"]] == [False, False]
    (portfolio,) = again.json["portfolios"]
    assert portfolio == first.json["portfolios"][0]
    assert {one["word"] for one in portfolio["artifacts"]} == {"portable"}
    assert [(one["missing"], one["same_file"]) for one in portfolio["chain"]] == [([], True), (["cpu"], True)]
    assert wright(*words, "-o", "out").code == 2
