"""Simulators that run at the same time are not crowded onto one CPU."""

import os
import subprocess
import sys

import pytest

from modelwright.targets import _one_cpu

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads are kept to CPUs on Linux only")
# No machine has them: nobody is in the way of the test, and the test in nobody's.
CPUS = [1_000_000 + os.getpid(), 9_000_000 + os.getpid()]
_CHOOSE = (
    "import sys; from modelwright.targets._one_cpu import _chosen; print(_chosen(frozenset(map(int, sys.argv[1:]))))"
)


def chosen_by_another_process() -> int:
    command = [sys.executable, "-c", _CHOOSE, *map(str, CPUS)]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def test_each_simulator_gets_a_cpu_of_its_own_while_there_are_any():
    mine = _one_cpu._chosen(frozenset(CPUS))
    assert _one_cpu._chosen(frozenset(CPUS)) == mine
    # The first of these was gone when the second asked.
    assert [chosen_by_another_process() for _ in range(2)] == [cpu for cpu in CPUS if cpu != mine] * 2


def test_where_all_are_taken_they_share():
    assert _one_cpu._chosen(frozenset(CPUS[:1])) == CPUS[0]
    assert _one_cpu._chosen.__wrapped__(frozenset(CPUS[:1])) == CPUS[0]


def test_the_thread_has_all_its_cpus_again():
    before = os.sched_getaffinity(0)
    give_back = _one_cpu.keep_to_one_cpu()
    assert len(os.sched_getaffinity(0)) == 1
    give_back()
    assert os.sched_getaffinity(0) == before
