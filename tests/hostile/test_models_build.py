"""`wright build` before hostile models: refused as bad models, never half built, nothing left behind."""

import pytest

from hostile.case import thinned
from hostile.models import CASES

MAKE_TEST = 64

BUILDS = [case for case in CASES if case.build is not None]


@pytest.mark.parametrize("case", thinned(BUILDS, MAKE_TEST))
def test_build_answers_with_the_code_it_owes(case, ground):
    path = case.make(ground.things)
    before = sorted(ground.things.rglob("*"))
    answer = ground.wright("build", "-m", path, "-o", "out", "--json")
    assert answer.code == case.build, answer.err or answer.out
    assert sorted(ground.things.rglob("*")) == before
    assert (ground.work / "out").exists() == (case.build in (0, 1))
    assert not list((ground.root / "scratch" / "tmp").iterdir())
