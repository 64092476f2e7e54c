"""The user's own Python, behaving badly: its failures are input errors about it, and its output stays out of ours."""

import pytest

from hostile.case import thinned
from hostile.readers import CASES
from support import models

MAKE_TEST = 24


@pytest.mark.parametrize("case", thinned(CASES, MAKE_TEST))
def test_a_bad_reader_gets_the_code_it_owes(case, ground):
    model = models.save(models.mlp(), ground.root)
    (ground.work / "mine.py").write_text(case.source)
    words = ["quantize", model, "-p", "w8a8", "--samples", 1, "--data", "mine.py:read", "-o", "out"]
    answer = ground.wright(*words, *case.limits, "--json")
    # One sample quantizes no model well, so a fine reader may end in "no".
    assert answer.code == case.code or (case.code == 0 and answer.code == 1), answer.err or answer.out
    assert (ground.work / "out").exists() == (case.code == 0)


def test_there_are_enough_of_them():
    assert len({case.name for case in CASES}) == len(CASES) >= MAKE_TEST >= 20
