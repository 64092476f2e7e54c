"""A trace for people: terminal, HTML page, Chrome trace."""

import io
import json
import re
from dataclasses import replace

import pytest
import rich.console

from modelwright.errors import UsageError
from modelwright.measure._trace_build import build, operator_ids
from modelwright.measure._trace_chrome import write_chrome
from modelwright.measure._trace_spans import lay_out
from modelwright.measure._trace_types import TraceReason, TraceStatus
from modelwright.report.trace import render_trace, trace_notes
from modelwright.report.trace_html import trace_html
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
    text = shown(trace)
    assert re.search(r"act\s+Relu\s+CPU\s+1\s+20\.0 µs\s+20\.0 µs\s+25\.0 %\s+100 %", text)
    assert "slowest 2 of 2 operators" in text


def test_top_limits_the_table(trace):
    assert "act" not in shown(trace, top=1).partition("by type")[0].partition("slowest")[2]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_table_fits_every_terminal(trace, width):
    body = shown(trace, width).partition("slowest")[2]
    assert max(len(line) for line in body.splitlines()) <= width


def test_a_simulator_says_so_before_any_number(trace):
    simulated = replace(trace, source=replace(trace.source, timing_valid=False))
    assert any("simulator" in note for note in trace_notes(simulated))
    assert "simulator" in trace_html(simulated)


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
    assert "qnn-npu cannot run here" in trace_html(failed)


def test_the_page_needs_nothing_from_outside(trace):
    page = re.sub(r'id="data">.*?</script>', "", trace_html(trace), flags=re.DOTALL)
    assert re.findall(r"(?:src|href)\s*=|https?://|url\(|@import|fetch\(", page) == []
    assert "@@" not in page


def test_no_name_in_a_model_breaks_out_of_the_page(trace):
    page = trace_html(trace)
    assert page.count("</script>") == 2
    assert "<img" not in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["operators"][0]["name"] == HOSTILE


def test_the_page_holds_what_the_trace_holds(trace):
    data = json.loads(re.search(r'id="data">(.*?)</script>', trace_html(trace), re.DOTALL)[1])
    assert sum(item["percent"] for item in data["operators"]) == pytest.approx(100)
    assert len(data["timeline"]) == 2


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
