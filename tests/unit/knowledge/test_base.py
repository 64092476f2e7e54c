"""Findings that came with the package, and the user's own."""

import dataclasses

import pytest

from modelwright.errors import InputError, UsageError
from modelwright.knowledge import (
    AXES,
    SPECIMENS,
    Evidence,
    KbFinding,
    KnowledgeBase,
    family_of,
    lint,
    read_change,
    read_finding,
    shipped_findings,
)


def draft(**other):
    said = {
        "id": "mine",
        "kind": "fact",
        "says": "one thread is faster",
        "measure": "speed",
        "origin": "a test",
        "status": "draft",
        "reason": "seen once",
        "target": "cpu",
        "changes": ("threads=1",),
        "expects": "better",
    }
    return KbFinding(**{**said, **other})


@pytest.fixture
def base(tmp_path):
    return KnowledgeBase(folder=tmp_path, evidence=Evidence())


def test_37_findings_and_14_lessons_of_others_are_there_each_with_its_reason():
    imported = [one for one in shipped_findings() if "891" in one.origin]
    lessons = [one for one in imported if one.kind == "lesson"]
    assert (len(imported) - len(lessons), len(lessons)) == (37, 14)
    assert all(one.reason for one in imported)
    assert [one.id for one in imported if one.audit == "proven"] == ["npu-014"]
    assert {one.id for one in imported if one.audit == "hazard"} == {"npu-006", "gpu-010"}
    rest = {one.status for one in imported if one.audit is None and one.kind != "lesson"}
    assert rest == {"quarantined", "retracted"}


def test_a_retracted_finding_is_there_with_its_reason_and_steers_nothing(base):
    opset = base.standing("npu-001")
    assert (opset.status, opset.steers, opset.prunes) == ("retracted", False, False)
    assert "opset 17" in opset.why
    assert {item.model: round(item.log_ratio, 2) for item in opset.finding.published}["dinov2-small"] == 0.37


def test_what_comes_with_the_package_is_sound(base):
    assert lint(base, AXES, SPECIMENS).problems == ()


def test_what_is_added_and_decided_is_kept_in_order_and_nothing_is_taken_back(tmp_path, base):
    base.add(draft())
    base.decide("mine", "retracted", "somebody", "it was noise")
    again = KnowledgeBase(folder=tmp_path, evidence=Evidence())
    assert again.standing("mine").status == "retracted"
    assert again.standing("mine").why == "it was noise (somebody)"
    assert [event.event for event in again.history("mine")] == ["added", "decided"]
    with pytest.raises(UsageError, match="already"):
        again.add(draft(says="another claim"))


def test_a_line_that_a_kill_cut_short_is_not_there_and_spoils_no_other(tmp_path, base):
    base.add(draft())
    journal = tmp_path / "findings.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"event":"added","id":"ha')
    again = KnowledgeBase(folder=tmp_path, evidence=Evidence())
    assert "mine" in again.findings
    again.add(draft(id="other"))
    assert {"mine", "other"} <= set(KnowledgeBase(folder=tmp_path, evidence=Evidence()).findings)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"expect": "better"}, "expect"),
        ({"kind": "rumour"}, "rumour"),
        ({"published": [{"model": "m", "befor": 1.0, "after": 1.0}]}, "befor"),
    ],
)
def test_a_misspelt_key_or_word_of_a_finding_is_an_error(form, said):
    whole = {name: value for name, value in dataclasses.asdict(draft()).items() if value is not None}
    with pytest.raises(InputError, match=said):
        read_finding({**whole, **form}, "here")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"changes": ("+gelu_fusoin",)}, "gelu_fusion"),
        ({"changes": ("thread=1",)}, "threads"),
        ({"changes": ("precision=w8a61",)}, "w8a61"),
        ({"target": "qnn-nup"}, "qnn-npu"),
        ({"foreign": ("gelu_fusion",)}, "is a pass here"),
        ({"models": ("residua",)}, "no specimen"),
        ({"status": "confirmed"}, "reaches only 'none'"),
        ({"evidence": ("0" * 64,)}, "not among the records"),
    ],
)
def test_lint_names_what_is_misspelt_missing_or_called_more_than_it_is(base, other, said):
    base.findings["mine"] = draft(**other)
    found = [problem for problem in lint(base, AXES, SPECIMENS).problems if problem.finding == "mine"]
    assert any(said in problem.problem for problem in found)


def test_a_pass_is_a_change_by_its_own_name_only():
    assert read_change("+gelu_fusion").pass_name == "gelu_fusion"
    with pytest.raises(InputError):
        read_change("+gelu-fusion")


@pytest.mark.parametrize(
    ("operators", "family"),
    [
        ({"Conv": 20, "Relu": 17, "Gemm": 1, "Softmax": 1}, "convolutional"),
        ({"Gemm": 3, "Relu": 2, "Softmax": 1}, "dense"),
        ({"MatMul": 24, "Softmax": 2, "Transpose": 8}, "transformer"),
        ({"Conv": 1, "MatMul": 24, "Softmax": 2, "Transpose": 8}, "vision transformer"),
        ({"com.microsoft.Attention": 12, "MatMul": 36}, "transformer"),
        ({"LSTM": 1, "Gemm": 1}, "recurrent"),
        ({"Add": 1}, "other"),
    ],
)
def test_the_class_of_a_graph_is_read_off_its_operators(operators, family):
    assert family_of(operators) == family
