"""`wright kb` as a user types it."""

import importlib.util
import json
import platform
import sys

import pytest

from support import models

needs_simulator = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator exists on x86 Linux",
)


def test_findings_are_listed_and_a_retracted_one_is_shown_with_its_reason(wright):
    answer = wright("kb", "list", "--json")
    assert answer.code == 0, answer.err
    found = {one["finding"]["id"]: one for one in answer.json["findings"]}
    assert len([name for name in found if name.startswith(("npu-", "cpu-0", "gpu-", "dml-"))]) == 51
    assert found["npu-001"]["status"] == "retracted"
    shown = wright("kb", "show", "npu-001")
    assert shown.code == 0
    assert "retracted" in shown.out
    assert "the time follows the wall clock" in shown.out
    assert wright("kb", "show", "npu-01").code == 2


def test_the_knowledge_base_of_the_package_is_sound_and_a_deleted_record_of_ones_own_is_not(wright, tmp_path):
    assert wright("kb", "lint").code == 0
    journal = tmp_path / "home" / "kb" / "findings.jsonl"
    journal.parent.mkdir(parents=True)
    event = {"event": "observed", "at": "2026-11-17", "id": "qnn-fused-conv", "record": "0" * 64}
    journal.write_text(json.dumps(event) + "\n", encoding="utf-8")
    answer = wright("kb", "lint", "--json")
    assert (answer.code, answer.json["clean"]) == (1, False)
    assert [problem["finding"] for problem in answer.json["problems"]] == ["qnn-fused-conv"]
    journal.write_text(json.dumps({**event, "recrod": "0" * 64}) + "\n", encoding="utf-8")
    wrong = wright("kb", "list")
    assert wrong.code == 3
    assert "recrod" in wrong.err


def test_promotion_without_evidence_is_refused_and_a_person_can_retire_a_finding(wright):
    refused = wright("kb", "promote", "npu-002", "--by", "me", "--reason", "it sounds right")
    assert refused.code == 1
    assert "it reaches 'none'" in refused.out
    assert wright("kb", "retire", "qnn-fused-gemm", "--by", "me", "--reason", "not on my chip").code == 0
    shown = wright("kb", "show", "qnn-fused-gemm").out
    assert "not on my chip (me)" in shown
    assert wright("kb", "lint").code == 0


def test_what_cannot_be_asked_here_is_no_answer(wright):
    for name in ("npu-010", "npu-006", "npu-012"):
        answer = wright("kb", "verify", name)
        assert answer.code == 6, answer.err
        assert "cannot tell" in answer.out
        assert "\nnext: " in answer.out
    misspelt = wright("kb", "list", "--target", "qnn-npv")
    assert misspelt.code == 2
    assert "qnn-npu" in misspelt.err


@needs_simulator
def test_the_conv_fusion_hazard_is_reproduced_from_scratch_on_another_model_and_becomes_evidence(wright, tmp_path):
    models.save(models.conv_net(), tmp_path)
    before = wright("kb", "show", "qnn-fused-conv", "--json").json["finding"]
    answer = wright("kb", "verify", "qnn-fused-conv", "--model", "model.onnx", "--json")
    assert answer.code == 0, answer.err
    (experiment,) = answer.json["experiments"]
    assert (experiment["word"], experiment["arm"]["left"], experiment["agrees"]) == (
        "displaced",
        {"FusedConv": 1},
        True,
    )
    after = wright("kb", "show", "qnn-fused-conv", "--json").json["finding"]
    assert set(after["scope"]["models"]) - set(before["scope"]["models"]) == {"model"}
    assert wright("kb", "lint").code == 0
