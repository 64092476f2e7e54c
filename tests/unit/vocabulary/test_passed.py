"""False beats None beats True."""

import itertools

from modelwright.vocabulary import weakest


def test_what_nobody_knows_is_weaker_than_yes_and_no_is_weaker_than_that():
    order = [False, None, True]
    for answers in itertools.product(order, repeat=3):
        assert weakest(answers) is min(answers, key=order.index)
    assert weakest([]) is True
