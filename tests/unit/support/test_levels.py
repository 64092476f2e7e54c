"""What each level asks for: one value changed, and the word is another one."""

from dataclasses import replace

import pytest

from modelwright._json import plain
from modelwright.stages.validate import OutputParity
from modelwright.support._levels import (
    JUDGES,
    Hindrance,
    OutputSeen,
    OwedSeen,
    ParitySeen,
    PortableSeen,
    RunsSeen,
    SpeedSeen,
    StructureSeen,
    TaskSeen,
    judge_level,
    parity_cosine,
    precision_fits,
)


def _output(cosine=1.0, max_abs=0.0, largest=1.0, reason=None, nothing=False):
    found = OutputParity("logits", "scores", cosine, max_abs, None, None, False, reason, nothing=nothing)
    return OutputSeen(found, largest)


_STRUCTURE = StructureSeen(opset=(18, 18), precision=("fp32", "fp32"), vocabulary=(99, 99), labels=(3, 3))
_RUNS = RunsSeen(wanted="CPUExecutionProvider", bound="CPUExecutionProvider", inputs=24, asked=24)
_PARITY = ParitySeen(samples=24, outputs=(_output(),), reference="torch")
_TASK = TaskSeen(verdict="pass", metric="accuracy", candidate=0.9, reference=0.9)
_SPEED = SpeedSeen(timing_valid=True, sessions=5, p50_ms=1.0, p99_ms=1.5)
_PORTABLE = PortableSeen(agree={"cpu fp32": True}, opened="onnx reference", moved_agrees=True, cpu="pass")
_GOOD = {"L0": _STRUCTURE, "L1": _RUNS, "L2": _PARITY, "L3": _TASK, "L4": _SPEED, "L5": _PORTABLE}


def _word(level, **changes):
    found = judge_level(level, plain(replace(_GOOD[level], **changes)))
    assert found.word == "pass" or found.reasons
    return found.word


@pytest.mark.parametrize("level", _GOOD)
def test_what_is_asked_for_passes(level):
    assert _word(level) == "pass"
    assert JUDGES[level][2].startswith(f"{level}-")


@pytest.mark.parametrize("level", _GOOD)
def test_whatever_failed_on_the_way_fails_and_whatever_hindered_is_blocked(level):
    assert _word(level, failure="it ended with a signal") == "fail"
    found = judge_level(level, plain(replace(_GOOD[level], hindrance=Hindrance("host", "no such EP", ("plain",)))))
    assert (found.word, found.blocked_by) == ("blocked", "host")
    assert "plain" in found.reasons[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"checker": "No Op registered for Foo"},
        {"opset": (17, 18)},
        {"precision": ("fp16", "fp32")},
        {"precision": ("w8a8", "fp32")},
        {"vocabulary": (99, 98)},
        {"labels": (3, 2)},
        {"new_weights": ("classifier.weight",)},
        {"owed": (OwedSeen("bbox", True, None),)},
        {"owed": (OwedSeen("bbox", True, "no value can be made up", general=True),)},
        {"outside": ("../weights.bin",)},
        {"strangers": ("model.onnx.data",)},
        {"links": ("encoder.hidden feeds decoder.hidden of another shape",)},
    ],
)
def test_one_thing_that_is_wrong_fails_the_structure(changes):
    assert _word("L0", **changes) == "fail"


def test_an_argument_that_is_listed_with_its_reason_or_changes_nothing_is_no_fault():
    fine = (OwedSeen("attention_mask", True, "padding stands on the right"), OwedSeen("head_mask", False, None))
    assert _word("L0", owed=(*fine, OwedSeen("pixel_mask", None, None))) == "pass"
    assert _word("L0", unasked=("the arguments of its forward",)) == "inconclusive"


@pytest.mark.parametrize(
    ("claimed", "found", "fits"),
    [
        ("fp32", "fp32", True),
        ("fp16", "fp32", False),
        ("fp16", "mixed(fp16 60% + fp32 40%)", False),
        ("w8a8", "w8a8", True),
        ("w8a8", "w8a16", False),
        ("w8a8", "mixed(w8 97% + fp32 3%, a8)", True),
        ("w8a8", "mixed(w4 97% + fp32 3%, a8)", False),
        ("w8a8", None, False),
        ("dynamic", "dynamic int8", True),
        ("dynamic", "fp32", False),
        ("w8a8+fp16", "w8a8", True),
    ],
)
def test_a_precision_is_what_the_weights_are_and_not_what_a_name_says(claimed, found, fits):
    assert precision_fits(claimed, found) is fits


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"bound": "CPUExecutionProvider", "wanted": "QNNExecutionProvider"}, "fail"),
        ({"exit": -11}, "fail"),
        ({"not_finite": ("logits",)}, "fail"),
        ({"constant": ("logits",)}, "fail"),
        ({"inputs": 7}, "inconclusive"),
    ],
)
def test_running_is_on_the_claimed_ep_with_answers_that_say_something(changes, word):
    assert _word("L1", **changes) == word


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"foreign": ("families.vilt",)}, "fail"),
        ({"outputs": (_output(0.99998),)}, "fail"),
        ({"outputs": (_output(1.0, 0.0011),)}, "fail"),
        ({"outputs": (_output(1.0, 0.0011, largest=10.0),)}, "pass"),
        ({"outputs": (_output(), _output(reason="shapes differ"))}, "fail"),
        ({"outputs": (_output(0.7, 1e-7, nothing=True),)}, "inconclusive"),
        ({"outputs": (_output(0.7, 1e-7, nothing=True), _output(0.7, 0.1))}, "fail"),
        ({"outputs": (_output(0.998),), "precision": "fp16"}, "fail"),
        ({"outputs": (_output(0.9991, 5.0),), "precision": "fp16"}, "pass"),
        ({"outputs": (_output(0.94),), "precision": "w8a16", "real": True}, "fail"),
        ({"outputs": (_output(0.96),), "precision": "w8a16", "real": True}, "pass"),
        ({"outputs": (_output(0.96),), "precision": "w8a16"}, "inconclusive"),
        ({"outputs": (_output(0.89),), "precision": "w8a8"}, "fail"),
        ({"samples": 23}, "inconclusive"),
        ({"outputs": ()}, "inconclusive"),
        ({"writes": True, "steps": 8, "texts": (2, 3)}, "fail"),
        ({"writes": True, "steps": 8, "texts": (3, 3)}, "pass"),
        ({"writes": True, "steps": 7, "texts": (3, 3)}, "inconclusive"),
        ({"writes": True, "steps": 8, "texts": (2, 3), "precision": "fp16"}, "pass"),
    ],
)
def test_parity_is_of_the_worst_output(changes, word):
    assert _word("L2", **changes) == word


def test_the_bounds_of_parity_are_those_that_are_written_down():
    assert [parity_cosine(word) for word in ("fp32", "fp16", "w8a16", "w8a8")] == [0.99999, 0.999, 0.95, 0.90]
    assert parity_cosine("fp32", on_chip=True) == 0.999


@pytest.mark.parametrize(
    ("verdict", "word"), [("fail", "fail"), ("inconclusive", "inconclusive"), (None, "inconclusive")]
)
def test_the_task_is_what_the_evaluation_says(verdict, word):
    assert _word("L3", verdict=verdict, reasons=("so it was",)) == word


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"timing_valid": False}, "blocked"),
        ({"timing_valid": None}, "blocked"),
        ({"sessions": 4}, "inconclusive"),
        ({"p99_ms": 2.1}, "fail"),
        ({"limit_ms": 0.9}, "fail"),
        ({"p99_ms": 2.1, "busy": "others worked"}, "inconclusive"),
        ({"busy": "others worked"}, "pass"),
        ({"faster": True}, "inconclusive"),
        ({"faster": True, "compared": "equivalent"}, "fail"),
        ({"faster": True, "compared": "improved"}, "pass"),
    ],
)
def test_speed_is_valid_steady_and_within_the_limit(changes, word):
    assert _word("L4", **changes) == word


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"agree": {"qnn-npu w8a16": False}}, "fail"),
        ({"moved_agrees": False}, "fail"),
        ({"cpu": "fail"}, "fail"),
        ({"cpu": None}, "inconclusive"),
        ({"opened": None, "moved_agrees": None}, "blocked"),
    ],
)
def test_portable_is_the_same_answers_everywhere(changes, word):
    assert _word("L5", **changes) == word
