"""More effort costs nothing when the model runs, so a repair tries it before it raises anything."""

from __future__ import annotations

import pytest

from modelwright.repairs._actions import more_effort
from modelwright.stages.quantize import QuantizeParams


@pytest.mark.parametrize("precision", ["w8a8", "w8a16", "int4", "w8a8+fp16"])
def test_it_is_offered_once(precision):
    (offered,) = more_effort(QuantizeParams(precision))
    assert (offered.tensor, offered.value, offered.level) == ("effort", "best", "free")
    assert more_effort(QuantizeParams(precision, effort="best")) == []


@pytest.mark.parametrize("precision", ["fp16", "dynamic"])
def test_where_it_would_change_nothing_it_is_not(precision):
    assert more_effort(QuantizeParams(precision)) == []
