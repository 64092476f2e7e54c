"""Data that wants to be read: refused with a reason, before it takes memory, and never run."""

import pytest

from hostile.case import thinned
from hostile.data_files import CASES, DATA, MODEL
from support import models

MAKE_TEST = 44

MOST_MB = 400


@pytest.mark.parametrize("case", thinned(CASES, MAKE_TEST))
def test_poisoned_data_gets_the_code_it_owes(case, ground):
    places = {MODEL: str(models.save(models.mlp(), ground.root)), DATA: str(case.make(ground.things))}
    words = [places.get(word, word) for word in case.words]
    answer = ground.wright(*words, "--json")
    assert answer.code == case.code, answer.err or answer.out
    assert answer.peak_mb < MOST_MB
    if answer.code:
        assert not list(ground.work.iterdir())


def test_there_are_enough_of_them():
    assert len({case.name for case in CASES}) == len(CASES) >= MAKE_TEST >= 40
