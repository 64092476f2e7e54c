"""The statistics of "not worse than allowed": exact error rates, stated sample sizes that keep their word."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright.quality import EvalVerdict, paired
from modelwright.quality._paired import (
    MIN_REAL_SAMPLES,
    Shape,
    _excess,
    binary_bounds,
    binary_needed,
    mean_bounds,
    mean_needed,
    share_bound,
    student_quantile,
)

Z = 1.6448536269514722


def _chances(n: int, lost: float, gained: float, most: int) -> np.ndarray:
    """P(so many lost, so many gained) for all counts up to `most`: the trinomial, in full."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    b, c = np.meshgrid(np.arange(most + 1), np.arange(most + 1), indexing="ij")
    rest = n - b - c
    inside = rest >= 0
    rest = np.where(inside, rest, 0)
    log = logs[n] - logs[b] - logs[c] - logs[rest]
    log = log + b * math.log(lost) + c * math.log(max(gained, 1e-300)) + rest * math.log1p(-lost - gained)
    return np.where(inside, np.exp(log), 0.0)


def _exact(n: int, margin: float, disagreement: float, drop: float) -> tuple[float, float]:
    """The exact probabilities of pass and of fail."""
    most = min(n, int(n * disagreement + 8 * math.sqrt(n * disagreement) + 12))
    chances = _chances(n, (disagreement + drop) / 2, (disagreement - drop) / 2, most)
    passed = failed = 0.0
    for lost, gained in np.argwhere(chances > 1e-12):
        if _excess(lost, gained, n, margin, 0.5) < -Z:
            passed += chances[lost, gained]
        if _excess(lost, gained, n, margin, -1.0) > Z:
            failed += chances[lost, gained]
    return passed, failed


@pytest.mark.parametrize("n", [50, 200, 800])
@pytest.mark.parametrize("margin", [0.01, 0.03, 0.05])
@pytest.mark.parametrize("times", [1.01, 1.5, 4.0])
def test_at_the_margin_neither_word_is_said_more_than_five_times_in_a_hundred(n, margin, times):
    passed, failed = _exact(n, margin, margin * times, margin)
    assert passed <= 0.05
    assert failed <= 0.05


@pytest.mark.parametrize(("margin", "disagreement"), [(0.01, 0.01), (0.02, 0.03), (0.03, 0.07), (0.05, 0.002)])
def test_the_stated_sample_size_passes_an_equal_model_nine_times_in_ten(margin, disagreement):
    n = binary_needed(margin, disagreement)
    passed, failed = _exact(n, margin, disagreement, 0.0)
    assert passed >= 0.90
    assert failed <= 0.001


@pytest.mark.parametrize(("margin", "disagreement"), [(0.01, 0.07), (0.015, 0.06), (0.02, 0.09)])
def test_a_loss_of_three_points_is_found_at_the_stated_sample_size(margin, disagreement):
    n = binary_needed(margin, disagreement, drop=0.03)
    passed, failed = _exact(n, margin, disagreement, 0.03)
    assert failed >= 0.90
    assert passed <= 0.001


def test_simulated_trials_find_a_planted_loss_of_three_points_and_none_where_there_is_none():
    """The whole of `paired`, on samples that are right or wrong, 200 trials each."""
    rng = np.random.default_rng(5)
    margin, lost, gained = 0.01, 0.05, 0.02
    n = binary_needed(margin, lost + gained, drop=lost - gained)
    planted = [_trial(rng, n, lost, gained, margin) for _ in range(200)]
    none = [_trial(rng, n, 0.035, 0.035, margin) for _ in range(200)]
    assert planted.count(EvalVerdict.FAIL) >= 180
    assert planted.count(EvalVerdict.PASS) == 0
    assert none.count(EvalVerdict.FAIL) <= 10


def _trial(rng, n, lost, gained, margin):
    draw = rng.random(n)
    reference = draw < 0.9
    candidate = np.where(draw < lost, False, np.where(draw > 1 - gained, True, reference))
    return paired(reference.astype(float), candidate.astype(float), margin=margin).verdict


@pytest.mark.parametrize("shape", ["normal", "skewed", "skewed the other way", "mostly equal"])
def test_real_valued_scores_keep_the_error_rate_too(shape):
    rng = np.random.default_rng(3)
    draws = {
        "normal": lambda: rng.standard_normal(200),
        "skewed": lambda: rng.exponential(size=200) - 1,
        "skewed the other way": lambda: 1 - rng.exponential(size=200),
        "mostly equal": lambda: (rng.random(200) < 0.15) * rng.exponential(size=200) - 0.15,
    }
    bounds = [mean_bounds(draws[shape]()) for _ in range(2000)]
    # Two thousand trials of a true 5 % stay below 6 % nearly always; Student's t gives 9 % and more here.
    assert np.mean([bound.high < 0 for bound in bounds]) < 0.065
    assert np.mean([bound.low > 0 for bound in bounds]) < 0.065


def test_real_valued_scores_reach_the_stated_power():
    rng = np.random.default_rng(4)
    n = mean_needed(0.1, Shape(0.5))
    trials = [
        paired(base, base - 0.5 * rng.standard_normal(n), margin=0.1).verdict
        for base in (rng.standard_normal(n) for _ in range(300))
    ]
    assert trials.count(EvalVerdict.PASS) >= 260


def test_skewed_differences_need_more_samples_and_are_told_so():
    rng = np.random.default_rng(6)
    noise = 0.5 * (rng.exponential(size=100_000) - 1)
    n = mean_needed(0.1, Shape.of(noise))
    assert n > mean_needed(0.1, Shape(0.5))
    trials = [
        paired(base, base - rng.choice(noise, n), margin=0.1).verdict for base in (np.full(n, 0.3) for _ in range(300))
    ]
    assert trials.count(EvalVerdict.PASS) >= 260


def test_fifty_samples_cannot_see_five_points_and_say_how_many_can():
    right = np.ones(50)
    found = paired(right, right, margin=0.05)
    assert found.verdict is EvalVerdict.INCONCLUSIVE
    assert found.needed is not None
    assert 60 < found.needed < 200
    assert found.resolves is not None
    assert found.resolves > 0.05


@pytest.mark.parametrize(("lost", "gained", "samples"), [(0, 0, 80), (3, 1, 60), (12, 20, 300), (7, 0, 40)])
def test_the_bounds_are_where_the_score_statistic_says_so(lost, gained, samples):
    """The nuisance is found here by searching the likelihood, not by the closed form."""

    def statistic(drop, correction):
        gains = np.linspace(max(0.0, -drop), (1 - drop) / 2, 400_001)[1:-1]
        losses = gains + drop
        rest = 1 - gains - losses
        keep = (losses > 0) & (rest > 0)
        gains, losses, rest = gains[keep], losses[keep], rest[keep]
        log = lost * np.log(losses) + gained * np.log(gains) + (samples - lost - gained) * np.log(rest)
        best = log.argmax()
        spread = samples * (losses[best] + gains[best] - drop**2)
        return (lost - gained - samples * drop + correction) / math.sqrt(spread)

    bounds = binary_bounds(lost, gained, samples)
    assert statistic(bounds.high, 0.5) == pytest.approx(-Z, abs=2e-3)
    assert statistic(bounds.low, -1.0) == pytest.approx(Z, abs=2e-3)


@given(st.integers(1, 300), st.integers(0, 300), st.integers(0, 300))
def test_bounds_enclose_what_was_seen(samples, lost, gained):
    lost, gained = min(lost, samples), min(gained, samples - min(lost, samples))
    bounds = binary_bounds(lost, gained, samples)
    assert -1.0 <= bounds.low <= (lost - gained) / samples <= bounds.high <= 1.0


@given(st.integers(0, 60), st.integers(0, 60), st.integers(150, 400))
def test_swapping_the_models_mirrors_the_point_but_never_widens_a_claim(lost, gained, samples):
    one, other = binary_bounds(lost, gained, samples), binary_bounds(gained, lost, samples)
    assert one.high <= -other.low + 1e-9


def test_a_relative_margin_is_a_share_of_the_reference():
    rng = np.random.default_rng(0)
    reference = 20 + rng.standard_normal(400)
    found = paired(reference, reference - 0.1 + 0.05 * rng.standard_normal(400), margin=0.01, relative=True)
    assert found.margin == pytest.approx(0.2, rel=0.01)
    assert found.verdict is EvalVerdict.PASS
    worse = paired(reference, reference - 0.4 + 0.05 * rng.standard_normal(400), margin=0.01, relative=True)
    assert worse.verdict is EvalVerdict.FAIL


def test_scores_that_hardly_ever_change_are_judged_by_how_many_changed():
    reference = np.linspace(0.2, 0.8, 100)
    same = paired(reference, reference, margin=0.02, span=1.0)
    assert same.method == "share of changed samples"
    assert same.high == pytest.approx(1 - 0.05 ** (1 / 100), rel=1e-6)
    assert same.verdict is EvalVerdict.INCONCLUSIVE
    assert paired(np.tile(reference, 4), np.tile(reference, 4), margin=0.02, span=1.0).verdict is EvalVerdict.PASS


def test_few_real_valued_samples_give_no_verdict():
    rng = np.random.default_rng(0)
    reference = rng.random(MIN_REAL_SAMPLES - 1)
    found = paired(reference, reference + 0.5 + 0.01 * rng.random(len(reference)), margin=0.01)
    assert found.verdict is EvalVerdict.INCONCLUSIVE


def test_quantiles_and_shares_match_the_tables():
    assert student_quantile(0.95, 9) == pytest.approx(1.8331, abs=1e-3)
    assert student_quantile(0.95, 100) == pytest.approx(1.6602, abs=1e-4)
    assert share_bound(0, 59) == pytest.approx(1 - 0.05 ** (1 / 59), rel=1e-6)
    assert share_bound(3, 50) == pytest.approx(0.1478, abs=1e-3)
