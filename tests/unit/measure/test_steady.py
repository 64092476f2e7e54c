"""Warm-up ends when a session has stopped getting faster."""

from modelwright.measure.timing._steady import Steadiness


def windows_until_steady(medians):
    steadiness = Steadiness()
    for count, median in enumerate(medians, start=1):
        if steadiness.reached(median):
            return count
    return None


def test_a_flat_session_is_steady_after_three_windows():
    assert windows_until_steady([10.0, 10.0, 10.0, 10.0]) == 3


def test_a_session_that_gets_faster_is_not_steady():
    assert windows_until_steady([10 * 0.95**step for step in range(30)]) is None


def test_steady_comes_two_windows_after_the_last_gain():
    assert windows_until_steady([20.0, 15.0, 10.0, 10.1, 10.05, 10.0]) == 5


def test_noise_and_throttling_do_not_keep_it_warming_for_ever():
    assert windows_until_steady([10.0, 14.0, 11.0]) == 3


def test_a_gain_after_a_calm_window_starts_over():
    assert windows_until_steady([10.0, 10.0, 9.0, 9.0, 9.0]) == 5
