"""Counters of energy in a tree of plain files, as Linux writes them."""

import pytest

from modelwright.errors import ExecutionError
from modelwright.targets import EnergyMeter, EnergyZone, _energy, energy_zones
from support import powercap


@pytest.fixture
def counts(monkeypatch):
    """The files stand still, and are taken for counters all the same."""
    monkeypatch.setattr(_energy, "_is_moving", lambda zones: True)


def counter(root, folder="intel-rapl:0"):
    return root / folder / "energy_uj"


def test_packages_and_their_memory_count_and_nothing_twice(tmp_path, counts):
    powercap.write(tmp_path)
    assert [zone.name for zone in energy_zones(tmp_path)] == ["package-0", "dram"]


def test_two_packages_of_two_dies_are_four_zones(tmp_path, counts):
    zones = {f"intel-rapl:{place}": f"package-{place // 2}-die-{place % 2}" for place in range(4)}
    powercap.write(tmp_path, zones)
    assert len(energy_zones(tmp_path)) == 4


def test_a_counter_that_went_round_is_read_on(tmp_path):
    powercap.write(tmp_path, {"intel-rapl:0": "package-0"}, range_uj=10_000, start_uj=9_000)
    meter = EnergyMeter([EnergyZone("package-0", str(counter(tmp_path)), 10_000)])
    meter.start()
    counter(tmp_path).write_text("2000\n")
    assert meter.taken_mj() == 3.0


def test_zones_add_up(tmp_path):
    powercap.write(tmp_path)
    zones = [EnergyZone(name, str(counter(tmp_path, name)), 10**9) for name in ("intel-rapl:0", "intel-rapl:0:1")]
    meter = EnergyMeter(zones)
    meter.start()
    counter(tmp_path).write_text("4000\n")
    counter(tmp_path, "intel-rapl:0:1").write_text("1500\n")
    assert meter.taken_mj() == 3.5


def test_a_machine_without_counters_says_so(tmp_path):
    for root, why in ((tmp_path / "none", "there is no "), (tmp_path, "has no intel-rapl package")):
        with pytest.raises(ExecutionError, match="does not tell how much energy") as caught:
            energy_zones(root)
        assert why in caught.value.cause


def test_a_counter_that_stands_still_is_no_counter(tmp_path, monkeypatch):
    monkeypatch.setattr(_energy, "_PATIENCE_S", 0.02)
    powercap.write(tmp_path)
    with pytest.raises(ExecutionError) as caught:
        energy_zones(tmp_path)
    assert "did not move" in caught.value.cause


def test_a_counter_that_may_not_be_read_says_how_to_allow_it(tmp_path, monkeypatch):
    powercap.write(tmp_path)

    def refuse(zone):
        raise PermissionError(13, "Permission denied", zone.counter)

    monkeypatch.setattr(EnergyZone, "read_uj", refuse)
    with pytest.raises(ExecutionError) as caught:
        energy_zones(tmp_path)
    assert caught.value.cause == f"{counter(tmp_path)}: Permission denied"
    assert "root" in caught.value.fix


@pytest.mark.parametrize("text", ["", "many\n"])
def test_a_counter_of_nonsense_is_refused(tmp_path, text):
    powercap.write(tmp_path)
    counter(tmp_path).write_text(text)
    with pytest.raises(ExecutionError, match="does not tell how much energy"):
        energy_zones(tmp_path)
