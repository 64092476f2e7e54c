"""Model folders that lie: refused by what they are, and no program in them ever runs."""

import pytest

from hostile.case import thinned
from hostile.folders import CASES

MAKE_TEST = 28


@pytest.mark.parametrize("case", thinned(CASES, MAKE_TEST))
def test_a_hostile_folder_gets_the_code_it_owes(case, ground):
    folder = ground.things / "model"
    folder.mkdir()
    case.fill(folder)
    before = sorted(ground.things.rglob("*"))
    answer = ground.wright("build", "-m", folder, *case.words, "--json", timeout_s=120)
    assert answer.code == case.code, answer.err or answer.out
    assert sorted(ground.things.rglob("*")) == before
    assert not list(ground.work.iterdir())


def test_there_are_enough_of_them():
    assert len({case.name for case in CASES}) == len(CASES) >= MAKE_TEST >= 25
