"""`wright tune` as a user types it."""

import importlib.util
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
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


def lines_of_the_journal(home):
    return sum(len(file.read_bytes().splitlines()) for file in home.glob("searches/*.jsonl"))


def killed_on_the_way(words, folder, home):
    """Whether it was killed on its way: on a busy machine it may be over before anybody sees how far it is."""
    env = {**os.environ, "MODELWRIGHT_HOME": str(home)}
    wright_itself = Path(sys.executable).with_name("wright")
    with subprocess.Popen([wright_itself, *words], cwd=folder, env=env, stdout=subprocess.DEVNULL) as child:
        while lines_of_the_journal(home) < 6 and child.poll() is None:
            time.sleep(0.01)
        child.kill()
    if child.returncode == -signal.SIGKILL and not (folder / "best").exists():
        return True
    assert child.returncode in (0, -signal.SIGKILL)
    shutil.rmtree(folder / "best")
    return False


def test_after_a_kill_the_same_command_goes_on_and_ends_as_if_nobody_had_disturbed_it(wright, tmp_path):
    models.save(models.mlp(), tmp_path)
    words = ("tune", "model.onnx", "--axis", "level", "--axis", "denormals", "--objective", "size", "--json")
    words = (*words, "-o", "best", "--overwrite")
    undisturbed = wright(*words, env={"MODELWRIGHT_HOME": str(tmp_path / "other")})
    whole = (tmp_path / "best" / "model.onnx").read_bytes()
    shutil.rmtree(tmp_path / "best")
    homes = [tmp_path / f"home-{attempt}" for attempt in range(8)]
    home = next(home for home in homes if killed_on_the_way(words, tmp_path, home))
    after = wright(*words, env={"MODELWRIGHT_HOME": str(home)})
    assert after.code == 0, after.err
    assert after.json["resumed"] >= 5
    said = ("champion", "rows", "reason", "units", "recipe", "front")
    assert {name: after.json[name] for name in said} == {name: undisturbed.json[name] for name in said}
    assert (tmp_path / "best" / "model.onnx").read_bytes() == whole


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
    written = wright(*words, "-o", "out")
    assert written.code == 0, written.err
    assert [row["fresh"] for row in written.json["rows"]] == [False, False]
    assert [row["result"]["folder"] for row in written.json["rows"]] == ["out/cpu", "out/cpu-isa-avx2"]
    assert {path.parent.name for path in (tmp_path / "out").rglob("wright.json")} == {"cpu", "cpu-isa-avx2"}


def catalogue(folder, *rows):
    (folder / "models.json").write_text(json.dumps(rows))
    return ("tune", "--catalog", "models.json", "--axis", "denormals", "--objective", "size", "--json")


def test_a_catalogue_runs_what_is_new_and_one_that_fails_does_not_stop_the_others(wright, tmp_path):
    models.save(models.mlp(), tmp_path, "a.onnx")
    models.save(models.chain(3), tmp_path, "b.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    first = wright(*catalogue(tmp_path, "a.onnx", "broken.onnx"), "-o", "out")
    assert first.code == 3
    assert "broken for cpu: " in first.err
    assert [(row["name"], row["failure"] is None) for row in first.json["rows"]] == [("a", True), ("broken", False)]
    words = catalogue(tmp_path, "a.onnx", {"model": "b.onnx", "name": "second"})
    second, third = wright(*words, "--html", "page.html"), wright(*words)
    assert [(row["name"], row["fresh"]) for row in second.json["rows"]] == [("a", False), ("second", True)]
    assert [row["fresh"] for row in third.json["rows"]] == [False, False]
    assert (second.code, third.code) == (0, 0)
    assert (tmp_path / "out" / "a" / "cpu" / "model.onnx").exists()
    assert "second" in (tmp_path / "page.html").read_text()
    shown = wright("show", third.json["record_id"][:12], "--markdown").out
    assert shown.startswith("2 searches, 2 of them answered before")
    assert all(row["record"] in shown for row in third.json["rows"])


def test_what_a_row_says_goes_before_what_is_said_for_all(wright, tmp_path):
    models.save(models.mlp(), tmp_path)
    rows = {"model": "model.onnx", "precision": "fp16"}, {"model": "model.onnx", "data": "gone.npz"}
    answer = wright(*catalogue(tmp_path, *rows), "--precision", "fp32")
    half, lost = answer.json["rows"]
    assert (half["name"], half["result"]["precision"]) == ("model at fp16", "fp16")
    assert "gone.npz" in lost["failure"]["problem"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--catalog", "none.json"), 3, "none.json"),
        (("--catalog", "models.json", "--forbid", "denormal"), 2, "did you mean denormals"),
        (("model.onnx", "--catalog", "models.json"), 2, "said twice"),
        ((), 2, "MODEL"),
    ],
)
def test_a_catalogue_that_cannot_be_asked_is_said_before_anything_is_run(wright, tmp_path, words, code, said):
    catalogue(tmp_path, "model.onnx")
    answer = wright("tune", *words)
    assert answer.code == code
    assert said in answer.err


def test_the_data_of_a_recipe_is_used_where_the_command_names_none(wright, tmp_path):
    models.save(models.mlp(), tmp_path)
    (tmp_path / "own.toml").write_text('[data]\nsource = "gone.npz"\n')
    answer = wright("tune", "model.onnx", "-r", "own.toml", "--axis", "denormals")
    assert answer.code == 3
    assert "gone.npz" in answer.err
