"""Repairs of small random models beside every subset of what could be raised."""

from __future__ import annotations

import pytest
from bench.repair_optimum import WITHIN, _case


@pytest.mark.parametrize("seed", [1, pytest.param(16, marks=pytest.mark.proof)])
def test_a_repair_is_within_five_percent_of_the_smallest_there_is_and_needs_all_its_parts(tmp_path, seed):
    case = _case(tmp_path, seed)
    assert case.ratio <= WITHIN
    assert case.minimal
    assert not case.needless
