"""What the answers of a target say, and which of them are kept."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from modelwright.metrics import compare
from modelwright.stages.check import CHECK, CheckOutcome, Computed, _compute
from modelwright.stages.check._enough import is_clear, says_enough
from modelwright.stages.check._run import _Answers, _compared, _verdict
from modelwright.stages.validate import CLOSE, Measure, OutputParity
from modelwright.targets import parse_target

COMPUTED = CheckOutcome(
    passed=True,
    reason=None,
    fix=None,
    chip=None,
    engine="QNN",
    simulated=True,
    opened=True,
    nodes=3,
    on_target=3,
    left=(),
    samples=2,
    bound=0.95,
    outputs=(),
    compute_s=1.0,
    installed=True,
)


@pytest.mark.parametrize(
    ("passed", "reason", "kept"),
    [
        (True, None, True),
        (False, "it computes something else", False),
        (None, "not computed: its 90.0 GMACs would take the simulator about 750 s", True),
        (None, "the simulated run did not end within 60 s", False),
    ],
)
def test_an_answer_that_may_be_another_one_on_a_quiet_machine_is_not_kept(passed, reason, kept):
    assert CHECK.keeps(replace(COMPUTED, passed=passed, reason=reason)) is kept


@pytest.mark.parametrize(("simulated", "kept"), [(True, True), (False, False)])
def test_other_numbers_are_kept_of_a_simulator_and_asked_again_of_a_device(simulated, kept):
    computed = OutputParity("y", "other", 0.1, 1.0, -3.0, None, identical=False, reason=None)
    assert CHECK.keeps(replace(COMPUTED, passed=False, simulated=simulated, outputs=(computed,))) is kept


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


SURE = np.eye(1, 1000, 7, dtype=np.float32) + 1e-4 * numbers(1, 1000)
PICTURE = {"x": numbers(1, 3, 8, 8)}


@pytest.mark.parametrize(
    ("feed", "answer", "enough"),
    [
        (PICTURE, numbers(1, 1000), True),
        (PICTURE, numbers(1, 16, 8, 8), True),
        (PICTURE, numbers(1, 5), False),
        (PICTURE, SURE, False),
        (PICTURE, np.full((1, 1000), 3.0, np.float32), False),
        (PICTURE, np.where(numbers(1, 1000) > 2, np.nan, numbers(1, 1000)), False),
        (PICTURE, np.arange(1000), False),
        # Two samples have the 8 numbers for each column that a slice is judged by, one has not.
        (PICTURE, numbers(1, 5, 30), False),
        ({"x": np.zeros((1, 3, 8, 8), np.float32)}, numbers(1, 1000), False),
        ({"x": PICTURE["x"], "t": np.zeros(1, np.float32)}, numbers(1, 1000), False),
        ({"ids": np.arange(16)[None], "mask": np.ones((1, 16), np.int64)}, numbers(1, 1000), True),
        ({"ids": np.array([[101, 102, 0, 0, 0, 0, 0, 0, 0]])}, numbers(1, 1000), False),
    ],
)
def test_one_answer_is_enough_where_it_has_many_numbers_and_the_sample_is_no_blank(feed, answer, enough):
    assert says_enough(feed, {"y": answer}, 2) is enough


def seen(value, bound=0.99, *, passed=True, **more):
    measure = Measure(CLOSE, value, bound, passed, "")
    return OutputParity("y", "other", value, 0.0, 40.0, None, identical=False, reason=None, measures=(measure,), **more)


def test_only_a_pass_that_is_not_narrow_is_clear():
    assert is_clear([seen(0.9999)])
    assert not is_clear([seen(0.9999), seen(0.991)])
    assert not is_clear([seen(0.9999, passed=False)])
    assert not is_clear([replace(seen(0.9999), measures=())])
    assert not is_clear([replace(seen(0.9999), reason="shapes differ")])
    assert is_clear([replace(seen(1.0), identical=True, measures=())])
    assert not is_clear([])


@pytest.mark.parametrize(
    ("measure", "clear"),
    [
        (Measure("scores", 14.1, 10.0, True, "", decibels=True), True),
        (Measure("scores", 12.9, 10.0, True, "", decibels=True), False),
        (Measure("scores", None, 10.0, True, "no difference", decibels=True), True),
        (Measure("same detections", 1.0, 0.95, True, "3 of 3"), True),
        (Measure("same detections", 2 / 3, 0.95, True, "one near-tie never decides"), False),
        (Measure("same detections", None, 0.95, True, "nothing is detected in it"), False),
    ],
)
def test_one_sample_is_clear_only_by_all_of_its_measures(measure, clear):
    item = seen(0.9999)
    assert is_clear([replace(item, measures=(*item.measures, measure))]) is clear


@pytest.mark.parametrize(
    ("random", "shares", "cosine", "noise_db", "most", "passed"),
    [
        (False, False, 0.998, 24.0, 0.1, False),
        (True, False, 0.998, 24.0, 0.1, None),
        (True, False, 0.70, 3.0, 0.1, False),
        # Twice as large everywhere: of the same direction, and wrong.
        (True, False, 1.0, 0.0, 0.1, False),
        # A detector sees nothing in noise: chances of a ten-thousandth, and a half float has no finer ones.
        (True, True, 0.84, 0.5, 1e-4, None),
        (True, True, 0.84, 0.5, 0.6, False),
        (False, True, 0.84, 0.5, 1e-4, False),
    ],
)
def test_of_made_up_inputs_only_answers_that_no_rounding_explains_are_wrong(
    random, shares, cosine, noise_db, most, passed
):
    item = replace(seen(cosine, 0.999, passed=False), sqnr_db=noise_db, max_abs=most, within_one=shares)
    verdict, reason, _ = _compared(_Answers((item,), random))
    assert verdict is passed
    assert reason.startswith("made-up inputs do not tell" if passed is None else "it computes something else")


def test_made_up_inputs_never_show_that_what_was_rounded_to_integers_is_good():
    """A detector in w8a16 passed on noise, and lost half of what it saw in pictures."""
    verdicts = [
        _compared(_Answers((seen(0.9999),), random, integers))[0]
        for random in (True, False)
        for integers in (True, False)
    ]
    assert verdicts == [None, True, True, True]


class Simulator:
    """A session that answers with ones."""

    facts = SimpleNamespace(ep="sim", nodes_per_ep={"sim": 1}, simulated=True)

    def run(self, feed):
        return {"y": np.ones(1, np.float32)}


@pytest.mark.parametrize(("each_s", "answers", "cut_short"), [(0.4, 2, False), (0.6, 1, True)])
def test_a_simulator_that_has_no_time_for_all_samples_says_so(monkeypatch, each_s, answers, cut_short):
    # Began, began to wait and ended, for each sample; what it took to wait is nothing.
    clock = itertools.chain([0.0, 0.0, each_s, each_s, 2 * each_s], itertools.repeat(2 * each_s))
    monkeypatch.setattr(_compute, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    computed = Computed([PICTURE, PICTURE], 1.0, None)
    computed.use(Simulator())
    assert (len(computed.answers), computed.cut_short) == (answers, cut_short)


@pytest.mark.parametrize(
    ("integers", "cut_short", "value", "passed"),
    [
        (True, True, 0.991, None),
        (True, True, 0.9999, True),
        (True, False, 0.991, True),
        (False, True, 0.991, True),
    ],
)
def test_a_part_of_the_samples_of_a_quantized_model_is_enough_only_where_it_is_clear(
    integers, cut_short, value, passed
):
    computed = SimpleNamespace(problem=None, answers=[{}], cut_short=cut_short, unfinished=None, fix="")
    placed = SimpleNamespace(status="placed", virtual=False, eps=[SimpleNamespace(ep="QNNExecutionProvider")])
    found = _verdict(parse_target("qnn-npu"), placed, computed, _Answers((seen(value),), integers=integers))
    assert found[0] is passed
    assert passed is not None or not CHECK.keeps(replace(COMPUTED, passed=None, reason=found[1]))


def test_an_answer_that_is_no_number_on_the_cpu_either_is_no_fault_of_the_target():
    """Samples that hold NaN: there is nothing to compare with. Another output may be wrong all the same."""
    reference, candidate = (
        replace(seen(0.9999), reason=compare(*pair).problem, measures=())
        for pair in ((np.full(4, np.nan), np.ones(4)), (np.ones(4), np.full(4, np.nan)))
    )
    assert _compared(_Answers((seen(0.9999), reference)))[0] is None
    assert _compared(_Answers((reference, candidate)))[0] is False
    assert _compared(_Answers((reference, seen(0.5, passed=False))))[0] is False
