"""The monitor behind op traces keeps the monitor's contract."""

import pytest

from modelwright.measure import TraceMonitor
from modelwright.targets import parse_target
from modelwright.testing import MonitorSuite


class TestTraceMonitor(MonitorSuite):
    @pytest.fixture
    def monitor(self, tmp_path):
        return TraceMonitor(parse_target("cpu"), tmp_path)
