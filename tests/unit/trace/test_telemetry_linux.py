"""GPU and NPU counters, as drivers write them. The folders and files are recorded ones, laid out again."""

import importlib
import os
import sys

import pytest

from modelwright.measure.telemetry import _linux as _telemetry_linux
from modelwright.measure.telemetry import _meters as _telemetry_meters
from modelwright.measure.telemetry._linux import Busy, ProcessGpu, device_meters, parse_fdinfo
from modelwright.measure.telemetry._types import Meter, NoMeter

AMDGPU = """pos:	0
flags:	02100002
mnt_id:	26
ino:	1015
drm-driver:	amdgpu
drm-client-id:	4821
drm-pdev:	0000:03:00.0
pasid:	32771
drm-memory-vram:	102400 KiB
drm-memory-gtt: 	2048 KiB
drm-engine-gfx:	5000000000 ns
drm-engine-compute:	250000000 ns
drm-engine-capacity-compute:	4
"""
XE = """pos:	0
flags:	0100002
drm-driver:	xe
drm-client-id:	7
drm-pdev:	0000:00:02.0
drm-total-system:	0
drm-resident-vram0:	8 MiB
drm-cycles-ccs:	1000
drm-total-cycles-ccs:	100000
drm-engine-capacity-ccs:	1
"""
PLAIN = "pos:\t0\nflags:\t0100002\nmnt_id:\t26\n"


def test_engines_that_count_time_are_read():
    found = parse_fdinfo(AMDGPU)
    assert (found.driver, found.client) == ("amdgpu", "0000:03:00.0 4821")
    assert found.engines_ns == {"gfx": 5_000_000_000, "compute": 250_000_000}
    assert found.memory_bytes == 104448 << 10


def test_engines_that_count_cycles_are_read():
    found = parse_fdinfo(XE)
    assert (found.engines_ns, found.engines_cycles) == ({}, {"ccs": (1000, 100_000)})
    assert found.memory_bytes == 8 << 20


@pytest.mark.parametrize("text", [PLAIN, "", "drm-driver:\tamdgpu\n", ":\n:::\n"])
def test_other_files_are_no_gpu(text):
    assert parse_fdinfo(text) is None


def test_numbers_that_are_none_are_left_out():
    found = parse_fdinfo("drm-client-id: 1\ndrm-engine-gfx: lots ns\ndrm-engine-x:\ndrm-memory-vram: 3 bits\n")
    assert (found.engines_ns, found.memory_bytes) == ({}, None)


def test_busy_is_a_share_of_time_and_unknown_at_first():
    busy = Busy(1_000_000)
    assert busy.percent(100, 10.0) is None
    assert busy.percent(500_100, 11.0) == pytest.approx(50)
    assert busy.percent(500_100, 12.0) == 0


def test_a_counter_that_went_back_says_nothing():
    busy = Busy(1_000_000)
    busy.percent(100, 1.0)
    assert busy.percent(50, 2.0) is None


needs_links = pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links")


@pytest.fixture
def process(tmp_path):
    """Process 7 with two descriptors of one GPU client, one of an ordinary file; rewritable."""
    folder = tmp_path / "7"
    (folder / "fd").mkdir(parents=True)
    (folder / "fdinfo").mkdir()

    def write(*texts):
        for number, (device, text) in enumerate(texts):
            link = folder / "fd" / str(number)
            link.unlink(missing_ok=True)
            link.symlink_to(device)
            (folder / "fdinfo" / str(number)).write_text(text)

    return write


@needs_links
def test_a_client_with_two_descriptors_counts_once_and_the_busiest_engine_wins(process, tmp_path):
    gpu = ProcessGpu(7, tmp_path)
    device = "/dev/dri/renderD128"
    process((device, AMDGPU), (device, AMDGPU), ("/tmp/file", PLAIN))
    assert gpu.busy_percent(10.0) is None
    assert gpu.memory_bytes(10.0) == 104448 << 10
    later = AMDGPU.replace("5000000000", "5600000000").replace("250000000", "350000000")
    process((device, later), (device, later), ("/tmp/file", PLAIN))
    assert gpu.busy_percent(11.0) == pytest.approx(60)


@needs_links
def test_cycles_are_a_share_of_all_cycles(process, tmp_path):
    gpu = ProcessGpu(7, tmp_path)
    process(("/dev/dri/renderD129", XE))
    gpu.busy_percent(1.0)
    process(("/dev/dri/renderD129", XE.replace("\t1000\n", "\t26000\n").replace("\t100000\n", "\t200000\n")))
    assert gpu.busy_percent(2.0) == pytest.approx(25)


@needs_links
def test_a_process_without_a_gpu_has_no_number_rather_than_zero(process, tmp_path):
    process(("/tmp/file", PLAIN))
    gpu = ProcessGpu(7, tmp_path)
    assert gpu.busy_percent(1.0) is None
    assert gpu.memory_bytes(1.0) is None


def device(folder, name, **files):
    (folder / name / "device").mkdir(parents=True)
    for file, text in files.items():
        (folder / name / "device" / file).write_text(text)


def test_an_intel_npu_is_busy_for_the_share_its_counter_grew(tmp_path):
    device(tmp_path / "accel", "accel0", npu_busy_time_us="1000000\n")
    npu = next(item for item in device_meters(tmp_path / "drm", tmp_path / "accel") if item.name.startswith("npu"))
    assert npu.read(1.0) is None
    (tmp_path / "accel/accel0/device/npu_busy_time_us").write_text("1400000\n")
    assert npu.read(2.0) == pytest.approx(40)


def test_every_card_has_a_series_and_connectors_are_no_cards(tmp_path):
    device(tmp_path / "drm", "card0", gpu_busy_percent="37\n", mem_info_vram_used="1048576\n")
    device(tmp_path / "drm", "card1")
    (tmp_path / "drm/card0-HDMI-A-1").mkdir()
    found = {item.name: item for item in device_meters(tmp_path / "drm", tmp_path / "accel")}
    assert found["gpu_busy[card0]"].read(0.0) == 37
    assert found["gpu_memory[card0]"].read(0.0) == 1 << 20
    assert isinstance(found["gpu_busy[card1]"], NoMeter)
    assert isinstance(found["npu_busy"], NoMeter)
    assert len(found) == 4


def test_a_machine_without_devices_says_so(tmp_path):
    found = device_meters(tmp_path / "drm", tmp_path / "accel")
    assert [(item.name, isinstance(item, Meter)) for item in found] == [("gpu_busy", False), ("npu_busy", False)]


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_import_it_and_have_reasons(platform, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    importlib.reload(_telemetry_linux)
    meters = importlib.reload(_telemetry_meters)
    try:
        names = {item.name: item for item in meters.find_meters(os.getpid())}
        assert platform in names["npu_busy"].reason
    finally:
        monkeypatch.undo()
        importlib.reload(_telemetry_linux)
        importlib.reload(_telemetry_meters)
