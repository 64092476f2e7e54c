"""What the rows of a build say."""

from dataclasses import replace

import pytest

from modelwright.report.build import _check, _grown
from modelwright.stages.check import CheckOutcome
from modelwright.stages.optimize import ORT_IMPORT, OptimizeOutcome, PassEffect
from modelwright.targets import OpTally
from support.results import made

OPENED = replace(
    made(CheckOutcome), passed=True, opened=True, nodes=12, on_target=5, in_float=(), samples=0, reason=None
)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ({}, "5 of 12 nodes on it"),
        ({"LSTM": 1}, "5 of 12 nodes on it (the CPU has LSTM)"),
        ({"Erf": 6, "LSTM": 1}, "5 of 12 nodes on it (the CPU has 6 Erf, LSTM)"),
        (
            dict.fromkeys(("Erf", "Det", "LSTM", "GRU", "Loop"), 1),
            "5 of 12 nodes on it (the CPU has Erf, Det, LSTM, GRU, …)",
        ),
    ],
)
def test_the_row_of_the_target_names_what_it_leaves_to_the_cpu(left, words):
    outcome = replace(OPENED, left=tuple(OpTally(op, count) for op, count in left.items()))
    assert _check(outcome).endswith(f": {words}")


@pytest.mark.parametrize(
    ("fired", "before", "after", "words"),
    [
        (
            True,
            94 << 10,
            34 << 20,
            "; GREW from 94.0 KiB to 34.0 MiB: constant_folding stores what the graph computed; "
            "-constant_folding in --passes leaves it out",
        ),
        (False, 94 << 10, 34 << 20, "; GREW from 94.0 KiB to 34.0 MiB"),
        (True, 30 << 20, 34 << 20, ""),
        (True, 1 << 10, 900 << 10, ""),
        (True, None, 34 << 20, ""),
    ],
)
def test_a_file_that_becomes_much_larger_by_optimizing_does_not_go_unsaid(fired, before, after, words):
    folding = PassEffect("constant_folding", fired, 2, 1, (), None)
    assert _grown(replace(made(OptimizeOutcome), steps=(folding,)), before, after) == words


def test_what_inlining_may_have_stored_is_not_called_folding():
    steps = (PassEffect(ORT_IMPORT, True, 2, 30, (), None), PassEffect("constant_folding", True, 30, 29, (), None))
    outcome = replace(made(OptimizeOutcome), steps=steps)
    assert _grown(outcome, 1 << 20, 34 << 20) == "; GREW from 1.0 MiB to 34.0 MiB"
