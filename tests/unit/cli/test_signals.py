"""One way to end, whatever the signal."""

import os
import signal
import time

import pytest

from modelwright.cli._signals import _SAME_REQUEST_S, Ending, delivered

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_interrupts_and_names_the_exit_code(number):
    with Ending() as ending:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        assert ending.exit_code == 128 + number


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in ENDING]
    with Ending():
        pass
    assert [signal.getsignal(number) for number in ENDING] == before


def test_what_is_ignored_stays_ignored(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Ending() as ending:
            os.kill(os.getpid(), signal.SIGHUP)
        assert ending.number is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_first_signal_names_the_code_and_an_echo_is_not_a_second():
    with Ending() as ending:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        time.sleep(_SAME_REQUEST_S + 0.05)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert ending.exit_code == 143


def deliver(done, signals, pause_s=0.0):
    with delivered():
        for number in signals:
            os.kill(os.getpid(), number)
            time.sleep(pause_s)
        done.append("saved")


def test_an_answer_is_delivered_before_the_signal_is_obeyed():
    done = []
    with Ending(), pytest.raises(KeyboardInterrupt):
        deliver(done, [signal.SIGTERM])
    assert done == ["saved"]


def test_a_second_ctrl_c_does_not_wait_for_the_answer():
    done = []
    with Ending(), pytest.raises(KeyboardInterrupt):
        deliver(done, [signal.SIGINT, signal.SIGINT], _SAME_REQUEST_S + 0.05)
    assert done == []
