"""Telemetry watches from outside, says what it cannot see, and stops."""

import io
import subprocess
import sys
import threading
import time

import pytest
import rich.console

from modelwright._json import dumps
from modelwright.errors import UsageError
from modelwright.measure.telemetry._telemetry import Telemetry
from modelwright.measure.telemetry._types import Meter, NoMeter
from modelwright.report.telemetry import LiveChart, chart, render_telemetry, sparkline
from modelwright.vocabulary import Progress

LIMIT_S = 120


class Counting:
    """A meter that gives these values, then nothing; `over` says that all were asked for."""

    def __init__(self, values):
        self._source = iter(values)
        self.over = threading.Event()

    def __call__(self, pid):
        return [Meter("load", "%", "a test", self._next), NoMeter("npu_busy", "%", "no NPU")]

    def _next(self, _):
        value = next(self._source, None)
        if value is None:
            self.over.set()
        return value


def watched(values, **options):
    counting = Counting(values)
    with Telemetry(0.2, find=counting, **options) as telemetry:
        telemetry.start(1)
        assert counting.over.wait(LIMIT_S)
        return telemetry.stop()


def wait_for(condition):
    """However busy the machine is; the limit only ends a test that hangs."""
    end = time.monotonic() + LIMIT_S
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    assert condition()


def test_mean_and_max_are_of_the_samples():
    load = watched([10.0, 20.0, 60.0]).find("load")
    assert (load.samples, load.mean, load.max) == (3, 30, 60)
    assert [sample.value for sample in load.recent] == [10, 20, 60]


def test_what_cannot_be_read_is_none_with_a_reason():
    npu = watched([1.0]).find("npu_busy")
    assert (npu.mean, npu.max, npu.samples, npu.reason) == (None, None, 0, "no NPU")


def test_a_single_sample_says_nothing():
    load = watched([10.0]).find("load")
    assert (load.mean, load.max) == (None, None)
    assert "measure longer" in load.reason


def test_a_meter_that_fails_is_only_silent():
    asked = threading.Event()

    def broken(_):
        asked.set()
        raise OSError("gone")

    with Telemetry(0.2, find=lambda pid: [Meter("x", "%", "a test", broken)]) as telemetry:
        telemetry.start(1)
        assert asked.wait(LIMIT_S)
        assert telemetry.stop().series[0].mean is None


def test_only_the_last_samples_are_kept_but_all_count():
    load = watched([1.0, 2.0, 3.0, 4.0], capacity=2).find("load")
    assert len(load.recent) == 2
    assert load.samples == 4
    assert load.mean == 2.5


def test_leaving_the_block_ends_the_thread_also_after_an_error():
    def fail():
        with Telemetry(0.2, find=Counting([])) as telemetry:
            telemetry.start(1)
            raise ZeroDivisionError

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        fail()
    assert threading.active_count() == before


def test_it_cannot_be_started_twice_but_again():
    with Telemetry(0.2, find=lambda pid: []) as telemetry:
        telemetry.start(1)
        with pytest.raises(RuntimeError):
            telemetry.start(1)
        telemetry.stop()
        telemetry.start(2)
        assert telemetry.stop().pid == 2


@pytest.mark.parametrize("interval", [0.0, 0.1, -1.0, float("nan"), float("inf")])
def test_too_short_an_interval_is_refused(interval):
    with pytest.raises(UsageError):
        Telemetry(interval)


def test_a_real_child_is_seen_and_the_result_is_strict_json():
    program = "x = bytearray(50 << 20)\nfor _ in range(10**9): pass"
    child = subprocess.Popen([sys.executable, "-c", program])
    try:
        with Telemetry(0.2) as telemetry:
            telemetry.start(child.pid)
            wait_for(lambda: (telemetry.so_far().find("process_memory").max or 0) > 50 << 20)
            wait_for(lambda: telemetry.so_far().find("process_cpu").samples >= 3)
            seen = telemetry.stop()
    finally:
        child.kill()
        child.wait()
    assert seen.find("process_cpu").mean > 1
    assert seen.find("process_memory").max > 50 << 20
    assert all((series.mean is None) == (series.reason is not None) for series in seen.series)
    dumps(seen)


def test_a_child_that_ends_leaves_its_samples():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Telemetry(0.2) as telemetry:
        telemetry.start(child.pid)
        wait_for(lambda: telemetry.so_far().find("process_memory").samples >= 1)
        child.communicate(b"\n")
        assert telemetry.stop().find("process_memory").samples >= 1


def console(width, encoding="utf-8", terminal=True):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    return rich.console.Console(file=stream, width=width, force_terminal=terminal, no_color=True)


def written(out) -> str:
    return out.file.buffer.getvalue().decode(out.file.encoding)


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_chart_fits_and_never_draws_what_is_not_known(width, encoding):
    seen = watched([10.0, 90.0, 40.0])
    out = console(width, encoding, terminal=False)
    out.print(chart(seen, [1.0, 2.0], out))
    text = written(out)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "load" in text
    assert "latency" in text
    assert "npu" not in text


def test_the_live_chart_draws_on_a_terminal_only():
    with Telemetry(0.2, find=Counting([10.0, 20.0])) as telemetry:
        telemetry.start(1)
        for terminal in (True, False):
            out = console(80, terminal=terminal)
            with LiveChart(telemetry, out) as live:
                live(Progress("measuring", 0.5))
                wait_for(lambda out=out, terminal=terminal: "measuring" in written(out) or not terminal)
            assert ("measuring" in written(out)) == terminal


def test_the_summary_lists_the_unknown_with_its_reason():
    out = console(100, terminal=False)
    render_telemetry(watched([10.0, 20.0]), out)
    assert "mean 15 %, max 20 %" in written(out)
    assert "unknown: no NPU" in written(out)


def test_sparklines_are_scaled_from_zero():
    assert sparkline([0, 50, 100], 10, 100) == "▁▅█"
    assert sparkline([5, 5], 10) == "██"
    assert sparkline([], 10) == ""
    assert sparkline([1, 2, 3, 4], 2, 4) == "▆█"
