"""`matrix` with `perf` and `evaluate`: what a machine can measure is measured by the verbs, once, with its records."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import rich.console

import modelwright as mw
from modelwright.api import _measuring as measuring
from modelwright.api._places import MeasuringPlace, places_there
from modelwright.farm.cluster import ClusterWorker
from modelwright.farm.cluster._wire import WorkerFacts
from modelwright.report.matrix import render_cells, render_matrix
from modelwright.store import Store
from support.models import mlp, save

TARGETS = ("cpu", "qnn-npu", "dml-gpu")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "home" / "store") as opened:
        yield opened


@pytest.fixture
def short(monkeypatch):
    """The verb itself, for a moment instead of five seconds."""
    asked = []

    def brief(model, target, **said):
        asked.append((str(target), said.get("component")))
        return mw.perf(model, target, iterations=20, warmup=2, **said)

    monkeypatch.setattr(measuring, "perf", brief)
    return asked


def labelled(folder, task="image-classification", rows=60):
    rng = np.random.default_rng(0)
    np.savez(folder / "rows.npz", x=rng.standard_normal((rows, 4)).astype(np.float32), label=rng.integers(0, 3, rows))
    return {"model": str(save(mlp(), folder, "mlp.onnx")), "data": str(folder / "rows.npz"), "task": task}


def test_builds_are_timed_where_their_device_is_and_scored_on_rows_that_found_no_ranges(tmp_path, store, short):
    result = mw.matrix([labelled(tmp_path)], TARGETS, perf=True, evaluate=True, output=tmp_path / "out", store=store)
    assert result.passed
    cpu, npu, gpu = (result.find("mlp", target)[0] for target in TARGETS)
    assert short == [("cpu", None)]
    assert cpu.perf.p50_ms > 0
    assert (npu.perf.p50_ms, gpu.perf.p50_ms) == (None, None)
    assert "simulated" in npu.perf.why
    assert "Windows" in gpu.perf.why
    # 32 of the 60 rows found the ranges of the quantized one: none of them judges any of the three.
    assert [(one.accuracy.samples, one.accuracy.target) for one in (cpu, npu, gpu)] == [(28, "cpu")] * 3
    assert len({one.accuracy.reference for one in result}) == 1
    # The numbers are those of records that anybody can look up, under the name of the model.
    timed, scored = (mw.read(one, store=store) for one in (cpu.perf.records[0], npu.accuracy.record))
    assert timed.payload.latency.p50_ms == cpu.perf.p50_ms
    assert scored.payload.values.candidate == npu.accuracy.value
    assert (timed.models[0].name, scored.models[0].name) == ("mlp", "mlp")


def test_what_was_measured_is_not_measured_again_and_stays_when_nobody_asks_for_it(tmp_path, store, short):
    rows = [labelled(tmp_path)]
    first = mw.matrix(rows, "cpu", perf=True, store=store)
    again = mw.matrix(rows, "cpu", perf=True, store=store)
    silent = mw.matrix(rows, "cpu", store=store)
    assert len(short) == 1
    assert [one.cells[0].perf for one in (again, silent, mw.matrix_status(store=store))] == [first.cells[0].perf] * 3
    scored = mw.matrix(rows, "cpu", perf=True, evaluate=True, store=store)
    assert len(short) == 1
    assert scored.cells[0].perf == first.cells[0].perf
    assert scored.cells[0].accuracy.value is not None


def test_what_cannot_be_measured_says_why_and_hinders_nothing(tmp_path, store, short, monkeypatch):
    rows = [labelled(tmp_path), {"model": str(save(mlp(9), tmp_path, "other.onnx"))}]
    real = measuring.perf

    def refused(model, target, **said):
        if model.name == "mlp":
            raise mw.errors.ExecutionError("the device is gone", cause="played", fix="none")
        return real(model, target, **said)

    monkeypatch.setattr(measuring, "perf", refused)
    result = mw.matrix(rows, "cpu", perf=True, evaluate=True, store=store)
    bad, good = result.find("mlp", "cpu")[0], result.find("other", "cpu")[0]
    assert (bad.words, bad.perf.p50_ms, bad.perf.why) == ("validated", None, "the device is gone: played")
    assert good.perf.p50_ms > 0
    assert good.accuracy.value is None
    assert "task" in good.accuracy.reason
    monkeypatch.setattr(measuring, "perf", real)
    assert mw.matrix(rows, "cpu", perf=True, store=store).find("mlp", "cpu")[0].perf.p50_ms > 0


def test_the_terminal_says_on_what_a_score_was_found_and_why_there_is_no_time(tmp_path, store, short):
    result = mw.matrix([labelled(tmp_path)], TARGETS, perf=True, evaluate=True, store=store)
    screen = io.StringIO()
    console = rich.console.Console(file=screen, width=80)
    render_matrix(result, console)
    render_cells(result.find("mlp", "cpu"), {result.find("mlp", "cpu")[0].cell.id: []}, console)
    text = " ".join(screen.getvalue().split())
    assert "scores of qnn-npu, dml-gpu are those of the file on a CPU: nobody has the device itself" in text
    assert "no latency of 1 cell (qnn-npu): it is only simulated" in text
    assert "no latency of 1 cell (dml-gpu): runs on Windows only" in text
    assert "ms in the typical run (p50)" in text
    assert result.find("mlp", "cpu")[0].perf.records[0][:12] in text


def test_the_pages_have_what_was_measured_and_a_link_to_every_model(tmp_path, store, short):
    result = mw.matrix([labelled(tmp_path)], TARGETS, perf=True, evaluate=True, store=store)
    result.save_pages(tmp_path / "pages")
    whole = (tmp_path / "pages/matrix.html").read_text()
    own = (tmp_path / "pages/mlp/model.html").read_text()
    assert 'href="mlp/model.html"' in whole
    assert 'href="../matrix.html"' in own
    time = f"{result.find('mlp', 'cpu')[0].perf.p50_ms:,.4g}"
    for page in (whole, own):
        assert time in page
        assert result.find("mlp", "cpu")[0].perf.records[0][:12] in page
    assert 'href="mlp' not in mw.matrix_status(store=store).save_page(tmp_path / "alone.html").read_text()
    document = json.loads(result.save(Path(tmp_path / "m.json")).read_text())
    assert document["cells"][0]["perf"]["parts"][0]["p50_ms"] == result.cells[0].perf.p50_ms


def worker(name, *devices, simulated=()):
    facts = WorkerFacts(name, "Linux", {}, "cpu", 1, False, "0", simulated=simulated)
    return ClusterWorker(f"tls://{name}", {f"device:{word}": 1.0 for word in ("cpu", *devices)}, facts)


def test_a_machine_that_has_the_chip_goes_before_one_that_simulates_it_and_one_machine_measures_a_target():
    where = places_there(
        [worker("b", "qnn-npu"), worker("c", "qnn-npu"), worker("a", "qnn-npu", simulated=("qnn-npu",))]
    )
    assert where("qnn-npu") == MeasuringPlace("b")
    assert where("qnn-npu:soc=60") == MeasuringPlace("b")
    assert where("cpu") == MeasuringPlace("a")
    assert where("dml-gpu") == "no worker of the cluster has it"
    assert places_there([worker("a", "qnn-npu", simulated=("qnn-npu",))])("qnn-npu").simulated
