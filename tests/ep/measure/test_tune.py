"""A search whose device misbehaves: real children that really abort."""

import json

import numpy as np
import pytest

import modelwright as mw
from ep.measure import tasks
from modelwright import worker
from modelwright.errors import ExecutionError, InputError
from modelwright.measure.races import _unit
from modelwright.search import DeviceLostError, _workshop
from modelwright.search._workshop import Workshop
from modelwright.targets import _energy
from support import models, powercap


@pytest.fixture
def model(tmp_path):
    return models.save(models.mlp(), tmp_path)


@pytest.fixture
def breaking(monkeypatch):
    """`denormals=off` takes its process down when it is opened."""
    opened = Workshop.facts

    def facts(shop, variant):
        if variant.label == "denormals=off":
            worker.run(tasks.abort.call(), timeout=60).unwrap()
        return opened(shop, variant)

    monkeypatch.setattr(Workshop, "facts", facts)


def asked(model, **more):
    return mw.tune(model, axes=["denormals", "level"], objective="size", **more)


def test_a_child_that_aborts_costs_its_variant_alone(model, breaking, tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))
    found = asked(model)
    rows = {row.label: row for row in found.rows}
    assert (found.status, rows["denormals=off"].word) == ("complete", "crashed")
    assert "SIGABRT" in rows["denormals=off"].reason
    assert rows["level=basic"].word == "not measured"
    (journal,) = (tmp_path / "home" / "searches").glob("*.jsonl")
    events = [json.loads(line).get("event") for line in journal.read_text().splitlines()]
    assert events[events.index("DeviceCrashed") + 1] == "DeviceProbed"


def test_a_device_that_is_gone_ends_the_search_and_is_asked_again_by_the_next(model, breaking, tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))
    with monkeypatch.context() as dead:
        dead.setattr(_workshop, "target_fails", lambda target: "no answer")
        with pytest.raises(DeviceLostError, match="ended by its device") as caught:
            asked(model)
    assert caught.value.partial.status == "crashed"
    assert caught.value.partial.record_id is not None
    found = asked(model)
    assert found.status == "complete"
    assert found.resumed > 0


def test_what_fails_whatever_the_variant_is_ends_the_search_at_once(model, tmp_path, monkeypatch):
    """Data that is gone would fail every precision in turn."""
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))
    data = tmp_path / "rows.npz"
    np.savez(data, x=np.random.default_rng(0).normal(size=(40, 4)).astype("float32"))
    build_all, asked = _workshop.build_all, []

    def losing(source, recipes, **more):
        asked.append(len(recipes))
        if len(asked) > 1:
            data.unlink(missing_ok=True)
        return build_all(source, recipes, **more)

    monkeypatch.setattr(_workshop, "build_all", losing)
    with pytest.raises(InputError, match=r"rows\.npz"):
        mw.tune(model, axes=["precision"], data=str(data), objective="size")
    (journal,) = (tmp_path / "home" / "searches").glob("*.jsonl")
    assert "VariantDropped" not in journal.read_text()


def units_of(searches):
    lines = (line for journal in searches.glob("*.jsonl") for line in journal.read_text().splitlines())
    return [event for line in lines if (event := json.loads(line)).get("event") == "UnitTaken"]


def test_energy_is_read_for_every_burst_and_is_what_is_judged(model, tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))
    root = powercap.write(tmp_path / "powercap")
    monkeypatch.setattr(_energy, "POWERCAP", root)
    # A thread moves the counters, and may have to wait for a CPU.
    monkeypatch.setattr(_energy, "_PATIENCE_S", 60.0)
    monkeypatch.setattr(_unit, "_ENERGY_S", 1.0)
    with powercap.moving(root):
        # A busy machine has built nothing yet when a short budget ends; the search goes on with a longer one.
        for budget_s in (20, 120, 600):
            found = mw.tune(model, axes=["denormals"], objective="energy", budget_s=budget_s)
            if units := units_of(tmp_path / "home" / "searches"):
                break
    assert units
    for unit in units:
        assert [len(burst) for burst in unit["base_mj"]] == [1] * len(unit["base_ms"])
        assert all(burst[0] > 0 for burst in (*unit["base_mj"], *unit["arm_mj"]))
    assert "energy" in found.sentence or "undecided" in found.sentence or "budget" in found.sentence
    assert "faster" not in found.sentence


def test_without_counters_a_search_for_energy_builds_nothing(model, tmp_path, monkeypatch):
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(_energy, "POWERCAP", tmp_path / "none")
    with pytest.raises(ExecutionError, match="does not tell how much energy"):
        mw.tune(model, axes=["denormals"], objective="energy")
    assert not (tmp_path / "home" / "searches").exists()
