"""`--fix` finds what was planted, raises no more than that, and holds on samples it did not choose from."""

from __future__ import annotations

import importlib.util
import platform
import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest

from ep.debug.left_out import nothing_can_be_left_out
from ep.debug.nets import batch, chain, deep, planted_outlier, write_samples
from ep.quantize.graphs import residual
from ep.quantize.test_best import network, tied_rows
from modelwright.data import DataSource
from modelwright.diagnosis._match_view import view
from modelwright.errors import InputError, UsageError
from modelwright.judge import parse_allowance
from modelwright.models import OnnxSource
from modelwright.pipeline import Recipe, build
from modelwright.repairs import FixInterrupted, FixOptions, Promotion, cannot_saturate
from modelwright.repairs import fix as search
from modelwright.repairs._actions import combined
from modelwright.stages.quantize import QuantizeParams, TensorOverride, run_quantize
from modelwright.store import Store
from modelwright.targets import parse_target, products_saturate
from modelwright.vocabulary import Data

HAS_QNN = importlib.util.find_spec("onnxruntime_qnn") is not None and platform.machine() == "x86_64"
needs_qnn = pytest.mark.skipif(not HAS_QNN or sys.platform != "linux", reason="the QNN simulator is not installed")
PER_TENSOR = QuantizeParams("w8a8", per_channel=False, samples=8)


def saved(folder, model):
    onnx.save(model, folder / "float.onnx")
    return folder / "float.onnx"


def plan(folder, params=PER_TENSOR, scale=1.0):
    samples = np.stack([batch(index, scale)["x"] for index in range(8)])
    np.savez(folder / "calibration.npz", x=samples)
    return recipe(params, Data(str(folder / "calibration.npz")))


def recipe(params, data):
    return Recipe(
        policy_version=1,
        target="cpu",
        precision=params.precision,
        export=None,
        optimize=None,
        quantize=params,
        data=data,
        compile=None,
    )


def fix(model, made, options, **more):
    """Every repair of these tests is also tried without each of its parts: none can be left out."""
    with Store(model.parent / "store") as store:
        result = search(model, made, options, store=store, **more)
        nothing_can_be_left_out(result, model, made, options, store)
        return result


def asked(folder, **options):
    return FixOptions(data=Data(str(write_samples(folder, 24)), samples=24), **options)


def test_an_outlier_channel_is_found_and_the_rest_stays_quantized(tmp_path):
    model = saved(tmp_path, planted_outlier(deep()))
    result = fix(model, plan(tmp_path), asked(tmp_path, target_sqnr=28.0))
    assert result.status == "met"
    (only,) = result.raised
    assert (only.node, only.what, only.level) == ("layer3/gemm", "weight", "float")
    # The Gemm itself, and the one that reads it: else onnxruntime would quantize the weight again.
    assert set(only.excludes) == {"layer3/gemm", "layer3/relu", "layer4/gemm"}
    before, after = result.rows[1:]
    assert before.check.sqnr_db < 15
    assert after.check.sqnr_db >= 28
    assert after.check.samples == after.choose.samples == 12
    assert before.file_bytes < after.file_bytes < result.rows[0].file_bytes


def test_a_channel_much_larger_than_the_others_needs_only_scales_of_its_own(tmp_path):
    """A whole column of large weights behind a Relu that never opens: it changes no answer, only the range."""
    model = deep()
    weights = {item.name: item for item in model.graph.initializer}
    for name, place, value in (("w3", (slice(None), 0), 5.0), ("b3", 0, -1000.0)):
        values = onnx.numpy_helper.to_array(weights[name]).copy()
        values[place] = value
        weights[name].CopyFrom(onnx.numpy_helper.from_array(values, name))
    result = fix(saved(tmp_path, model), plan(tmp_path), asked(tmp_path, target_sqnr=28.0))
    assert result.status == "met"
    assert [(item.what, item.tensor, item.value) for item in result.raised] == [("setting", "per_channel", True)]
    assert result.quantize.per_channel
    assert not result.quantize.nodes_to_exclude


def test_clipped_activations_become_float_even_where_16_bits_are_preferred(tmp_path):
    """Calibrated on inputs ten times too small: more bits on the same range would change nothing."""
    model = saved(tmp_path, deep(2))
    result = fix(model, plan(tmp_path, scale=0.1), asked(tmp_path, target_sqnr=25.0, raise_to="16bit"))
    assert result.rows[1].check.sqnr_db < 15
    assert all(item.level == "float" for item in result.raised)


def test_rounding_noise_is_repaired_with_16_bits(tmp_path):
    model = saved(tmp_path, deep(3))
    start = fix(model, plan(tmp_path), asked(tmp_path, target_sqnr=1.0))
    reached = start.rows[1].check.sqnr_db
    result = fix(model, plan(tmp_path), asked(tmp_path, target_sqnr=reached + 1.5, raise_to="16bit"))
    assert result.status == "met"
    assert {item.dtype for raised in result.raised for item in raised.overrides} <= {"uint16", "int16"}
    assert result.quantize.nodes_to_exclude == ()
    assert result.rows[2].check.sqnr_db > reached + 1.5


def test_a_model_that_is_good_enough_is_left_alone(tmp_path):
    result = fix(saved(tmp_path, deep()), plan(tmp_path), asked(tmp_path, target_sqnr=10.0))
    assert (result.status, result.raised, result.builds) == ("already_met", (), 1)


def test_a_target_that_cannot_be_met_is_said(tmp_path):
    result = fix(saved(tmp_path, deep(2)), plan(tmp_path), asked(tmp_path, target_sqnr=150.0))
    assert result.status == "not_met"
    assert result.reason.startswith("the target is not met")
    assert result.raised == ()


def test_a_metric_of_the_users_own_decides(tmp_path):
    (tmp_path / "metric.py").write_text(
        "import numpy as np\n"
        "def close(outputs, row):\n"
        "    return -float(np.abs(outputs['y']).mean())\n"
        "close.higher_is_better = True\n"
    )
    options = asked(tmp_path, target_drop=parse_allowance("0.002"), metric=f"{tmp_path / 'metric.py'}:close")
    result = fix(saved(tmp_path, planted_outlier(deep())), plan(tmp_path), options)
    assert result.metric.endswith("metric.py:close")
    assert all(row.check.metric is not None for row in result.rows)


def test_an_accuracy_without_labels_is_refused(tmp_path):
    with pytest.raises(InputError, match="no labels"):
        fix(saved(tmp_path, deep(2)), plan(tmp_path), asked(tmp_path, target_drop=parse_allowance("1%")))


@pytest.mark.parametrize("options", [{}, {"target_sqnr": 30.0, "target_drop": parse_allowance("1%")}])
def test_exactly_one_target_is_needed(tmp_path, options):
    with pytest.raises(UsageError, match="say what must hold"):
        fix(saved(tmp_path, deep(2)), plan(tmp_path), FixOptions(**options))


def test_one_sample_cannot_choose_and_check(tmp_path):
    with pytest.raises(UsageError, match="cannot be split"):
        fix(saved(tmp_path, deep(2)), plan(tmp_path), FixOptions(data=Data(samples=1), target_sqnr=30.0))


@needs_qnn
def test_placement_on_the_target_is_counted(tmp_path):
    model = saved(tmp_path, planted_outlier(deep()))
    result = fix(model, plan(tmp_path), asked(tmp_path, target_sqnr=28.0, target=parse_target("qnn-npu")))
    assert result.status == "met"
    assert result.strategies == ("16bit", "float")
    before, after = result.rows[1:]
    assert before.partitions == 1
    assert after.partitions is not None
    assert after.left_nodes is not None


def test_the_widths_that_were_measured_are_those_of_every_candidate(tmp_path):
    """Chosen once: a candidate that raises something else keeps them."""
    model = saved(tmp_path, residual(True))
    np.savez(tmp_path / "rows.npz", x=np.random.default_rng(0).standard_normal((16, 8, 16)).astype(np.float32))
    data = Data(str(tmp_path / "rows.npz"))
    params = QuantizeParams("w8a8", samples=16, pairs="all", scope="qnn", wide_where_noisy=True)
    options = FixOptions(data=replace(data, samples=16), target_sqnr=99.0, max_builds=12, raise_to="16bit")
    result = fix(model, recipe(params, data), options)
    tried = [row.choose.sqnr_db for row in (*result.rows[1:], *result.front) if row.choose is not None]
    assert len(tried) > 1
    # Without them it has 8 dB.
    assert min(tried) > 20
    assert TensorOverride("p4", "uint16") in result.quantize.overrides
    assert not result.quantize.wide_where_noisy


def test_an_operator_that_is_raised_is_left_out_by_its_name(tmp_path):
    onnx.save(chain(), tmp_path / "float.onnx")
    everything = QuantizeParams("w8a8", op_types=("all",), nodes_to_exclude=("head/matmul",))
    gains = Promotion("Mul", "", "operator", "float", 0.5, ("block/gain",), ())
    changed = combined([gains], everything, view(str(tmp_path / "float.onnx")))
    assert changed.op_types == ("Gemm", "MatMul", "Relu")
    assert changed.nodes_to_exclude == ("head/matmul",)


@pytest.mark.skipif(not products_saturate(), reason="the products of this CPU do not saturate")
def test_saturated_products_are_repaired_by_7_bit_weights_before_anything_is_raised(tmp_path):
    """Weights of nearly one size: every pair of products is as large as it can be."""
    model = deep(2)
    for item in model.graph.initializer:
        values = onnx.numpy_helper.to_array(item)
        if values.ndim > 1:
            even = np.sign(values) * np.abs(values).max() * 0.9 + values * 0.1
            item.CopyFrom(onnx.numpy_helper.from_array(even.astype(np.float32), item.name))
    source, full = saved(tmp_path, model), plan(tmp_path, QuantizeParams("w8a8", samples=8, reduce_range=False))
    result = fix(source, full, asked(tmp_path, target_sqnr=25.0))
    assert result.rows[1].check.sqnr_db < 15
    assert [(item.what, item.tensor) for item in result.raised] == [("setting", "reduce_range")]
    assert result.quantize.reduce_range is True
    elsewhere = asked(tmp_path, target_sqnr=25.0, target=parse_target("cpu:isa=vnni"))
    assert fix(source, full, elsewhere).status == "already_met"


def test_a_repair_starts_from_the_bits_the_weights_really_use(tmp_path):
    source = saved(tmp_path, deep(2))
    for reduced in (True, False):
        (tmp_path / str(reduced)).mkdir()
        params = replace(PER_TENSOR, reduce_range=reduced)
        run_quantize(str(source), str(tmp_path / str(reduced)), params, DataSource())
        assert cannot_saturate(tmp_path / str(reduced) / "model.onnx") is reduced


def test_a_reader_runs_once_for_all_candidates_and_one_that_leaves_stops_the_repair(tmp_path):
    model, mine = saved(tmp_path, deep(2)), tmp_path / "mine.py"
    mine.write_text(
        "import numpy as np, pathlib\n"
        "def read():\n"
        f"    pathlib.Path({str(tmp_path / 'calls')!r}).open('a').write('x')\n"
        f"    yield from ({{'x': row}} for row in np.load({str(tmp_path / 'calibration.npz')!r})['x'])\n"
    )
    base, options = plan(tmp_path), asked(tmp_path, target_sqnr=20.0)
    assert fix(model, replace(base, data=Data(f"{mine}:read")), options).met
    assert (tmp_path / "calls").read_text() == "x"
    mine.write_text("def read():\n    raise SystemExit(0)\n    yield {}\n")
    with pytest.raises(InputError, match=r"the data function mine.py:read failed"):
        fix(model, replace(base, data=Data(f"{mine}:read")), options)


def without_clocks(result):
    """What a search found, without times and without what came from the store."""
    rows, front = (tuple(replace(row, p50_ms=None) for row in rows) for rows in (result.rows, result.front))
    return replace(result, from_store=0, rows=rows, front=front)


def test_a_search_that_was_ended_shows_what_it_tried_and_goes_on_from_there(tmp_path):
    model, made = saved(tmp_path, planted_outlier(deep())), plan(tmp_path)
    options = asked(tmp_path, target_sqnr=28.0)

    def end(progress):
        if progress.label == "candidate 6":
            raise KeyboardInterrupt

    with pytest.raises(FixInterrupted) as caught:
        fix(model, made, options, on_progress=end)
    partial = caught.value.partial
    assert [row.name for row in partial.rows] == ["quantized", *(f"candidate {number}" for number in range(2, 6))]
    assert all(row.choose is not None for row in partial.rows)
    assert partial.status == "unfinished"
    seen = []
    resumed = fix(model, made, options, on_progress=lambda progress: seen.append(progress))
    assert resumed.from_store == 5
    # Stages that ran, not those that were only looked for.
    ran = {(one.stage, one.label) for one in seen if one.message != "looking in the store"}
    assert not {("quantize", f"candidate {number}") for number in range(1, 6)} & ran
    assert ("diagnose", "where the noise is made") not in ran
    with Store(tmp_path / "another") as store:
        whole = search(model, made, options, store=store)
    assert whole.from_store == 0
    assert without_clocks(resumed) == without_clocks(whole)


def test_what_a_repair_found_is_not_built_again(tmp_path):
    model, made = saved(tmp_path, planted_outlier(deep())), plan(tmp_path)
    found = fix(model, made, asked(tmp_path, target_sqnr=28.0))
    with Store(tmp_path / "store") as store:
        source = OnnxSource(str(model))
        built = build(source, replace(made, quantize=found.quantize), store=store)
    made_now = {stage.stage: stage.produced for stage in built.components[0].stages}
    assert made_now == {"import": False, "quantize": False, "validate": True}


def test_a_metric_that_was_changed_scores_again(tmp_path):
    metric = tmp_path / "metric.py"
    metric.write_text("def score(outputs, row):\n    return 1.0\n")
    model, made = saved(tmp_path, deep(2)), plan(tmp_path)
    options = asked(tmp_path, target_drop=parse_allowance("1%"), metric=f"{metric}:score")
    first = fix(model, made, options)
    assert first.rows[1].choose.metric == 1.0
    # How much one sample of such a metric can lose, nobody said.
    assert (first.status, first.raised, first.offered, first.met) == ("inconclusive", (), True, False)
    assert "declare it as the attribute `span`" in first.reason
    metric.write_text("def score(outputs, row):\n    return 2.0\n")
    assert fix(model, made, options).rows[1].choose.metric == 2.0


def test_samples_too_few_to_prove_a_drop_are_said_to_be_and_how_many_would(tmp_path):
    metric = tmp_path / "metric.py"
    metric.write_text("def score(outputs, row):\n    return 1.0\nscore.span = 1.0\n")
    drop = {"target_drop": parse_allowance("2pt"), "metric": f"{metric}:score"}
    result = fix(saved(tmp_path, deep(2)), plan(tmp_path), asked(tmp_path, **drop))
    assert result.status == "inconclusive"
    assert "it holds on the 12 samples kept for the check, which are too few to prove it" in result.reason
    assert result.rows[1].check.needed > 300
    many = replace(asked(tmp_path, **drop), data=Data(str(write_samples(tmp_path, 700)), samples=700))
    assert fix(tmp_path / "float.onnx", plan(tmp_path), many).status == "already_met"


def test_the_front_is_what_nothing_beats_and_holds_the_repair(tmp_path):
    result = fix(saved(tmp_path, planted_outlier(deep())), plan(tmp_path), asked(tmp_path, target_sqnr=28.0))
    sizes = [row.file_bytes for row in result.front]
    noise = [row.choose.sqnr_db for row in result.front]
    assert sizes == sorted(set(sizes))
    assert noise == sorted(set(noise))
    assert "repaired" in [row.name for row in result.front]
    assert all(row.p50_ms is not None and row.quantize is not None for row in result.front)


def test_a_budget_of_no_time_ends_with_what_was_tried(tmp_path):
    options = asked(tmp_path, target_sqnr=60.0, budget_s=0.0)
    result = fix(saved(tmp_path, planted_outlier(deep())), plan(tmp_path), options)
    assert (result.status, result.builds) == ("not_met", 1)
    assert "the time budget was reached before anything was raised" in result.reason


def test_an_operator_that_was_raised_is_counted_where_nothing_was_enough(tmp_path):
    every = QuantizeParams("w8a8", op_types=("all",), samples=8)
    result = fix(saved(tmp_path, chain()), plan(tmp_path, every), asked(tmp_path, target_sqnr=300.0))
    assert result.status == "not_met"
    without_mul = [row for row in result.front if row.quantize.op_types == ("Gemm", "MatMul", "Relu")]
    assert without_mul
    assert all(row.raised for row in without_mul)
    assert "whatever is raised" in result.reason


def test_where_nothing_can_be_raised_it_is_not_said_that_raising_does_not_help(tmp_path, monkeypatch):
    monkeypatch.setattr("modelwright.repairs._search.exceptions", lambda *asked: ())
    result = fix(saved(tmp_path, chain()), plan(tmp_path), asked(tmp_path, target_sqnr=300.0))
    assert result.reason.startswith("the target is not met, and nothing could be raised: the best of")


def test_more_effort_is_enough_where_rounding_is_what_is_lost(tmp_path):
    """With 16-bit activations the weights make the noise, and inputs that go together let their errors cancel."""
    model = saved(tmp_path, network("relu"))
    np.savez(tmp_path / "calibration.npz", x=tied_rows(32, 4))
    np.savez(tmp_path / "judged.npz", x=tied_rows(24, 4, seed=11))
    made = recipe(QuantizeParams("w8a16", samples=32), Data(str(tmp_path / "calibration.npz")))
    result = fix(model, made, FixOptions(data=Data(str(tmp_path / "judged.npz"), samples=24), target_sqnr=46.0))
    assert result.status == "met"
    assert [(item.tensor, item.value) for item in result.raised] == [("effort", "best")]
    assert result.quantize.effort == "best"
