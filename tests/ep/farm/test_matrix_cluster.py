"""A matrix on many machines: real worker processes, one of them killed in the middle."""

import concurrent.futures
import itertools
import time
from collections import Counter

import numpy as np
import pytest

import modelwright as mw
from modelwright.api import _measuring as measuring
from modelwright.errors import UsageError
from modelwright.store import Key, Store
from support.lab import Lab, until
from support.models import conv_net, mlp, save

TARGETS = ("cpu", "qnn-npu")


def rows(folder):
    rng = np.random.default_rng(0)
    found = []
    for name, model, shape in (("net", conv_net(), (3, 8, 8)), ("mlp", mlp(), (4,))):
        drawn = rng.standard_normal((60, *shape)).astype(np.float32)
        np.savez(folder / f"{name}.npz", x=drawn, label=rng.integers(0, 3, len(drawn)))
        asked = {"task": "image-classification", "data": str(folder / f"{name}.npz")}
        found.append({"model": str(save(model, folder, f"{name}.onnx")), **asked})
    return found


def digests(result, folder):
    """Of every file of every build but the manifest, which says how long it took."""
    with Store(folder / "store", read_only=True) as store:
        builds = [(one.facts.key, store.get(Key(one.facts.key, "build"))) for one in result]
        return {
            key: {file.name: file.digest for file in made.files if file.name != "wright.json"} for key, made in builds
        }


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """One of the machines has the chip; `left` is killed by the first test."""
    with Lab(tmp_path_factory.mktemp("lab"), {"left": (), "right": (), "xelite": ("qnn-npu",)}) as found:
        yield found


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return rows(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """The store of the machine that asks."""
    with Store(tmp_path_factory.mktemp("far") / "store") as store:
        yield store


def test_a_matrix_on_three_machines_loses_nothing_and_makes_nothing_twice_when_one_is_killed(
    tmp_path, lab, models, far
):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(mw.matrix, models, TARGETS, scheduler=lab.address, tls=lab.tls, store=far)
        until(lambda: lab.is_making("left") or asked.done())
        lab.kill("left")
        result = asked.result(timeout=600)
        made = lab.made()
    with Store(tmp_path / "near" / "store") as near:
        alone = mw.matrix(models, TARGETS, store=near)
    assert result.passed
    assert digests(result, far.root.parent) == digests(alone, tmp_path / "near")
    # What this machine alone runs is what the machines ran together, each of it once.
    assert result.totals.stages == alone.totals.stages
    assert max(sum(made.values(), Counter()).values()) == 1
    asked_the_chip = {name: [stage for stage, _ in held if stage == "check"] for name, held in made.items()}
    assert [name for name, stages in asked_the_chip.items() if stages] == ["xelite"]
    assert all("left" not in one.facts.machines or made["left"] for one in result)
    assert "xelite" in result.find("net", "qnn-npu")[0].facts.machines


def test_builds_are_measured_on_the_machine_that_has_their_device_one_at_a_time(
    tmp_path, lab, models, far, monkeypatch
):
    spans = []

    def brief(model, target, **said):
        """The verb itself, for a moment instead of five seconds."""
        began = time.monotonic()
        found = mw.perf(model, target, iterations=20, warmup=2, **said)
        spans.append((found.measured_on, began, time.monotonic()))
        return found

    monkeypatch.setattr(measuring, "perf", brief)
    result = mw.matrix(models, TARGETS, perf=True, evaluate=True, scheduler=lab.address, tls=lab.tls, store=far)
    assert result.passed
    timed = [result.find(name, "cpu")[0].perf for name in ("net", "mlp")]
    # Another test kills the left one, where it runs in this process and before.
    assert {one.machine for one in timed} <= {"left", "right", "xelite"}
    assert len({one.machine for one in timed}) == 1, "numbers of one target are of one machine"
    assert all(one.p50_ms > 0 for one in timed)
    npu = result.find("mlp", "qnn-npu")[0]
    assert (npu.perf.machine, npu.perf.p50_ms) == ("xelite", None)
    assert "simulated" in npu.perf.why
    assert (npu.accuracy.machine, npu.accuracy.target, npu.accuracy.simulated) == ("xelite", "qnn-npu", True)
    assert npu.accuracy.value is not None
    assert all(mw.read(one.records[0], store=far).on == one.machine for one in timed)
    assert all(first[2] <= second[1] for first, second in itertools.pairwise(spans) if first[0] == second[0])
    result.save_pages(tmp_path / "pages")
    for page in ("matrix.html", "mlp/model.html"):
        assert timed[1].records[0][:12] in (tmp_path / "pages" / page).read_text()


def test_processes_of_this_machine_and_a_cluster_are_one_or_the_other(tmp_path):
    with pytest.raises(UsageError, match="`workers`"):
        mw.matrix(rows(tmp_path), "cpu", workers=2, scheduler="tls://127.0.0.1:1")
