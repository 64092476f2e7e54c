"""A large model is compared with its weights left in their files, a long one unoptimized: what is said is the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import pytest

from ep.debug.nets import chain, deep
from ep.debug.test_debug import by_stage
from modelwright.data import DataSource
from modelwright.diagnosis import _rows, _run, _stream
from modelwright.graph import load
from modelwright.targets import parse_target
from modelwright.vocabulary import Data


def looked(wanted, got):
    source = DataSource(Data(samples=2))
    request = _run.DebugRequest(str(wanted), str(got), parse_target("cpu"), source, 2, 1 << 30, origin=True)
    return _run.run_debug(request)


def numbers(rows):
    """By name, what was measured of each."""
    found = {}
    for row in rows:
        values = dataclasses.asdict(row)
        found[values.pop("tensor_name", None) or values.pop("weight_name")] = values
    return found


@pytest.mark.parametrize(
    ("precision", "limit"),
    [("w8a8", "LARGE_BYTES"), ("fp16", "LARGE_BYTES"), ("int4", "LARGE_BYTES"), ("w8a8", "LONG_NODES")],
)
def test_the_answers_are_those_of_a_small_model(tmp_path, monkeypatch, precision, limit):
    only = ("MatMul",) if precision == "int4" else ()
    net = chain() if precision == "int4" else deep()
    wanted, out = by_stage(tmp_path, net, precision, block_size=16, op_types=only)
    small = looked(wanted, out / "model.onnx")
    monkeypatch.setattr(_stream, limit, 0)
    monkeypatch.setattr(_rows, "_PART", 100)
    large = looked(wanted, out / "model.onnx")
    assert (large.status, small.status) == ("ok", "ok")
    assert "optimization disabled" in large.runtimes.candidate
    assert large.weights
    for rows in ("weights", "activations"):
        before, after = numbers(getattr(small, rows)), numbers(getattr(large, rows))
        assert before.keys() == after.keys()
        for name, values in before.items():
            for key, number in values.items():
                # 100 dB and more is rounding in float32.
                same = (
                    pytest.approx(number, rel=1e-3, abs=0.05) if isinstance(number, float) and number < 100 else number
                )
                assert after[name][key] == same or (isinstance(number, float) and after[name][key] > 100), (name, key)


def test_weights_in_the_cache_of_the_hub_are_found(tmp_path):
    """They lie behind a link out of the folder, which onnxruntime does not follow."""
    wanted, out = by_stage(tmp_path, deep(), "w8a8")
    plain = looked(wanted, out / "model.onnx")
    cache = tmp_path / "models--somebody--net"
    linked, blob = cache / "snapshots" / ("a" * 40), cache / "blobs" / ("b" * 64)
    linked.mkdir(parents=True)
    blob.parent.mkdir()
    whole = onnx.load(wanted)
    onnx.save(whole, linked / "float.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    (linked / "w.data").rename(blob)
    (linked / "w.data").symlink_to(Path("..", "..", "blobs", blob.name))
    found = looked(linked / "float.onnx", out / "model.onnx")
    assert numbers(found.weights) == numbers(plain.weights)
    assert numbers(found.activations).keys() == numbers(plain.activations).keys()


def test_stored_numbers_are_mapped_and_not_copied(tmp_path):
    wanted, _ = by_stage(tmp_path, deep(), "w8a8")
    outside = tmp_path / "outside.onnx"
    onnx.save(onnx.load(wanted), outside, save_as_external_data=True, location="o.data", size_threshold=0)
    view = _run.view(str(outside))
    name = next(item.name for item in load(outside).model.graph.initializer if len(item.dims) > 1)
    values = view.values(name)
    assert not values.flags.owndata
    assert not values.flags.writeable
    np.testing.assert_array_equal(values, _run.view(str(wanted)).values(name))
