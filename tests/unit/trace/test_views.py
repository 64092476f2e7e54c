"""A trace for people: terminal, HTML page, Chrome trace."""

import io
import json
import re
from dataclasses import replace

import pytest
import rich.console

from modelwright.errors import UsageError
from modelwright.measure.traces._build import build, operator_ids
from modelwright.measure.traces._chrome import write_chrome
from modelwright.measure.traces._spans import lay_out
from modelwright.measure.traces._types import TraceLoad, TraceReason, TraceStatus
from modelwright.report.html import page as page_of
from modelwright.report.trace import NO_SPREAD, OPEN_RANKS, render_trace, trace_notes
from unit.trace.recordings import empty, mlp_nodes, model_run, node, profile, recorded

HOSTILE = '</script><img src=x onerror=alert(1)>@@DATA@@&"'


@pytest.fixture
def found(tmp_path):
    """Two operators and two runs after one to warm up; one name is hostile."""
    return profile(
        tmp_path,
        *(
            event
            for at in (0, 1000, 2000)
            for event in (
                node(HOSTILE, at + 1, 60, "MatMul", 9),
                node("act", at + 70, 20, index=2),
                model_run(at, 100),
            )
        ),
    )


@pytest.fixture
def trace(found, tmp_path):
    return build(empty(2, 1), recorded(found, warmup=1, measured=2), mlp_nodes(tmp_path), {})


def shown(trace, width=100, top=10) -> str:
    console = rich.console.Console(file=io.StringIO(), width=width, highlight=False)
    render_trace(trace, console, top)
    return console.file.getvalue()


def test_the_table_names_units_types_and_shares(trace):
    text = shown(trace, width=140)
    assert re.search(r"act\s+Relu\s+CPU\s+1\s+20\.0 µs\s+20\.0 µs\s+25\.0 %\s+unknown\s+unknown\s+100 %", text)
    assert NO_SPREAD in trace_notes(trace)
    assert "slowest 2 of 2 operators" in text


def test_top_limits_the_table(trace):
    assert "act" not in shown(trace, top=1).partition("by type")[0].partition("slowest")[2]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_table_fits_every_terminal(trace, width):
    body = shown(trace, width).partition("slowest")[2]
    assert max(len(line) for line in body.splitlines()) <= width


@pytest.fixture
def noisy(tmp_path):
    """Three equal operators that noise makes 60 to 140 µs long, and one of 10 µs, in ten runs."""
    lengths = [[60 + 9 * ((run * step) % 10) for step in (1, 3, 7)] for run in range(10)]
    events = []
    for run, (first, second, third) in enumerate(lengths):
        at = 1000 * run
        places = [("first", 0, first), ("bias", 200, second), ("second", 400, third), ("act", 600, 10)]
        events += [node(name, at + place, us, "Conv", place) for name, place, us in places]
        events.append(model_run(at, 700))
    found = profile(tmp_path, *events)
    return build(empty(10, 0), recorded(found, warmup=0, measured=10), mlp_nodes(tmp_path), {})


def test_equal_operators_are_not_ranked_by_noise(noisy):
    equal, small = noisy.operators[:3], noisy.operators[3]
    assert all((item.spread.first_rank, item.spread.last_rank) == (1, 3) for item in equal)
    assert (small.spread.first_rank, small.spread.last_rank) == (4, 4)
    assert all(item.spread.low < item.percent < item.spread.high for item in equal)
    assert OPEN_RANKS in trace_notes(noisy)
    assert re.search(r"1–3", shown(noisy))
    kinds = noisy.by_op_type[0]
    assert (kinds.spread.low, kinds.spread.high) == (pytest.approx(100), pytest.approx(100))
    assert re.findall(r"#(\d(?:–\d)?), ", page_of(noisy)) == ["1–3", "1–3", "1–3", "4"]


def test_names_are_readable_on_eighty_columns(noisy):
    long = "/encoder/layer.11/attention/output/Conv"
    one = replace(noisy.operators[0], onnx_nodes=(long,))
    body = shown(replace(noisy, operators=(one, *noisy.operators[1:])), width=80).partition("slowest")[2]
    assert all(part in body for part in long.split("/"))
    assert "…" not in body
    assert "1–3" in body


def test_medians_that_do_not_add_up_to_the_run_get_a_word(trace):
    shorter = replace(trace, totals=replace(trace.totals, model_run_us=80.0))
    assert any("add up to 100.0 µs, a run took 80.0 µs" in note for note in trace_notes(shorter))
    assert not any("add up" in note for note in trace_notes(trace))


def test_a_busy_machine_is_said_to_be_one(trace):
    busy = replace(trace, load=TraceLoad(1.5, 2.0, None))
    assert any("1.5 of 2 CPUs were busy with other work" in note for note in trace_notes(busy))
    quiet = replace(trace, load=TraceLoad(0.1, 2.0, None))
    assert not any("busy" in note for note in trace_notes(quiet))


def test_the_chrome_trace_of_a_simulator_is_stamped(trace, found, tmp_path):
    simulated = replace(trace, source=replace(trace.source, timing_valid=False))
    events = chrome(simulated, found, tmp_path / "chrome.json")
    assert "SIMULATED" in next(event for event in events if event["name"] == "process_name")["args"]["name"]
    timed = [event for event in events if "dur" in event]
    assert timed
    assert all(event["args"]["timing_valid"] is False for event in timed)


def test_a_simulator_says_so_before_any_number(trace):
    simulated = replace(trace, source=replace(trace.source, timing_valid=False))
    assert any("simulator" in note for note in trace_notes(simulated))
    assert "simulator" in page_of(simulated)


def test_interrupted_runs_are_called_that(trace):
    slow = replace(trace, totals=replace(trace.totals, model_run_us=5000.0))
    assert any("interrupting" in note for note in trace_notes(slow))
    assert not any("interrupting" in note for note in trace_notes(trace))


def test_a_trace_without_data_shows_why_and_no_table():
    failed = replace(
        empty(), status=TraceStatus.RUN_FAILED, reason_code=TraceReason.EP_FAILED, error="qnn-npu cannot run here"
    )
    text = shown(failed)
    assert "the traced run failed: qnn-npu cannot run here" in text
    assert "slowest" not in text
    assert "qnn-npu cannot run here" in page_of(failed)


def test_the_page_holds_what_the_trace_holds(trace):
    page = page_of(trace)
    assert "<img" not in page
    shares = [float(found) for found in re.findall(r'data-v="[^"]*">([\d.]+)</td><td class="long', page)]
    assert sum(shares) == pytest.approx(100)
    assert page.count('<i title="') == 2


def chrome(trace, found, path):
    layout = lay_out(found, None)
    rows = dict.fromkeys(span.row for number in range(3) for span in layout.spans(number))
    write_chrome(trace, layout, operator_ids(layout, rows), path)
    return json.loads(path.read_text())


def test_the_chrome_trace_has_every_run_and_marks_the_warm_up(trace, found, tmp_path):
    events = chrome(trace, found, tmp_path / "chrome.json")
    assert [event["name"] for event in events if event.get("cat") in ("run", "warm-up") and not event["args"]] == [
        "warm-up 0",
        "run 0",
        "run 1",
    ]
    calls = [event for event in events if event.get("cat") == "kernel"]
    assert {event["name"] for event in calls} == {HOSTILE, "act"}
    assert all(event["args"]["op_type"] for event in calls)
    assert min(event["ts"] for event in events if "ts" in event) == 0


def test_a_chrome_trace_that_cannot_be_written_is_a_usage_error_and_leaves_nothing(trace, found, tmp_path):
    with pytest.raises(UsageError):
        chrome(trace, found, tmp_path / "no folder" / "chrome.json")
    assert not list(tmp_path.glob(".*"))
