"""What to take for several devices, from what a search for each has found."""

import pytest

from modelwright.search import TuneLimits, TuneResult, TuneRow, portfolio
from support.results import made


def row(label, word="no gain", effect=None, reason=""):
    return TuneRow(label, word, reason, effect)


def found(target, *rows, precision="fp32", timed=True, **more):
    rows = (row("baseline", "baseline"), *rows)
    said = {"champion": "baseline", "settings": {}, "operators": ("Conv", "Relu"), "limits": TuneLimits(1.0), **more}
    return made(
        TuneResult,
        model="m.onnx",
        target=target,
        rows=rows,
        precision=precision,
        timed=timed,
        **said,
    )


def test_one_recipe_for_all_is_the_best_worst_case():
    one = found("cpu", row("+a", "improved", 0.30), row("+b", "improved", 0.10), row("threads=1", "improved", 0.5))
    other = found("openvino-cpu", row("+a", "regressed", -0.05), row("+b", "improved", 0.08))
    answer = portfolio([one, other])
    assert (answer.one, answer.worst) == ("+b", 0.08)
    assert {one.label: one.front for one in answer.rows} == {"baseline": False, "+a": True, "+b": True}
    assert "+8.0% at worst" in answer.reason


def test_a_limit_that_is_broken_on_one_target_is_no_matter_of_degree():
    one = found("cpu", row("+a", "improved", 0.30))
    other = found("qnn-npu", row("+a", "placement", reason="it leaves 3 more nodes"), timed=False)
    answer = portfolio([one, other])
    assert answer.one == "baseline"
    assert answer.rows[1].why == "placement for qnn-npu: it leaves 3 more nodes"
    assert not answer.rows[1].front


def test_what_was_not_tried_everywhere_is_not_for_all():
    answer = portfolio([found("cpu", row("+a", "improved", 0.3)), found("openvino-cpu")])
    assert answer.one == "baseline"
    assert answer.rows[1].why == "not tried for openvino-cpu"


def test_a_target_without_times_takes_it_or_not_and_that_is_said():
    one = found("cpu", row("+a", "improved", 0.3))
    other = found("qnn-npu", row("+a", "not measured"), timed=False)
    answer = portfolio([one, other])
    assert answer.one == "+a"
    assert "qnn-npu takes it, and was not timed" in answer.reason


def test_a_variant_that_was_never_timed_where_times_are_measured_is_not_for_all():
    answer = portfolio([found("cpu", row("+a", "improved", 0.3)), found("openvino-cpu", row("+a", "not measured"))])
    assert answer.one == "baseline"


def test_where_nothing_was_timed_nothing_is_best():
    answer = portfolio([found("cpu", row("+a", "not measured"), limits=TuneLimits(1.0, objective="size"))])
    assert (answer.one, answer.rows[1].why) == (None, None)
    assert "nothing was timed" in answer.reason


def test_different_baselines_have_no_one_recipe():
    answer = portfolio([found("cpu"), found("qnn-npu", precision="w8a16", timed=False)])
    assert answer.one is None
    assert "fp32 for cpu, w8a16 for qnn-npu" in answer.reason


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({}, "portable"),
        ({"operators": ("Conv", "com.microsoft.FusedConv")}, "ep-portable"),
        ({"settings": {"opt.htp_performance_mode": "balanced"}}, "ep-portable"),
        ({"operators": ("com.microsoft.EPContext",)}, "device-locked"),
        ({"settings": {"threads": "1"}}, "portable"),
    ],
)
def test_where_a_champion_can_go(more, word):
    assert portfolio([found("cpu", **more)]).artifacts[0].word == word
