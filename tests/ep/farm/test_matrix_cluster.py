"""A matrix on many machines: real worker processes, one of them killed in the middle."""

import concurrent.futures
from collections import Counter

import numpy as np
import pytest

import modelwright as mw
from modelwright.errors import UsageError
from modelwright.store import Key, Store
from support.lab import Lab, until
from support.models import conv_net, mlp, save

TARGETS = ("cpu", "qnn-npu")


def rows(folder):
    rng = np.random.default_rng(0)
    found = []
    for name, model, shape in (("net", conv_net(), (3, 8, 8)), ("mlp", mlp(), (4,))):
        np.savez(folder / f"{name}.npz", x=rng.standard_normal((40, *shape)).astype(np.float32))
        found.append({"model": str(save(model, folder, f"{name}.onnx")), "data": str(folder / f"{name}.npz")})
    return found


def digests(result, folder):
    """Of every file of every build but the manifest, which says how long it took."""
    with Store(folder / "store", read_only=True) as store:
        builds = [(one.facts.key, store.get(Key(one.facts.key, "build"))) for one in result]
        return {
            key: {file.name: file.digest for file in made.files if file.name != "wright.json"} for key, made in builds
        }


def test_a_matrix_on_three_machines_loses_nothing_and_makes_nothing_twice_when_one_is_killed(tmp_path):
    models = rows(tmp_path)
    machines = {"left": (), "right": (), "xelite": ("qnn-npu",)}
    with (
        Lab(tmp_path / "lab", machines) as lab,
        Store(tmp_path / "far" / "store") as far,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        asked = pool.submit(mw.matrix, models, TARGETS, scheduler=lab.address, tls=lab.tls, store=far)
        until(lambda: lab.is_making("left") or asked.done())
        lab.kill("left")
        result = asked.result(timeout=600)
        made = lab.made()
    with Store(tmp_path / "near" / "store") as near:
        alone = mw.matrix(models, TARGETS, store=near)
    assert result.passed
    assert digests(result, tmp_path / "far") == digests(alone, tmp_path / "near")
    # What this machine alone runs is what the machines ran together, each of it once.
    assert result.totals.stages == alone.totals.stages
    assert max(sum(made.values(), Counter()).values()) == 1
    asked_the_chip = {name: [stage for stage, _ in held if stage == "check"] for name, held in made.items()}
    assert [name for name, stages in asked_the_chip.items() if stages] == ["xelite"]
    assert all("left" not in one.facts.machines or made["left"] for one in result)
    assert "xelite" in result.find("net", "qnn-npu")[0].facts.machines


def test_processes_of_this_machine_and_a_cluster_are_one_or_the_other(tmp_path):
    with pytest.raises(UsageError, match="`workers`"):
        mw.matrix(rows(tmp_path), "cpu", workers=2, scheduler="tls://127.0.0.1:1")
