"""Conformance suites: subclass one, say what it is about, and pytest shows whether it keeps the contract.

Nothing here is imported by the rest; it needs pytest.
"""

import pytest

pytest.register_assert_rewrite("modelwright.testing._ep_adapter", "modelwright.testing._monitor")

from modelwright.testing._ep_adapter import EpAdapterSuite  # noqa: E402 - its asserts are to be explained
from modelwright.testing._monitor import MonitorSuite  # noqa: E402

__all__ = ["EpAdapterSuite", "MonitorSuite"]
