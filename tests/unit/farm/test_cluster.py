"""The same plan on a cluster: machines with stores of their own, over TLS on loopback."""

import pytest

from modelwright.farm.cluster import DaskExecutor
from modelwright.testing import ExecutorSuite
from support.cluster import Loopback


@pytest.fixture(scope="module")
def loopback(tmp_path_factory):
    with Loopback(tmp_path_factory.mktemp("cluster"), {"plain": (), "xelite": ("qnn-npu",)}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def cluster(loopback):
    with loopback.connected() as found:
        yield found


class TestDaskExecutor(ExecutorSuite):
    @pytest.fixture
    def executor(self, loopback, cluster):
        loopback.forget()
        return DaskExecutor(cluster)
