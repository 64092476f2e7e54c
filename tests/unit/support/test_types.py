"""Rows, the gate's word, and what a run says as a whole."""

import io

import pytest

from modelwright.report.render import render
from modelwright.report.screen import Screen
from modelwright.support import (
    GATE_WORDS,
    LEVELS,
    ROW_WORDS,
    ArmCount,
    BatchRow,
    Claim,
    ClaimedCase,
    ClaimedFile,
    ClaimedSource,
    GateResult,
    LadderRow,
    SupportBatch,
    SupportRun,
    gate_fits,
    levels_to,
    worst_row,
)

_SHA = "ab" * 32


def _run(words, *, gate=None, gain=None, outcome="supported"):
    mine = {"effort": "recipe", "recipe": ClaimedFile("r.toml", _SHA)} if outcome != "supported" else {"effort": "none"}
    claim = Claim(
        ceiling="L2",
        outcome=outcome,
        source=ClaimedSource(name="tiny", digest=_SHA),
        cases=(ClaimedCase("cpu", "fp32"),),
        **mine,
    )
    rows = tuple(
        LadderRow(level, "cpu", "fp32", None, word, f"{level}-1") for level, word in zip(LEVELS, words, strict=False)
    )
    found = gate and GateResult(gate, "gate-1", ("why",), (ArmCount("base", 5, 5, 0.46, 1),))
    return SupportRun(claim, claim.digest, "folder", found, rows, gain=gain)


@pytest.mark.parametrize(
    ("words", "state", "reached"),
    [
        (("pass", "pass", "pass"), "pass", "L2"),
        (("pass", "fail", "not-reached"), "fail", "L0"),
        (("pass", "blocked", "pass"), "blocked", "L0"),
        (("pass", "pass", "inconclusive"), "inconclusive", "L1"),
        (("fail", "not-reached", "not-reached"), "fail", None),
        ((), "not-reached", None),
    ],
)
def test_a_run_is_as_good_as_its_worst_row_and_reaches_what_passes_without_a_gap(words, state, reached):
    found = _run(words)
    assert found.state == state
    assert found.reached == reached


def test_the_gate_bears_a_claim_out_or_not():
    fits = {
        outcome: {word for word in GATE_WORDS if gate_fits(outcome, word)}
        for outcome in ("supported", "delta", "needed")
    }
    assert fits == {"supported": {"no-delta"}, "delta": {"delta", "needed"}, "needed": {"needed"}}


def test_a_delta_without_a_proven_gain_leaves_the_claim_open():
    words = ("pass", "pass", "pass")
    assert _run(words, gate="delta", outcome="delta").claim_met is None
    assert _run(words, gate="delta", outcome="delta", gain="the base fails L2").claim_met is True
    assert _run(words, gate="no-delta", outcome="delta").claim_met is False
    assert _run(words, gate="delta", outcome="needed", gain="x").claim_met is False


def test_levels_and_words_are_in_one_table():
    assert levels_to("L2") == ("L0", "L1", "L2")
    assert set(ROW_WORDS) == {"pass", "fail", "inconclusive", "blocked", "not-reached"}
    assert worst_row(["pass", "blocked"]) == "blocked"


@pytest.mark.parametrize("width", [80, 120])
def test_every_answer_is_rendered(width):
    gate = GateResult("needed", "gate-1", ("without it nothing builds",), (ArmCount("base", 0, 5, 1.0, 0, "no class"),))
    batch = SupportBatch((BatchRow("tiny", "out/tiny", "pass", "L2", "L2", "needed"),))
    for result in (gate, _run(("pass", "fail", "not-reached"), gate="no-delta"), batch):
        text = io.StringIO()
        render(result, Screen(text, width=width))
        assert text.getvalue()
        assert max(map(len, text.getvalue().splitlines())) <= width
