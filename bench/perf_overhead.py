"""The timing loop of `wright perf` against a bare loop around session.run, and with `--monitor` against without.

Same session, same inputs, block by block in mirrored order, so that drift and neighbours hit both alike.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from bench.nets import layers
from modelwright.measure import InputChoice, LegPlan, Telemetry, make_subject, measure_leg, read_samples
from modelwright.measure.timing._session_process import SessionProcess
from modelwright.targets import BoundSession, SessionSpec, open_session, parse_target
from modelwright.worker import run as run_in_child
from modelwright.worker import task

BLOCKS = 40
BLOCK_S = 0.1
WATCHED_BLOCKS = 8
WATCHED_S = 1.2
TARGET, TARGET_WATCHED = 1.01, 1.02
MODELS = {"1 layer": 1, "24 layers": 24}


def run() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, count in MODELS.items():
            path = layers(Path(folder) / f"{count}.onnx", count)
            bare, ours = run_in_child(loops.call(str(path), BLOCKS), timeout=600).unwrap()
            found[name] = {"bare_ms": round(bare, 6), "wright_ms": round(ours, 6), "ratio": round(ours / bare, 4)}
        watched = round(_watched_ratio(path, Path(folder)), 4)
    ratios = [float(row["ratio"]) for row in found.values()]
    return {
        "median": found,
        "monitored_ratio": watched,
        "target": f"ratio <= {TARGET}, monitored <= {TARGET_WATCHED}",
        "met": max(ratios) <= TARGET and watched <= TARGET_WATCHED,
    }


def _watched_ratio(model: Path, folder: Path) -> float:
    """Median run of one session while it is watched, against while it is not."""
    subject = make_subject(model, InputChoice())
    plan = LegPlan(duration_s=WATCHED_S, warmup=0)
    medians: dict[bool, list[float]] = {True: [], False: []}
    with SessionProcess() as process, Telemetry() as telemetry:
        opened = process.open(model, parse_target("cpu"), SessionSpec(threads=1), subject.feeds)
        for number in range(WATCHED_BLOCKS):
            for place, watched in enumerate((True, False, False, True)):
                file = folder / f"samples-{number}-{place}"
                if watched:
                    telemetry.start(opened.pid)
                process.measure(plan, file, 60).unwrap()
                if watched:
                    telemetry.stop()
                medians[watched].append(float(np.median(read_samples(file)[1])))
    return median(medians[True]) / median(medians[False])


@task
def loops(model: str, blocks: int) -> tuple[float, float]:
    """Median of block medians of the bare loop and of ours, in ms."""
    feeds = make_subject(model, InputChoice()).feeds
    plan = LegPlan(duration_s=BLOCK_S, warmup=0)
    bare: list[float] = []
    ours: list[float] = []
    with open_session(model, parse_target("cpu"), SessionSpec(threads=1)) as session:
        _bare(session, feeds)
        for block in range(blocks):
            order = (bare, ours, ours, bare) if block % 2 else (ours, bare, bare, ours)
            for leg in order:
                if leg is bare:
                    leg.append(_bare(session, feeds))
                else:
                    leg.append(median(measure_leg(session, feeds, plan).samples_ns) / 1e6)
    return median(bare), median(ours)


def _bare(session: BoundSession, feeds: object) -> float:
    native = session.native
    names = [output.name for output in native.get_outputs()]
    times = []
    end = time.perf_counter() + BLOCK_S
    while time.perf_counter() < end:
        start = time.perf_counter()
        native.run(names, feeds)
        times.append(time.perf_counter() - start)
    return 1000 * median(times)


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
