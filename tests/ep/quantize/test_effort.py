"""How long quantizing may take to keep the accuracy: `fast` leaves out what costs time, `normal` is the default."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ep.quantize.graphs import conv_net
from modelwright._json import plain
from modelwright.data import DataSource
from modelwright.errors import UsageError
from modelwright.models import resolve
from modelwright.pipeline import RecipeChoices, resolve_recipe
from modelwright.stages.quantize import QUANTIZE, QuantizeOutcome, QuantizeParams, run_quantize
from modelwright.targets import parse_target
from modelwright.vocabulary import Data


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("effort")
    (folder / "float.onnx").write_bytes(conv_net().SerializeToString())
    rows = np.random.default_rng(0).standard_normal((16, 1, 3, 16, 16)).astype(np.float32)
    np.savez(folder / "data.npz", image=rows)
    return folder


def quantized(source: Path, work: Path, **params) -> QuantizeOutcome:
    work.mkdir()
    data = DataSource(Data(str(source / "data.npz")))
    return run_quantize(str(source / "float.onnx"), str(work), QuantizeParams("w8a8", samples=16, **params), data)


def test_normal_is_what_was_done_before_there_were_levels():
    """So whatever the store has is found: a level that nobody asked for is in no key."""
    usual, fast = QuantizeParams("w8a8"), QuantizeParams("w8a8", effort="fast")
    assert {**QUANTIZE.said(usual), "effort": "normal"} == plain(usual)
    assert "effort" not in QUANTIZE.said(usual)
    assert QUANTIZE.said(fast) == {**QUANTIZE.said(usual), "effort": "fast"}


def test_fast_looks_at_few_samples_and_corrects_no_biases(source, tmp_path):
    fast, normal = (quantized(source, tmp_path / word, effort=word) for word in ("fast", "normal"))
    assert fast.calibration is not None
    assert normal.calibration is not None
    assert (fast.calibration.samples, normal.calibration.samples) == (8, 16)
    assert (fast.biases_corrected, normal.biases_corrected > 0) == (0, True)
    assert "8 samples found the ranges" in " ".join(fast.warnings)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "dynamic"])
def test_an_effort_that_would_change_nothing_is_refused(source, precision):
    model, target = resolve(str(source / "float.onnx")), parse_target("cpu")
    with pytest.raises(UsageError, match="takes no effort fast"):
        resolve_recipe(model, target, RecipeChoices(precision=precision, effort="fast"))


def test_an_effort_is_part_of_the_recipe(source):
    model, target = resolve(str(source / "float.onnx")), parse_target("cpu")
    said = resolve_recipe(model, target, RecipeChoices(precision="w8a8", effort="fast")).quantize
    written = resolve_recipe(model, target, None, {"precision": "w8a8", "quantize": {"effort": "fast"}}).quantize
    assert said == written
    assert said is not None
    assert said.effort == "fast"
