"""From the claim to the last level, on models that take seconds."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import modelwright as mw
from modelwright.errors import InputError, UsageError
from modelwright.support import EVIDENCE, LOGS, read_claim, read_evidence
from support import models

LABELS = 4


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """A classifier of random vectors, and rows whose labels are its own answers."""
    folder = tmp_path_factory.mktemp("net")
    inputs, outputs = [models.value("x", shape=[1, 16])], [models.value("logits", shape=[1, LABELS])]
    nodes = [("MatMul", ["x", "a"], ["h"]), ("Relu", ["h"], ["r"]), ("MatMul", ["r", "b"], ["logits"])]
    weights = [models.weight("a", 16, 32, seed=1), models.weight("b", 32, LABELS, seed=2)]
    made = [models.onnx.helper.make_node(kind, *wires) for kind, *wires in nodes]
    graph = models.onnx.helper.make_graph(made, "net", inputs, outputs, weights)
    opset = [models.onnx.helper.make_opsetid("", 18)]
    path = folder / "net.onnx"
    models.onnx.save(models.onnx.helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    rows = np.random.default_rng(0).normal(size=(300, 16)).astype("f4")
    told = [models.onnx.numpy_helper.to_array(one) for one in weights]
    labels = (np.maximum(rows @ told[0], 0) @ told[1]).argmax(-1)
    np.savez(folder / "rows.npz", x=rows, label=labels)
    return path


def _rows(found):
    return [(row.level, row.target, row.component, row.word) for row in found.rows]


def test_a_model_climbs_to_its_task_and_the_second_call_measures_nothing(net, tmp_path):
    out, data = tmp_path / "out", mw.Data(str(net.with_name("rows.npz")))
    asked = {"data": data, "task": "text-classification", "ceiling": "L3", "seeds": 2, "max_drop": "5pt"}
    found = mw.support.run(net, out, **asked)
    assert _rows(found) == [(level, "cpu", None, "pass") for level in ("L0", "L1", "L2", "L3")]
    assert (found.gate.word, found.state, found.reached, found.claim_met) == ("no-delta", "pass", "L3", True)
    assert read_claim(out) == found.claim
    evidence = read_evidence(out)
    assert not evidence.flaws
    ids = {one.id for one in evidence.statements}
    assert all(set(row.statements) <= ids for row in found.rows)
    assert all((out / LOGS / f"{one.predicate.log}.txt").is_file() for one in evidence.statements if one.predicate.log)
    cited = [one.predicate.records for one in evidence.statements if one.asked.level == "L3"]
    assert mw.read(cited[0][0]).payload.verdict == "pass"
    assert mw.read(found.record_id).payload == found
    before = (out / EVIDENCE).read_bytes()
    assert mw.support.run(net, out, **asked).rows == found.rows
    assert (out / EVIDENCE).read_bytes() == before


def test_another_question_in_the_same_folder_is_refused(net, tmp_path):
    mw.support.run(net, tmp_path / "out", ceiling="L0", ladder_only=True)
    with pytest.raises(UsageError, match="about another claim"):
        mw.support.run(net, tmp_path / "out", ceiling="L1", ladder_only=True)


def test_a_model_that_was_exchanged_is_not_gone_on_with(net, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(net.read_bytes())
    mw.support.run(path, tmp_path / "out", ceiling="L0", ladder_only=True)
    models.save(models.mlp(), tmp_path, "net.onnx")
    with pytest.raises(UsageError, match="another claim"):
        mw.support.run(path, tmp_path / "out", ceiling="L0", ladder_only=True)


def test_torn_evidence_is_told_and_measured_again(net, tmp_path):
    out = tmp_path / "out"
    whole = mw.support.run(net, out, ceiling="L1", ladder_only=True)
    text = (out / EVIDENCE).read_bytes()
    (out / EVIDENCE).write_bytes(text[:-30])
    found = mw.support.run(net, out, ceiling="L1", ladder_only=True)
    assert _rows(found) == _rows(whole)
    assert any("cut short" in note for note in found.notes)
    assert len(read_evidence(out).statements) == text.count(b"\n")


def test_an_edited_claim_and_an_edited_line_are_refused(net, tmp_path):
    out = tmp_path / "out"
    mw.support.run(net, out, ceiling="L0", ladder_only=True)
    text = (out / EVIDENCE).read_text()
    (out / EVIDENCE).write_text(text.replace('"word":"pass"', '"word":"fail"'))
    with pytest.raises(InputError, match="not what was written"):
        mw.support.run(net, out, ceiling="L0", ladder_only=True)
    (out / EVIDENCE).write_text(text)
    claim = (out / "claim.toml").read_text()
    (out / "claim.toml").write_text(claim.replace("gate_seeds = 5", "gate_seeds = 6"))
    with pytest.raises(InputError, match="was changed since it was frozen"):
        mw.support.run(net, out, ceiling="L0", ladder_only=True)


@pytest.mark.parametrize(
    ("recipe", "word", "fields"),
    [
        ('precision = "fp32"\n', "no-delta", ()),
        ("[validation]\nsamples = 3\n", "inert", ("validation.samples",)),
        ("[optimize]\nopset = 20\n", "delta", ()),
    ],
)
def test_what_a_recipe_changes_is_what_it_does(net, tmp_path, recipe, word, fields):
    file = tmp_path / "recipe.toml"
    file.write_text(recipe)
    found = mw.support.gate(net, tmp_path / "out", recipe=file, seeds=2)
    assert found.word == word
    assert found.inert == fields


def test_the_gate_is_asked_about_every_case_and_what_cases_share_is_no_hit(net, tmp_path):
    """A recipe that does something for the second case only: the first one alone would call it nothing."""
    file = tmp_path / "recipe.toml"
    file.write_text("[quantize]\nkeep_io_types = false\n")
    found = mw.support.gate(net, tmp_path / "out", recipe=file, precisions=["fp32", "fp16"], seeds=1)
    assert (found.word, found.differing) == ("delta", ("cpu fp16",))
    assert [arm.name for arm in found.arms] == [
        f"cpu {case}: {arm}" for case in ("fp32", "fp16") for arm in ("without", "with")
    ]
    asked = [
        (one.asked.precision, one.predicate.measured["hits"]) for one in read_evidence(tmp_path / "out").statements
    ]
    assert sorted(asked) == [("fp16", 0), ("fp16", 0), ("fp32", 0), ("fp32", 0)]


def test_an_ep_that_is_missing_here_is_blocked_and_what_was_tried_is_on_record(net, tmp_path):
    found = mw.support.run(
        net, tmp_path / "out", targets=["vitisai-npu"], precisions=["fp32"], ceiling="L2", ladder_only=True
    )
    words = {row.level: row for row in found.rows}
    assert (words["L1"].word, words["L1"].blocked_by) == ("blocked", "host")
    assert len(words["L1"].statements) == 3
    assert words["L2"].word == "blocked"
    statements = read_evidence(tmp_path / "out").statements
    assert {one.predicate.exit for one in statements if one.asked.level == "L1"} == {6}
    tried = [one.asked.change for one in statements if one.asked.change]
    assert len(tried) == 2


def test_an_ep_that_is_installed_and_finds_no_device_here_is_blocked_too(net, tmp_path):
    """The plugin loads, and offers nothing on this machine: that is no fault of the model."""
    pytest.importorskip("onnxruntime_ep_openvino")
    found = mw.support.run(
        net, tmp_path / "out", targets=["openvino-npu"], precisions=["fp32"], ceiling="L1", ladder_only=True
    )
    last = found.rows[-1]
    if last.word == "pass":
        pytest.skip("this machine has an NPU of Intel")
    assert (last.level, last.word, last.blocked_by) == ("L1", "blocked", "host")
    assert "offers" in last.reasons[0]


def test_no_data_blocks_the_task_and_not_the_march(net, tmp_path):
    found = mw.support.run(net, tmp_path / "out", ceiling="L3", ladder_only=True)
    last = found.rows[-1]
    assert (last.level, last.word, last.blocked_by) == ("L3", "blocked", "data")


@pytest.mark.proof
def test_artifacts_that_agree_and_open_elsewhere_are_portable(net, tmp_path):
    found = mw.support.run(net, tmp_path / "out", precisions=["fp32", "fp16"], ceiling="L5", ladder_only=True)
    last = [row for row in found.rows if row.level == "L5"]
    # What L4 says depends on who else works on this machine.
    assert [row.word for row in last] in (["pass", "pass"], ["not-reached", "not-reached"])


def test_a_graph_that_has_its_precision_already_is_left_as_it_is(net, tmp_path):
    """Asked for once more it would be quantized once more."""
    mw.build(net, "cpu", precision="w8a8", output=tmp_path / "built")
    given = tmp_path / "built/model.onnx"
    found = mw.support.run(given, tmp_path / "out", ceiling="L0", ladder_only=True)
    assert [(row.precision, row.word) for row in found.rows] == [("w8a8", "pass")]
    (built,) = (tmp_path / "out/builds").rglob("model.onnx")
    kinds = [[node.op_type for node in models.onnx.load(path).graph.node] for path in (given, built)]
    assert kinds[0] == kinds[1]


def test_a_metric_that_is_a_script_goes_beside_its_claim(net, tmp_path):
    script = tmp_path / "score.py"
    script.write_text(
        "def right(outputs, row):\n    return float(outputs['logits'].argmax() == row['label'])\n\n\nright.span = 1.0\n"
    )
    asked = {"data": str(net.with_name("rows.npz")), "metric": f"{script}:right", "max_drop": "5pt", "ceiling": "L3"}
    found = mw.support.run(net, tmp_path / "out", **asked, ladder_only=True)
    assert found.rows[-1].word == "pass"
    claim = read_claim(tmp_path / "out")
    assert (claim.metric, claim.script.name) == ("score.py:right", "score.py")
    assert (tmp_path / "out/score.py").read_bytes() == script.read_bytes()
    script.write_text("def right(outputs, row):\n    return 1.0\n")
    with pytest.raises(UsageError, match="another claim"):
        mw.support.run(net, tmp_path / "out", **asked, ladder_only=True)


def test_a_dataset_that_is_gone_is_bad_input(net, tmp_path):
    with pytest.raises(InputError):
        mw.support.run(net, tmp_path / "out", data=mw.Data(str(tmp_path / "gone.npz")), ceiling="L3", ladder_only=True)
    assert not (tmp_path / "out" / "claim.toml").exists()


def test_a_batch_ends_every_row_in_a_state(net, tmp_path):
    (tmp_path / "list.toml").write_text(
        f'[defaults]\nceiling = "L0"\nseeds = 1\n'
        f'[[models]]\nmodel = "{net}"\n[[models]]\nname = "gone"\nmodel = "{tmp_path}/gone.onnx"\n'
    )
    found = mw.support.batch(tmp_path / "list.toml", tmp_path / "out")
    assert [(row.name, row.state, row.reached) for row in found.rows] == [
        ("net.onnx", "pass", "L0"),
        ("gone", "not-reached", None),
    ]
    assert found.rows[1].exit_code == 3
    assert "gone.onnx" in found.rows[1].why


def test_a_list_with_an_unknown_key_is_refused(tmp_path):
    (tmp_path / "list.toml").write_text('[[models]]\nmodel = "a"\nceilling = "L0"\n')
    with pytest.raises(InputError, match="is not right") as found:
        mw.support.batch(tmp_path / "list.toml", tmp_path / "out")
    assert "ceiling" in found.value.fix


def test_a_run_that_is_killed_goes_on_and_no_line_is_lost_or_doubled(net, tmp_path):
    out = tmp_path / "out"
    call = [
        str(Path(sys.executable).with_name("wright")),
        "support",
        "ladder",
        str(net),
        "-o",
        str(out),
        "--ceiling",
        "L2",
        "-q",
    ]
    for lines in (1, 2):
        _kill_at(call, out, lines)
    last = subprocess.run([*call, "--json"], capture_output=True, text=True, check=False)
    assert last.returncode == 0, last.stderr
    rows = [(row["level"], row["word"]) for row in json.loads(last.stdout)["rows"]]
    assert rows == [("L0", "pass"), ("L1", "pass"), ("L2", "pass")]
    found = read_evidence(out)
    assert not found.flaws
    asked = [one.asked for one in found.statements]
    assert len(set(asked)) == len(asked) == 4


def _kill_at(call, out, lines):
    """As soon as so many lines are there."""
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < until:
        if (out / EVIDENCE).is_file() and (out / EVIDENCE).read_bytes().count(b"\n") >= lines:
            break
        time.sleep(0.01)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
