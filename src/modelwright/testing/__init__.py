"""Conformance suites: subclass one, say what it is about, and pytest shows whether it keeps the contract.

Nothing here is imported by the rest; it needs pytest.
"""

import pytest

pytest.register_assert_rewrite(
    *(f"{__name__}.{name}" for name in ("_ep_adapter", "_executor", "_feed", "_monitor", "_stage"))
)

from modelwright.testing._ep_adapter import EpAdapterSuite  # noqa: E402 - asserts are explained in what comes after
from modelwright.testing._executor import ExecutorSuite  # noqa: E402
from modelwright.testing._feed import FeedSuite  # noqa: E402
from modelwright.testing._monitor import MonitorSuite  # noqa: E402
from modelwright.testing._stage import StageCase, StageSuite  # noqa: E402

__all__ = ["EpAdapterSuite", "ExecutorSuite", "FeedSuite", "MonitorSuite", "StageCase", "StageSuite"]
