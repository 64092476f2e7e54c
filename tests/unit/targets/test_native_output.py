"""What native code prints while it is listened to."""

import os

import pytest

from modelwright.targets import captured_output


def test_what_is_printed_inside_is_heard_and_nothing_after(capfd):
    with captured_output() as heard:
        os.write(1, b"one\n")
        os.write(2, b"two\n")
    os.write(2, b"after\n")
    assert heard.text == "one\ntwo\n"
    assert capfd.readouterr() == ("", "after\n")


def test_what_was_heard_before_an_error_goes_to_standard_error(capfd):
    with pytest.raises(ZeroDivisionError), captured_output():
        os.write(2, b"the reason\n") / 0
    assert capfd.readouterr() == ("", "the reason\n")
