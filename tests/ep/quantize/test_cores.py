"""What is quantized does not depend on how many cores the machine has; how long it takes does."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from ep.quantize.graphs import saved
from modelwright.data import DataSource
from modelwright.errors import InputError
from modelwright.stages.quantize import QuantizeParams, _session, run_quantize
from modelwright.stages.quantize._session import run_each
from modelwright.vocabulary import Data
from support.models import model, value


def convolutions(count: int = 6) -> onnx.ModelProto:
    """Of sizes at which onnxruntime's threads share their sums, so that the last bits depend on how many there are."""
    rng, nodes, weights, channels = np.random.default_rng(0), [], [], (256, 96)
    for index in range(count):
        taken, given = channels[index % 2], channels[(index + 1) % 2]
        kernel = rng.standard_normal((given, taken, 1, 1), np.float32) / np.float32(taken**0.5)
        weights.append(numpy_helper.from_array(kernel, f"w{index}"))
        source, target = f"h{index}" if index else "x", f"h{index + 1}" if index + 1 < count else "y"
        nodes.append(helper.make_node("Conv", [source, f"w{index}"], [target], name=f"conv{index}"))
    shape = [1, channels[0], 10, 10]
    return model(nodes, [value("x", shape=shape)], [value("y", shape=shape)], weights)


@pytest.mark.parametrize("method", ["minmax", "mse"])
def test_the_same_bytes_come_from_one_core_and_from_several(tmp_path, monkeypatch, method):
    path, found = saved(convolutions(), tmp_path), set()
    for cores in (1, 2, 4):
        monkeypatch.setattr(_session, "usable_cpus", lambda cores=cores: float(cores))
        folder = tmp_path / str(cores)
        folder.mkdir()
        run_quantize(path, str(folder), QuantizeParams(precision="w8a8", method=method), DataSource(Data(seed=1)))
        found.add((folder / "model.onnx").read_bytes())
    assert len(found) == 1


class Counted:
    """A session that knows how many calls it had at once.

    A call waits for others that may come, as far as they may.
    """

    def __init__(self, together: int, *, fails_at: int | None = None) -> None:
        self.most = self._now = 0
        self._fails_at = fails_at
        self._meet = threading.Barrier(together) if together > 1 else None
        self._lock = threading.Lock()

    def run(self, names: list[str], sample: dict[str, Any]) -> list[Any]:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        # The first is alone: it tells how many there is room for.
        if self._meet is not None and sample["x"][0] > 0:
            self._meet.wait(60)
        with self._lock:
            self._now -= 1
        if sample["x"][0] == self._fails_at:
            raise RuntimeError(f"sample {self._fails_at} is too long")
        return [sample["x"]]


def rows(count: int) -> list[dict[str, np.ndarray]]:
    return [{"x": np.array([float(index)])} for index in range(count)]


def test_samples_are_computed_side_by_side_and_come_in_their_order(monkeypatch):
    monkeypatch.setattr(_session, "usable_cpus", lambda: 3.0)
    session = Counted(3)
    found = list(run_each(session, ["y"], rows(10)))
    assert [(sample["x"][0], values[0][0]) for sample, values in found] == [(index, index) for index in range(10)]
    assert session.most == 3


@pytest.mark.parametrize(("cores", "held"), [(1.0, 8), (8.0, 1 << 30), (1.5, 8)])
def test_one_at_a_time_where_there_is_one_core_or_no_room_for_more(monkeypatch, cores, held):
    monkeypatch.setattr(_session, "usable_cpus", lambda: cores)
    session = Counted(1)
    assert len(list(run_each(session, ["y"], rows(5), lambda values: held))) == 5
    assert session.most == 1


@pytest.mark.parametrize("cores", [1.0, 3.0])
def test_a_sample_that_does_not_run_is_named_after_those_before_it_were_given(monkeypatch, cores):
    monkeypatch.setattr(_session, "usable_cpus", lambda: cores)
    answers = run_each(Counted(1, fails_at=4), ["y"], rows(10))
    assert [next(answers)[0]["x"][0] for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(InputError, match="does not run on a calibration sample") as raised:
        next(answers)
    assert "sample 4 is too long" in str(raised.value.cause)


def test_no_samples_give_no_answers():
    assert list(run_each(Counted(1), ["y"], [])) == []
