"""`wright inspect` before every hostile model: the right code, in good manners, cheaply, and nothing written."""

import pytest

from hostile.case import thinned
from hostile.models import CASES

MAKE_TEST = 160

MOST_MB = 400


@pytest.mark.parametrize("case", thinned(CASES, MAKE_TEST))
def test_inspect_answers_with_the_code_it_owes(case, ground):
    path = case.make(ground.things)
    before = sorted(ground.things.rglob("*"))
    answers = [ground.wright("inspect", path, "--json")]
    if case.code == 0:
        answers.append(ground.wright("inspect", path))
    for answer in answers:
        assert answer.code == case.code, answer.err or answer.out
        assert answer.peak_mb < MOST_MB
    assert sorted(ground.things.rglob("*")) == before
    assert not list(ground.work.iterdir())


def test_there_are_enough_of_them():
    assert len({case.name for case in CASES}) == len(CASES) >= MAKE_TEST >= 150
    assert sum(case.build is not None for case in CASES) >= 60
