"""A powercap tree as Linux has it, of plain files; its counters move while it is `moving`."""

import threading
import time
from contextlib import contextmanager

ZONES = {
    "intel-rapl:0": "package-0",
    "intel-rapl:0:0": "core",
    "intel-rapl:0:1": "dram",
    "intel-rapl:1": "psys",
    "intel-rapl-mmio:0": "package-0",
    "dtpm": None,
}


def write(root, zones=ZONES, *, range_uj=262143328850, start_uj=1000):
    for folder, name in zones.items():
        place = root / folder
        place.mkdir(parents=True)
        if name is not None:
            (place / "name").write_text(f"{name}\n")
            (place / "max_energy_range_uj").write_text(f"{range_uj}\n")
            (place / "energy_uj").write_text(f"{start_uj}\n")
    return root


@contextmanager
def moving(root, *, watts=20.0, step_s=0.002):
    """All counters go on with the clock, and round at the end of their range."""
    end, began = threading.Event(), time.monotonic()
    counters = [
        (file, int(file.read_text()), int((file.parent / "max_energy_range_uj").read_text()))
        for file in root.glob("*/energy_uj")
    ]

    def count():
        while not end.wait(step_s):
            for file, start, whole in counters:
                part = file.with_suffix(".part")
                part.write_text(f"{(start + round((time.monotonic() - began) * watts * 1e6)) % whole}\n")
                part.replace(file)

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        yield root
    finally:
        end.set()
        thread.join()
