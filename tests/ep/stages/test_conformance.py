"""Our stages keep the contract of a stage, in real children."""

import pytest

from modelwright.stages.optimize import OPTIMIZE, OptimizeParams
from modelwright.stages.quantize import QUANTIZE, QuantizeParams
from modelwright.testing import StageCase, StageSuite
from support.models import mlp, save


class TestOptimize(StageSuite):
    @pytest.fixture
    def case(self, tmp_path):
        (tmp_path / "source").mkdir()
        return StageCase(OPTIMIZE, OptimizeParams(("constant_folding",)), {"model": save(mlp(), tmp_path / "source")})


class TestQuantize(StageSuite):
    @pytest.fixture
    def case(self, tmp_path):
        (tmp_path / "source").mkdir()
        return StageCase(QUANTIZE, QuantizeParams(precision="dynamic"), {"model": save(mlp(), tmp_path / "source")})
