"""The one timing loop, and what watches it."""

import statistics
import time

import pytest

from ep.measure import tasks
from modelwright.measure import LegPlan
from modelwright.worker import run
from support import models


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))


@pytest.fixture
def model(tmp_path):
    return str(models.save(models.mlp(), tmp_path))


def answer(call):
    return run(call, timeout=60).unwrap()


def test_iterations_and_warm_up_are_exact(model):
    leg, collecting = answer(tasks.leg.call(model, LegPlan(iterations=5000, warmup=7)))
    assert (len(leg.warmup_ns), len(leg.samples_ns), leg.steady) == (7, 5000, None)
    assert min(leg.samples_ns) > 0
    assert collecting


def test_without_warm_up_the_first_run_is_a_sample(model):
    leg, _ = answer(tasks.leg.call(model, LegPlan(iterations=50, warmup=0)))
    assert leg.warmup_ns == ()
    # The first run of a session costs more than the usual one, wherever it was interrupted.
    assert leg.samples_ns[0] > statistics.median(leg.samples_ns)


def test_a_duration_is_kept_and_buys_at_least_one_run(model):
    started = time.monotonic()
    leg, _ = answer(tasks.leg.call(model, LegPlan(duration_s=0.3, warmup=1)))
    assert time.monotonic() - started >= 0.3
    # The last run began before the time was over, however long it took then.
    assert sum(leg.samples_ns[:-1]) / 1e9 <= 0.3
    leg, _ = answer(tasks.leg.call(model, LegPlan(duration_s=1e-9, warmup=1)))
    assert len(leg.samples_ns) == 1


def test_automatic_warm_up_ends_steady_or_says_not(model):
    leg, _ = answer(tasks.leg.call(model, LegPlan(iterations=10)))
    assert len(leg.warmup_ns) > 15
    leg, _ = answer(tasks.leg.call(model, LegPlan(iterations=10, warmup_cap_s=1e-6)))
    assert leg.steady is False


def test_inputs_that_do_not_fit_are_an_input_error(model):
    assert answer(tasks.bad_inputs.call(model)) == "InputsRefusedError"


def test_a_monitor_is_asked_in_the_fixed_order_and_parses_after_the_release(model):
    events, outcome = answer(tasks.monitored.call(model))
    assert events == ["session_spec", "body", "collect", "parse", "close"]
    assert outcome == ("value", [0, 1, "cpu"])


@pytest.mark.parametrize(
    ("fail", "events", "error"),
    [
        ("session_spec", ["session_spec", "close"], "ValueError: session_spec"),
        ("body", ["session_spec", "body", "collect", "close"], "KeyError: body"),
        ("collect", ["session_spec", "body", "collect", "close"], "ValueError: collect"),
        ("parse", ["session_spec", "body", "collect", "parse", "close"], "ValueError: parse"),
    ],
)
def test_nothing_a_monitor_or_the_body_raises_is_swallowed(model, fail, events, error):
    assert answer(tasks.monitored.call(model, fail)) == (events, error)


def test_an_option_that_the_session_did_not_take_is_an_error(model):
    assert "disable_prepacking" in answer(tasks.swallowed_option.call(model))
