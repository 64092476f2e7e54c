"""What this process may use, not what the machine has."""

from modelwright.targets import read_host
from modelwright.targets._host import _cgroup_quota


def test_host_report_has_memory_and_at_least_part_of_a_cpu():
    host = read_host()
    assert host.memory_bytes >= host.memory_available_bytes > 0
    assert 0 < host.cpu.usable <= (host.cpu.logical or 1)


def test_the_tightest_cgroup_quota_up_the_tree_counts(tmp_path):
    leaf = tmp_path / "cgroup/a/b"
    leaf.mkdir(parents=True)
    (tmp_path / "cgroup/cpu.max").write_text("max 100000\n")
    (tmp_path / "cgroup/a/cpu.max").write_text("150000 100000\n")
    (leaf / "cpu.max").write_text("400000 100000\n")
    membership = tmp_path / "membership"
    membership.write_text("0::/a/b\n")
    assert _cgroup_quota(tmp_path / "cgroup", membership) == 1.5


def test_no_cgroup_means_no_quota(tmp_path):
    assert _cgroup_quota(tmp_path, tmp_path / "absent") is None
