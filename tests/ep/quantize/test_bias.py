"""Rounding weights moves the mean of an output; its bias takes that back, and costs nothing when the model runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper

from modelwright.data import DataSource
from modelwright.stages.quantize import QuantizeOutcome, QuantizeParams, run_quantize
from modelwright.vocabulary import Data
from support.models import model, save, value, weight

SHAPES = {"image": [1, 8, 6, 6], "rows": [1, 4, 16]}
NODES = {
    "conv": [helper.make_node("Conv", ["image", "conv.w", "conv.b"], ["y"], name="conv", pads=[1, 1, 1, 1])],
    "depthwise": [helper.make_node("Conv", ["image", "depth.w", "conv.b"], ["y"], name="conv", group=8)],
    "matmul": [
        helper.make_node("MatMul", ["rows", "rows.w"], ["p"], name="product"),
        helper.make_node("Add", ["p", "rows.b"], ["y"], name="add"),
    ],
}


def mean_error(folder: Path, kind: str, **params) -> tuple[float, QuantizeOutcome]:
    """The largest mean error of an output channel, in units of the outputs' deviation."""
    source = "rows" if kind == "matmul" else "image"
    weights = [weight("conv.w", 8, 8, 3, 3), weight("depth.w", 8, 1, 3, 3), weight("conv.b", 8)]
    weights += [weight("rows.w", 16, 8), weight("rows.b", 8)]
    used = {name for node in NODES[kind] for name in node.input}
    kept = [item for item in weights if item.name in used]
    path = save(model(NODES[kind], [value(source, shape=SHAPES[source])], [value("y")], kept), folder)
    rows = np.random.default_rng(0).uniform(0.5, 1.5, (16, *SHAPES[source])).astype(np.float32)
    np.savez(folder / "data.npz", **{source: rows})
    work = folder / "-".join(map(str, params.values()))
    work.mkdir()
    chosen = QuantizeParams("w8a8", samples=16, reduce_range=True, **params)
    outcome = run_quantize(str(path), str(work), chosen, DataSource(Data(str(folder / "data.npz"))))
    runs = [ort.InferenceSession(str(item), providers=["CPUExecutionProvider"]) for item in (path, work / "model.onnx")]
    float_run, run = (np.concatenate([session.run(None, {source: row})[0] for row in rows]) for session in runs)
    axes = (0, 1) if kind == "matmul" else (0, 2, 3)
    return float(np.abs((float_run - run).mean(axes)).max() / float_run.std()), outcome


@pytest.mark.parametrize("pairs", ["all", "needed"])
@pytest.mark.parametrize("kind", NODES)
def test_the_mean_of_each_output_channel_is_kept(tmp_path, kind, pairs):
    before, off = mean_error(tmp_path, kind, pairs=pairs, bias_correction=False)
    after, on = mean_error(tmp_path, kind, pairs=pairs, bias_correction=True)
    assert (off.biases_corrected, on.biases_corrected) == (0, 1)
    assert after < 0.6 * before


def test_made_up_samples_have_no_mean_to_trust(tmp_path):
    path = save(
        model(
            NODES["matmul"],
            [value("rows", shape=[1, 4, 16])],
            [value("y")],
            [weight("rows.w", 16, 8), weight("rows.b", 8)],
        ),
        tmp_path,
    )
    (tmp_path / "out").mkdir()
    assert (
        run_quantize(str(path), str(tmp_path / "out"), QuantizeParams("w8a8", samples=2), DataSource()).biases_corrected
        == 0
    )
