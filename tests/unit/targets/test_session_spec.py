"""What cannot be asked of a session."""

import pytest

from modelwright.errors import UsageError
from modelwright.targets import SessionSpec


@pytest.mark.parametrize("threads", [0, -1, 100_000])
def test_a_number_of_threads_that_no_machine_has_is_refused_before_a_session_opens(threads):
    with pytest.raises(UsageError, match="not possible"):
        SessionSpec(threads=threads)


def test_a_switch_of_the_session_is_on_or_off():
    with pytest.raises(UsageError, match="enable_cpu_mem_arena is a switch"):
        SessionSpec(config={"enable_cpu_mem_arena": "no"})
