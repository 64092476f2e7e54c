"""Rules over graphs and targets: each one has a graph it speaks about and one it does not."""

import dataclasses

import pytest

from modelwright.errors import InputError
from modelwright.knowledge import (
    AUDIT,
    Evidence,
    GraphFacts,
    KbFinding,
    KnowledgeBase,
    advise,
    harmful,
    read_rules,
    shipped_rules,
)
from modelwright.pipeline._known import QUIET
from modelwright.stages.optimize import find_pass
from modelwright.targets import known_targets, parse_target

CONV = GraphFacts(
    {"Conv": 4, "Relu": 4},
    "convolutional",
    {"conv_activation_fusion": ("com.microsoft.FusedConv",)},
    "conv",
    ("avx2",),
)
ENCODER = GraphFacts(
    {"MatMul": 8, "Softmax": 2, "Transpose": 8, "LayerNormalization": 4},
    "transformer",
    {"skip_layer_norm_fusion": ("com.microsoft.SkipLayerNormalization",), "conv_activation_fusion": ()},
    "encoder",
    ("avx2",),
)
DENSE = GraphFacts({"Gemm": 3, "Relu": 2}, "dense", {"gemm_activation_fusion": ("com.microsoft.FusedGemm",)}, "dense")

# For each rule of the package: the target, the change, a graph it is about and one it is not about.
CASES = {
    "qnn-makes-fused-conv": ("qnn-npu", "+conv_activation_fusion", CONV, ENCODER),
    "qnn-makes-skip-layer-norm": ("qnn-npu", "+skip_layer_norm_fusion", ENCODER, CONV),
    "qnn-makes-fused-gemm": ("qnn-npu", "+gemm_activation_fusion", DENSE, CONV),
    # What findings are by themselves.
    "cpu-basic-level": ("cpu", "level=basic", CONV, ENCODER),
    "cpu-extended-level": ("cpu", "level=extended", CONV, ENCODER),
}


@pytest.fixture
def base(tmp_path, monkeypatch):
    """Whatever is installed here: the packages that the shipped records were made with."""
    found = KnowledgeBase(folder=tmp_path, evidence=Evidence())
    seen = {name: all_[-1] for one in found.standings() for name, all_ in one.scope.versions.items()}
    monkeypatch.setattr("modelwright.knowledge._standing.installed", seen.get)
    return found


def spoken(base, graph, target, change, **how):
    return {one.rule: one for one in advise(base, graph, parse_target(target), [change], **how).insights}


def test_every_rule_has_a_case():
    assert {rule.id for rule in shipped_rules()} <= set(CASES)


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_speaks_about_its_graph_and_target_and_no_other(base, rule):
    target, change, graph, other = CASES[rule]
    assert rule in spoken(base, graph, target, change)
    assert rule not in spoken(base, other, target, change)
    assert rule not in spoken(base, graph, "dml-gpu", change)


@pytest.mark.parametrize("rule", shipped_rules(), ids=lambda rule: rule.id)
def test_a_rule_stands_on_a_finding_that_is_confirmed_by_evidence(base, rule):
    assert base.findings[rule.finding].status in ("confirmed", "general")


def mine(base, **other):
    said = {
        "id": "mine",
        "kind": "hazard",
        "says": "it hurts",
        "measure": "speed",
        "origin": "a test",
        "status": "draft",
        "reason": "seen once",
        "target": "cpu",
        "changes": ("threads=1",),
        "expects": "worse",
    }
    base.findings["mine"] = KbFinding(**{**said, **other})
    return spoken(base, CONV, "cpu", "threads=1")["mine"]


@pytest.mark.parametrize("status", ["retracted", "quarantined"])
def test_what_was_retracted_or_is_in_quarantine_is_shown_and_does_nothing(base, status):
    found = mine(base, status=status)
    assert (found.did, "seen once" in found.why) == ("none", True)


def test_the_retracted_opset_of_dinov2_prunes_nothing_and_is_told(base):
    found = spoken(base, ENCODER, "qnn-npu", "opset=21")["npu-001"]
    assert (found.did, found.status) == ("none", "retracted")


def test_a_draft_sets_the_order_alone(base):
    found = mine(base)
    assert (found.did, found.status) == ("last", "draft")
    advice = advise(base, CONV, parse_target("cpu"), ["threads=1", "spinning=off"])
    assert advice.ordered(["threads=1", "spinning=off"]) == ["spinning=off", "threads=1"]
    assert mine(base, expects="better").did == "first"


def test_what_is_known_to_hurt_on_this_kind_of_cpu_is_left_out_and_on_another_comes_last(base):
    graph = dataclasses.replace(CONV, cpu=("avx2",))
    assert spoken(base, graph, "cpu", "level=basic")["cpu-basic-level"].did in ("dropped", "audited")
    other = dataclasses.replace(CONV, cpu=("avx2", "avx512_vnni"))
    found = spoken(base, other, "cpu", "level=basic")["cpu-basic-level"]
    assert (found.did, "other CPUs" in found.why) == ("last", True)


def test_one_in_twenty_of_what_is_left_out_runs_all_the_same_and_always_the_same_ones(base):
    def did(number):
        graph = dataclasses.replace(CONV, mark=f"graph {number}")
        return spoken(base, graph, "qnn-npu", "+conv_activation_fusion")["qnn-makes-fused-conv"].did

    answers = [did(number) for number in range(400)]
    assert set(answers) == {"dropped", "audited"}
    assert 0.5 / AUDIT < answers.count("audited") / len(answers) < 2 / AUDIT
    assert answers == [did(number) for number in range(400)]


def test_where_the_target_is_asked_a_finding_about_placement_only_sets_the_order(base):
    found = spoken(base, CONV, "qnn-npu", "+conv_activation_fusion", asks=True)["qnn-makes-fused-conv"]
    assert found.did in ("last", "none")


def test_a_build_takes_no_pass_that_is_known_to_hurt(base):
    names = ["conv_activation_fusion", "gelu_fusion"]
    assert set(harmful(base, CONV, parse_target("qnn-npu"), names)) == {"conv_activation_fusion"}
    assert harmful(base, CONV, parse_target("cpu"), names) == {}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('does = "drop"\naxis = "pass"\nadd = "Gelu"', "add"),
        ('does = "drop"\naxis = "pass"\nadds = "com.microsoft.FusedCnv"', "FusedConv"),
        ('does = "drop"\naxis = "pass"\nvalue = "+gelu_fusoin"', "gelu_fusion"),
        ('does = "forget"\naxis = "pass"', "forget"),
    ],
)
def test_a_misspelt_word_of_a_rule_is_an_error(row, said):
    with pytest.raises(InputError) as caught:
        read_rules(f'[one]\nfinding = "npu-006"\n{row}\n', "here")
    assert said in f"{caught.value} {caught.value.fix}"


@pytest.mark.parametrize("family", ["convolutional", "transformer", "other"])
def test_no_finding_of_the_package_is_against_a_pass_that_every_build_does(family):
    operators = {"Conv": 1, "MatMul": 1, "Softmax": 1, "LayerNormalization": 1, "Relu": 1, "Gemm": 1}
    graph = GraphFacts(operators, family, {name: find_pass(name).produces for name in QUIET})
    for target in known_targets():
        assert harmful(KnowledgeBase(), graph, target, sorted(QUIET)) == {}
