"""Before a search: what is tried first, last or not at all, and why."""

import pytest

from modelwright.knowledge import Advice, GraphFacts, Insight
from modelwright.search._advice import advice_for, ordered, spared
from modelwright.search._variant import AxisChange, Variant
from modelwright.store import Store
from modelwright.targets import parse_target

FUSED = "com.microsoft.FusedConv"
GRAPH = GraphFacts(
    {"Conv": 9, "Relu": 9, "Erf": 1},
    "convolutional",
    adds={"conv_activation_fusion": (FUSED,), "gelu_fusion": (), "layer_norm_fusion": (), "constant_sharing": ()},
    patterns={"conv_activation_fusion": 9, "gelu_fusion": 1, "attention_fusion": 2},
)


def change(axis, value):
    return Variant((AxisChange(axis, value),))


VARIANTS = (
    change("level", "basic"),
    change("pass", "+layer_norm_fusion"),
    change("pass", "+conv_activation_fusion"),
    change("pass", "+constant_sharing"),
    change("pass", "+gelu_fusion"),
)


@pytest.fixture
def advice(tmp_path):
    with Store(tmp_path / "store") as store:
        yield advice_for(VARIANTS, GRAPH, parse_target("qnn-npu"), store)


def test_every_candidate_has_a_reason(advice):
    assert all(advice.about(variant.label) for variant in VARIANTS)


def test_how_a_graph_looks_sets_the_order_and_leaves_nothing_out(advice):
    found = ordered(VARIANTS, advice)
    assert set(found) == set(VARIANTS)
    assert [one.label for one in found] == [
        "+gelu_fusion", "level=basic", "+constant_sharing", "+layer_norm_fusion", "+conv_activation_fusion"
    ]  # fmt: skip
    assert all(advice.dropped(variant.label) is None for variant in VARIANTS)


def test_a_finding_is_stronger_than_how_a_graph_looks(advice):
    (known,) = advice.about("+conv_activation_fusion")
    assert (known.did, known.finding) == ("last", "qnn-fused-conv")


def test_what_looks_right_and_does_nothing_is_told_as_not_tried(advice):
    (idle,) = [one for one in advice.insights if one.change == "+attention_fusion"]
    assert (idle.did, idle.finding) == ("absent", None)
    assert "left it as it was" in idle.why


def test_what_was_asked_for_by_name_is_not_said_to_be_left_out():
    known = Advice((Insight("level=basic", "dropped", "r", "f", "general", "it is slower"),))
    (said,) = spared(known).insights
    assert (said.did, spared(known).dropped("level=basic")) == ("last", None)
    assert "asked for by name" in said.why
