"""Many models for many targets with the real stages: shared work, failures that stay where they are, going on."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import rich.console

import modelwright as mw
from modelwright import farm
from modelwright.errors import UsageError
from modelwright.farm.feeds import FeedError, open_feed
from modelwright.farm.feeds import pull as pull_package
from modelwright.models import read_build
from modelwright.plans import _executor as executor
from modelwright.report.matrix import render_cells, summary
from modelwright.store import Store
from modelwright.worker import run
from support.models import conv_net, mlp, save
from unit.worker import tasks

FAST = ("cpu", "dml-gpu")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "home" / "store") as opened:
        yield opened


def samples(folder: Path, name: str, *shape: int) -> str:
    rng = np.random.default_rng(0)
    path = folder / f"{name}.npz"
    np.savez(path, x=rng.standard_normal((40, *shape)).astype(np.float32))
    return str(path)


def states(result):
    return {(one.cell.model, one.cell.target, one.cell.precision): one.words for one in result}


def test_eight_targets_share_what_is_the_same_and_every_build_that_counts_passed_its_gate(tmp_path, store):
    rows = [
        {"model": str(save(conv_net(), tmp_path, "net.onnx")), "data": samples(tmp_path, "images", 3, 8, 8)},
        {"model": str(save(mlp(), tmp_path, "mlp.onnx")), "data": samples(tmp_path, "rows", 4)},
    ]
    plan = mw.matrix_plan(rows, store=store)
    assert store.entries() == ()
    shared = {one.stage: one for one in plan.shared}
    assert (shared["optimize"].alone, shared["quantize"].alone) == (16, 4)

    feed = tmp_path / "feed"
    result = mw.matrix(rows, to=feed, store=store)
    assert {one.words for one in result} == {"published"}, states(result)
    assert (len(result), result.passed) == (16, True)
    # What the plan said is what was done.
    done = result.totals.stages
    made = ("optimize", "quantize")
    assert {name: done[name] for name in made} == {name: shared[name].distinct for name in made}
    assert shared["quantize"].distinct == 2
    assert all(one.facts.gate and one.attempt == 1 and one.facts.cpu_seconds > 0 for one in result)
    assert {one.facts.precision for one in result.find("mlp", "qnn-npu")} == {"w8a16"}
    npu = result.find("net", "qnn-npu")[0].facts
    assert min(npu.nodes, npu.on_target, npu.simulated) > 0
    assert result.find("net", "dml-gpu")[0].facts.nodes is None
    assert result.disk.peak >= result.disk.kept > 0

    again = mw.matrix(rows, to=feed, output=None, store=store)
    assert again.totals.stages == {}
    assert {one.attempt for one in again} == {1}
    status = mw.matrix_status(store=store)
    assert [(one.cell, one.state, one.reference) for one in status] == [(o.cell, o.state, o.reference) for o in result]
    events = [event.state for event in store.ledger().events(result.cells[0].cell.id)]
    assert events == ["leased", "building", "built", "validated", "uploading", "published"]

    query = farm.feeds.PackageQuery("net", "qnn-npu")
    pulled = pull_package(open_feed(feed), query, tmp_path / "pulled", store=store)
    assert pulled.package.precision == "w8a16"
    assert read_build(tmp_path / "pulled").parts


def test_a_fresh_output_folder_is_filled_without_building_anything_again(tmp_path, store):
    rows = [str(save(mlp(), tmp_path, "mlp.onnx"))]
    first = mw.matrix(rows, FAST, output=tmp_path / "one", store=store)
    second = mw.matrix(rows, FAST, output=tmp_path / "two", store=store)
    assert first.totals.stages["optimize"] == 1
    assert second.totals.stages == {}
    for one, other in zip(first, second, strict=True):
        files = [{p.name: p.read_bytes() for p in Path(status.folder).iterdir()} for status in (one, other)]
        assert files[0]["model.onnx"] == files[1]["model.onnx"]
    assert (first.passed, second.passed) == (True, True)


def test_a_place_that_is_taken_is_no_fault_of_the_model_and_heals_in_another_folder(tmp_path, store):
    rows, out = [str(save(mlp(8), tmp_path, "net.onnx"))], tmp_path / "out"
    (out / "net").mkdir(parents=True)
    (out / "net" / "cpu").write_text("precious")
    (taken,) = mw.matrix(rows, "cpu", output=out, store=store)
    assert (taken.state, taken.failure.kind) == ("failed", "folder")
    assert (out / "net" / "cpu").read_text() == "precious"
    (healed,) = mw.matrix(rows, "cpu", output=tmp_path / "other", store=store)
    assert (healed.state, healed.failure, healed.attempt) == ("validated", None, 1)


def test_builds_that_abort_hang_eat_memory_or_fill_the_disk_fail_by_class_and_the_rest_is_done(
    tmp_path, store, monkeypatch
):
    """A stage of each bad model does in its real child what such models do."""
    bad = {
        "aborts": lambda: run(tasks.abort.call(), timeout=60),
        "hangs": lambda: run(tasks.sleep.call(600), timeout=3),
        "eats": lambda: run(tasks.allocate.call(2000, hold=30), timeout=60, memory_limit=200 << 20),
        "fills": lambda: run(tasks.disk_full.call(), timeout=60),
    }
    real = executor.run_node

    def played(store, node, *rest):
        return bad[node.label]().unwrap() if node.label in bad else real(store, node, *rest)

    monkeypatch.setattr(executor, "run_node", played)
    rows = [str(save(mlp(8 + number), tmp_path, f"{name}.onnx")) for number, name in enumerate((*bad, "good"))]
    result = mw.matrix(rows, FAST, store=store)
    assert {(one.cell.model, one.words) for one in result} == {
        ("aborts", "failed (crash)"),
        ("hangs", "failed (timeout)"),
        ("eats", "failed (oom)"),
        ("fills", "failed (disk)"),
        ("good", "validated"),
    }
    assert result.passed is False
    crash = result.find("aborts", "cpu")[0].failure
    assert "SIGABRT" in crash.cause
    assert mw.matrix_status(store=store).counts == result.counts
    assert Path(crash.log).is_file()


def test_colliding_names_and_two_precisions_are_four_artifacts(tmp_path, store):
    rows = []
    for name, width in (("a/b-c", 8), ("a-b/c", 12)):
        model, data = str(save(mlp(width), tmp_path / name, "m.onnx")), samples(tmp_path, "rows", 4)
        rows += [{"model": model, "name": name, "precision": word, "data": data} for word in ("w8a8", "w8a16")]
    feed = tmp_path / "feed"
    result = mw.matrix(rows, "openvino-npu", to=feed, output=tmp_path / "out", store=store)
    assert {one.words for one in result} == {"published"}, states(result)
    assert len({one.facts.digest for one in result}) == len({one.folder for one in result}) == 4
    assert len({one.reference for one in result}) == 4
    for one in result:
        query = farm.feeds.PackageQuery(one.cell.model, one.cell.target, one.facts.precision)
        place = tmp_path / "pulled" / one.cell.slug
        pull_package(open_feed(feed), query, place, store=store)
        assert (place / "model.onnx").read_bytes() == (Path(one.folder) / "model.onnx").read_bytes()


def test_what_nobody_could_judge_is_kept_back_until_it_is_asked_for(tmp_path, store):
    rows, feed = [str(save(mlp(), tmp_path, "mlp.onnx"))], tmp_path / "feed"
    result = mw.matrix(rows, "openvino-npu", to=feed, store=store)
    assert (result.cells[0].words, result.passed) == ("built, unjudged", None)
    assert mw.matrix(rows, "openvino-npu", to=feed, store=store).totals.stages == {}
    released = mw.matrix(rows, "openvino-npu", to=feed, unjudged=True, store=store)
    assert released.cells[0].words == "published"
    assert released.totals.stages == {}


def faulty(folder, kind, first=None):
    """A folder that meets a fault with the first packages, or with all of them."""
    real = open_feed(folder)

    class FaultyFeed(type(real)):
        tried = 0

        def send(self, *args):
            self.tried += 1
            if first is None or self.tried <= first:
                raise FeedError("no", kind=kind, cause="played", fix="none")
            return real.send(*args)

    return FaultyFeed(folder)


def test_dead_credentials_stop_the_run_and_what_is_built_is_published_by_the_next(tmp_path, store):
    rows = [str(save(mlp(8 + number), tmp_path, f"m{number}.onnx")) for number in range(3)]
    real = open_feed(tmp_path / "feed")
    dead = faulty(tmp_path / "feed", "auth")
    with pytest.raises(FeedError) as stopped:
        mw.matrix(rows, FAST, to=dead, store=store)
    assert stopped.value.exit_code == 5
    assert dead.tried < 6
    assert "feed-auth" in {one.failure.kind for one in stopped.value.partial.failed}
    result = mw.matrix(rows, FAST, to=real, store=store)
    assert {one.words for one in result} == {"published"}
    assert "optimize" not in result.totals.stages or result.totals.stages["optimize"] < 3


def test_one_bad_package_does_not_stop_the_others(tmp_path, store):
    rows = [str(save(mlp(8 + number), tmp_path, f"m{number}.onnx")) for number in range(2)]
    feed = faulty(tmp_path / "feed", "refused", 1)
    result = mw.matrix(rows, FAST, to=feed, store=store)
    assert sorted(one.words for one in result) == ["failed (feed-refused)", *["published"] * 3]
    retried = mw.matrix(rows, FAST, to=feed, store=store, retry=["feed-refused"])
    assert {one.words for one in retried} == {"published"}
    assert retried.totals.stages == {}


def test_the_store_stays_within_the_disk_that_was_allowed_and_foreign_files_stay(tmp_path, store, monkeypatch):
    """Ten models of 400 KB each, published one after the other, where the store may hold about two."""
    cache = tmp_path / "hub"
    (cache / "token").parent.mkdir()
    (cache / "token").write_text("secret")
    monkeypatch.setenv("HF_HOME", str(cache))
    rows = [str(save(wide(number), tmp_path, f"m{number}.onnx")) for number in range(10)]
    feed = open_feed(tmp_path / "feed")
    result = mw.matrix(rows, "cpu", to=feed, disk=3_000_000, workers=1, store=store)
    assert {one.words for one in result} == {"published"}, states(result)
    assert result.disk.evicted > 0
    assert result.disk.kept <= 3_000_000
    assert (cache / "token").read_text() == "secret"
    # What went can be had from the feed, whole.
    for one in result:
        query = farm.feeds.PackageQuery(one.cell.model, "cpu")
        pull_package(feed, query, tmp_path / "pulled" / one.cell.slug, store=store)
    assert mw.matrix(rows, "cpu", to=feed, disk=3_000_000, store=store).totals.stages == {}


def test_a_model_that_can_never_fit_is_refused_and_the_others_are_built(tmp_path, store):
    rows = [str(save(wide(0), tmp_path, "large.onnx")), str(save(mlp(), tmp_path, "small.onnx"))]
    result = mw.matrix(rows, "cpu", disk=600_000, store=store)
    assert {(one.cell.model, one.words) for one in result} == {("large", "failed (disk)"), ("small", "validated")}
    assert "does not fit" in result.find("large", "cpu")[0].failure.problem


def test_what_is_over_the_budget_is_said_and_a_model_that_never_fits_is_tried_once(tmp_path, store):
    rows = [str(save(mlp(), tmp_path, "net.onnx"))]
    (never,) = mw.matrix(rows, "cpu", disk=1000, store=store)
    assert (never.failure.kind, never.attempt) == ("disk", 1)
    result = mw.matrix(rows, "openvino-npu", disk=4000, output=tmp_path / "out", store=store)
    assert result.disk.peak > result.disk.limit
    assert any("more than was allowed" in line for line in summary(result))
    events = {result.cells[0].cell.id: store.ledger().events(result.cells[0].cell.id)}
    screen = io.StringIO()
    render_cells(result.cells, events, rich.console.Console(file=screen, width=80))
    shown = [line.split()[2] for line in screen.getvalue().splitlines() if line.strip().startswith("20")]
    assert shown == ["leased", "building", "built"]


def wide(number):
    from onnx import helper

    from support.models import model, value, weight

    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    weights = [weight("w", 4, 25_000, seed=number)]
    return model(nodes, [value("x", shape=[1, 4])], [value("y", shape=[1, 25_000])], weights)


def test_a_class_that_is_none_is_refused(tmp_path):
    with pytest.raises(UsageError, match="crsh"):
        mw.matrix([str(save(mlp(), tmp_path))], "cpu", retry=["crsh"])


DRIVER = """
import json, sys
import modelwright as mw
mw.matrix(json.loads(sys.argv[1]), ("cpu", "openvino-npu"), output=sys.argv[2])
"""


def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path):
    """The driver is killed when the first cell is in the ledger as done; nothing finished is done again."""
    rows = [str(save(mlp(8 + number), tmp_path, f"m{number}.onnx")) for number in range(3)]
    words = [sys.executable, "-c", DRIVER, json.dumps(rows), str(tmp_path / "one")]
    with subprocess.Popen(words, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
        while driver.poll() is None and not finished():
            time.sleep(0.05)
        driver.send_signal(signal.SIGKILL)
    before = finished()
    assert before
    result = mw.matrix(rows, ("cpu", "openvino-npu"), output=tmp_path / "two")
    assert {one.words for one in result} == {"validated", "built, unjudged"}
    attempts = {one.cell.id: one.attempt for one in result}
    assert all(attempts[cell] == 1 for cell in before)
    assert all((Path(one.folder) / "model.onnx").is_file() and "two" in one.folder for one in result)


def finished():
    with Store(read_only=True) as store:
        ledger = store.ledger()
        found = {name for name, event in ledger.latest().items() if event.state in ("validated", "built")}
        ledger.close()
        return found
