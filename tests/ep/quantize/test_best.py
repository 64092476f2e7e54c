"""The effort `best`: each technique helps where it can, does nothing where it must not, and is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from ep.quantize.graphs import Builder
from modelwright.data import DataSource, samples
from modelwright.diagnosis import view
from modelwright.diagnosis._match import match
from modelwright.diagnosis._match_weights import match_weights
from modelwright.graph import load
from modelwright.stages.quantize import (
    QuantizeOutcome,
    QuantizeParams,
    TensorOverride,
    rescaled,
    run_quantize,
    saturating,
)
from modelwright.stages.quantize._best import EffortTrial, best_of
from modelwright.stages.quantize._model import open_model, prepare
from modelwright.stages.quantize._moments import learn, readings
from modelwright.stages.quantize._noise import NoiseMeter
from modelwright.stages.quantize._rounding import WeightGrid, compensated, squared_error
from modelwright.stages.quantize._seams import seams
from modelwright.stages.quantize._smooth import Channels, Reader, factors_of, smooth, with_scaled
from modelwright.vocabulary import Data

SIZE = 32


def floats(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def saved(model: onnx.ModelProto, folder: Path) -> str:
    path = folder / "float.onnx"
    path.write_bytes(model.SerializeToString())
    return str(path)


def drawing(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def tied_rows(*shape: int, seed: int = 0) -> np.ndarray:
    """Inputs that go together: a few causes make all of them."""
    mixed = drawing(seed).standard_normal((*shape, 6)) @ drawing(99).standard_normal((6, SIZE))
    return (mixed + 0.05 * drawing(seed + 1).standard_normal((*shape, SIZE))).astype(np.float32)


def network(kind: str, loud: float = 1.0) -> onnx.ModelProto:
    """A norm or a product before another product; `loud` is how much larger some channels are than the others."""
    make = Builder(3)
    channels = np.where(np.arange(SIZE) % 8 == 0, loud, 1.0).astype(np.float32)
    if kind == "norm":
        vectors = [make.constant("n.g", channels), make.constant("n.b", channels * 0.1)]
        middle = make.add("LayerNormalization", ["x", *vectors], "n", axis=-1)
    else:
        first = make.constant("a.w", (0.2 * make.rng.standard_normal((SIZE, SIZE)) * channels).astype(np.float32))
        middle = make.add("Gemm", ["x", first, make.constant("a.b", channels * 0.1)], "a")
        middle = make.add({"relu": "Relu", "sigmoid": "Sigmoid"}[kind], [middle], "r")
    second = make.constant("c.w", (make.rng.standard_normal((SIZE, 8)) / channels[:, None]).astype(np.float32))
    make.add("Gemm", [middle, second, make.weight("c.b", 8)], "y")
    return make.model([floats("x", 4, SIZE)], [floats("y", 4, 8)])


def behind_residual(loud: float) -> onnx.ModelProto:
    model = network("norm", loud)
    model.graph.node.append(onnx.helper.make_node("Add", ["n", "x"], ["sum"], name="sum"))
    model.graph.output.append(floats("sum", 4, SIZE))
    return model


def best(folder: Path, model: onnx.ModelProto, rows: np.ndarray, **params) -> tuple[QuantizeOutcome, Path]:
    work = folder / "out"
    work.mkdir()
    np.savez(folder / "data.npz", x=rows)
    chosen = QuantizeParams("w8a8", samples=len(rows), effort="best", **params)
    return run_quantize(saved(model, folder), str(work), chosen, DataSource(Data(str(folder / "data.npz")))), work


def drawn(folder: Path, model: onnx.ModelProto, rows: np.ndarray):
    np.savez(folder / "data.npz", x=rows)
    return samples(DataSource(Data(str(folder / "data.npz"))), load(saved(model, folder)), len(rows))


class TestRounding:
    def test_inputs_that_go_together_let_errors_cancel(self):
        weight, seen, new = drawing().standard_normal((1, 16, SIZE)), tied_rows(512), tied_rows(512, seed=5)
        grid = WeightGrid(np.full((1, 16, 1), 0.05), np.zeros((1, 16, 1)), -127, 127)
        found = compensated(weight, grid, (seen.T @ seen / len(seen))[None].astype(np.float64))
        moments = (new.T @ new / len(new))[None].astype(np.float64)
        lost = [squared_error(weight - grid.values(item), moments) for item in (grid.nearest(weight), found)]
        assert lost[1] < 0.2 * lost[0]

    def test_inputs_that_do_not_are_rounded_to_the_nearest(self):
        weight = drawing().standard_normal((2, 8, SIZE))
        grid = WeightGrid(np.full((2, 8, 1), 0.05), np.zeros((2, 8, 1)), -127, 127)
        moments = np.stack([np.diag(drawing(seed).uniform(0.5, 2.0, SIZE)) for seed in range(2)])
        np.testing.assert_array_equal(compensated(weight, grid, moments), grid.nearest(weight))

    def test_integers_stay_on_their_grid(self):
        weight = 100 * drawing().standard_normal((1, 4, SIZE))
        grid = WeightGrid(np.full((1, 4, 1), 0.5), np.full((1, 4, 1), 2.0), -16, 15)
        rows = tied_rows(64)
        found = compensated(weight, grid, (rows.T @ rows)[None].astype(np.float64))
        assert (found.min(), found.max()) == (-16, 15)

    @pytest.mark.parametrize("kind", ["conv", "depthwise", "dilated", "gemm", "matmul"])
    def test_what_a_product_reads_is_what_it_multiplies(self, tmp_path, kind):
        """Rows of the input times the weight are the outputs of the product itself."""
        make = Builder()
        shape = (1, 4, 9, 9) if kind in ("conv", "depthwise", "dilated") else (6, SIZE)
        if kind == "matmul":
            make.add("MatMul", ["x", make.weight("w", SIZE, 8)], "y")
        elif kind == "gemm":
            make.add("Gemm", ["x", make.weight("w", 8, SIZE)], "y", transB=1)
        else:
            groups = 4 if kind == "depthwise" else 1
            steps = [2, 2] if kind == "dilated" else [1, 1]
            make.add("Conv", ["x", make.weight("w", 8, 4 // groups, 3, 2)], "y", group=groups, dilations=steps)
        model = make.model(
            [floats("x", *shape)], [floats("y", "n", "m") if len(shape) == 2 else floats("y", "n", "c", "h", "w")]
        )
        values = drawing().standard_normal(shape).astype(np.float32)
        (reading,) = readings(model, {model.graph.node[0].name})
        weight = onnx.numpy_helper.to_array(model.graph.initializer[0])
        made = reading.rows(values) @ reading.matrix(weight).transpose(0, 2, 1)
        (expected,) = ort.InferenceSession(model.SerializeToString()).run(None, {"x": values})
        assert np.sort(made, axis=None) == pytest.approx(np.sort(expected, axis=None), abs=1e-4)
        np.testing.assert_array_equal(reading.stored(reading.matrix(weight), weight), weight)

    @pytest.mark.parametrize("pairs", ["all", "needed"])
    def test_a_model_loses_less_and_says_by_how_much(self, tmp_path, pairs):
        rows = tied_rows(32, 4)
        outcome, work = best(tmp_path, network("relu"), rows, pairs=pairs, reduce_range=True)
        (gain,) = (item for item in outcome.gains if item.technique == "rounding")
        assert gain.kept
        assert gain.decibels > 1.0
        assert gain.places == 2
        made = onnx.load(work / "model.onnx")
        stored = {item.name: onnx.numpy_helper.to_array(item) for item in made.graph.initializer}
        assert saturating(made.graph, stored.__getitem__) == ()

    def test_a_product_that_the_judges_say_no_to_stays(self, tmp_path):
        """What is learnt is the opposite of what the other samples show."""
        model = network("relu")
        rows = tied_rows(16, 4)
        rows[3::4] = drawing().standard_normal((4, 4, SIZE))
        prepared = prepare(open_model(saved(model, tmp_path)), tmp_path, integers=True, raise_opset=True)
        found = list(
            learn(prepared.model, readings(prepared.model, {"a/Gemm"}), drawn(tmp_path, model, rows), tmp_path)
        )
        (item,) = found
        assert (item.learn.count, item.judge.count) == (48, 16)
        outcome, _ = best(tmp_path, model, rows, pairs="all")
        gains = {item.technique: item for item in outcome.gains}
        assert all(item.decibels >= 0.1 for item in gains.values() if item.kept)
        assert "rounding" not in gains or gains["rounding"].places < 2


class TestSmoothing:
    @pytest.mark.parametrize(("kind", "technique"), [("norm", "smoothing"), ("relu", "equalization")])
    def test_loud_channels_go_into_the_weights(self, tmp_path, kind, technique):
        rows = drawing().standard_normal((32, 4, SIZE)).astype(np.float32)
        outcome, _ = best(tmp_path, network(kind, loud=60.0), rows, pairs="all")
        gain = next(item for item in outcome.gains if item.technique == technique)
        assert (gain.kept, gain.places) == (True, 1)
        assert gain.decibels > 3.0

    @pytest.mark.parametrize("spread", [1.0, 1.5])
    def test_channels_that_are_alike_are_left_alone(self, spread):
        high = np.linspace(1.0, spread, SIZE)
        weight = drawing().choice([-1.0, 1.0], (SIZE, 8)).astype(np.float32)
        assert factors_of(Channels(-high, high, np.square(high) / 3, 1), [Reader.of(weight, 0)], 8) is None

    def test_a_place_where_nothing_is_worth_it_keeps_its_bytes(self, tmp_path):
        """Channels of one size, by construction: signs, which a norm lets pass."""
        model = network("norm")
        signs = np.where(np.arange(SIZE) % 2, 1.0, -1.0)
        weight = model.graph.initializer[[item.name for item in model.graph.initializer].index("c.w")]
        weight.CopyFrom(onnx.numpy_helper.from_array(drawing().choice([-1, 1], (SIZE, 8)).astype(np.float32), "c.w"))
        rows = drawing().permuted(np.tile(signs, (16, 4, 1)), axis=2).astype(np.float32)
        prepared = prepare(open_model(saved(model, tmp_path)), tmp_path, integers=True, raise_opset=True)
        before = prepared.weights.read(prepared.model, "c.w").copy()
        assert smooth(prepared, "smoothing", 8, drawn(tmp_path, model, rows), tmp_path) == 0
        np.testing.assert_array_equal(prepared.weights.read(prepared.model, "c.w"), before)

    @pytest.mark.parametrize("kind", ["norm", "relu"])
    def test_the_model_computes_the_same(self, tmp_path, kind):
        model = network(kind, loud=60.0)
        prepared = prepare(open_model(saved(model, tmp_path)), tmp_path, integers=True, raise_opset=True)
        rows = drawing().standard_normal((16, 4, SIZE)).astype(np.float32)
        changed = sum(
            smooth(prepared, word, 8, drawn(tmp_path, model, rows), tmp_path) for word in ("smoothing", "equalization")
        )
        prepared.weights.attach(prepared.model)
        runs = [
            ort.InferenceSession(item.SerializeToString()).run(None, {"x": rows[0]})[0]
            for item in (model, prepared.model)
        ]
        assert changed == 1
        assert runs[1] == pytest.approx(runs[0], abs=1e-3)

    def test_what_does_not_let_factors_pass_is_no_seam(self):
        found = {kind: [seam.kind for seam in seams(network(kind))] for kind in ("norm", "relu", "sigmoid")}
        assert found == {"norm": ["smoothing", "scaling"], "relu": ["equalization"], "sigmoid": ["scaling"]}

    @pytest.mark.parametrize("reader", ["y", "an Add", "the weight"])
    def test_what_somebody_else_reads_is_divided_for_the_products_alone(self, reader):
        """An output, a residual, a weight that two products share: a factor would show there."""
        model = network("norm")
        if reader == "y":
            model.graph.output.append(floats("n", 4, SIZE))
        elif reader == "an Add":
            model.graph.node.append(onnx.helper.make_node("Add", ["n", "x"], ["sum"], name="sum"))
        else:
            model.graph.node.append(onnx.helper.make_node("MatMul", ["x", "c.w"], ["again"], name="again"))
        assert [seam.kind for seam in seams(model)] == ([] if reader == "the weight" else ["scaling"])

    def test_a_residual_reads_what_it_read_and_the_product_loses_less(self, tmp_path):
        """As in BERT: the norm's output goes to the products and around them."""
        model = behind_residual(60.0)
        rows = drawing().standard_normal((32, 4, SIZE)).astype(np.float32)
        outcome, work = best(tmp_path, model, rows, pairs="needed")
        gains = {item.technique: item for item in outcome.gains}
        assert "smoothing" not in gains
        assert gains["scaling"].kept
        assert 3.0 < gains["scaling"].low <= gains["scaling"].decibels <= gains["scaling"].high
        made = onnx.load(work / "model.onnx")
        reads = {node.op_type: list(node.input) for node in made.graph.node}
        assert reads["Add"][0] == "n"
        assert reads["Mul"] == ["n", "n_factors"]
        whole, found = (
            ort.InferenceSession(str(path)).run(None, {"x": rows[0]})[0]
            for path in (tmp_path / "float.onnx", work / "model.onnx")
        )
        assert np.square(found - whole).mean() < 0.01 * np.square(whole).mean()

    @pytest.mark.parametrize("turned", [False, True])
    def test_debug_compares_a_scaled_weight_with_what_it_stands_for(self, tmp_path, turned):
        model = behind_residual(60.0)
        if turned:
            weight = next(item for item in model.graph.initializer if item.name == "c.w")
            weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight).T.copy(), "c.w"))
            gemm = next(node for node in model.graph.node if node.op_type == "Gemm")
            gemm.attribute.append(onnx.helper.make_attribute("transB", 1))
        rows = drawing().standard_normal((32, 4, SIZE)).astype(np.float32)
        outcome, work = best(tmp_path, model, rows, pairs="all")
        assert any(item.technique == "scaling" and item.kept for item in outcome.gains)
        wanted = view(str(tmp_path / "float.onnx"))
        pairs, alone = match_weights(wanted, view(str(work / "model.onnx")))
        (weight,) = (pair for pair in pairs if pair.weight == "c.w")
        assert not [item for item in alone if item.name.startswith("c.")]
        whole = weight.read(slice(None))
        np.testing.assert_array_equal(np.concatenate([weight.read(slice(0, 3)), weight.read(slice(3, None))]), whole)
        off = np.square(whole - wanted.values("c.w")).sum()
        assert off < 1e-3 * np.square(wanted.values("c.w")).sum()

    @pytest.mark.parametrize("taken", ["n_scaled", "n_factors"])
    def test_a_name_that_is_taken_is_left_to_its_owner(self, tmp_path, taken):
        model = behind_residual(60.0)
        model.graph.node.append(onnx.helper.make_node("Neg", ["sum"], [taken], name="negated"))
        rows = drawing().standard_normal((8, 4, SIZE)).astype(np.float32)
        prepared = prepare(open_model(saved(model, tmp_path)), tmp_path, integers=True, raise_opset=True)
        assert smooth(prepared, "scaling", 8, drawn(tmp_path, model, rows), tmp_path) == 0

    def test_what_was_asked_for_a_tensor_holds_for_its_scaled_form(self):
        node = onnx.helper.make_node("Mul", ["n", "n_factors"], ["n_scaled"])
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [], []))
        asked = (TensorOverride("n", "uint16"), TensorOverride("other", "uint16"))
        assert with_scaled(model, asked) == (*asked, TensorOverride("n_scaled", "uint16"))

    @pytest.mark.parametrize(("kind", "divided"), [("norm", {"n"}), ("relu", {"a", "r"})])
    def test_debug_does_not_compare_what_factors_were_moved_between(self, tmp_path, kind, divided):
        """The norm of a good model was said to make most of the noise, with 0.3 dB."""
        rows = drawing().standard_normal((32, 4, SIZE)).astype(np.float32)
        _, work = best(tmp_path, network(kind, loud=60.0), rows, pairs="all")
        wanted, got = view(str(tmp_path / "float.onnx")), view(str(work / "model.onnx"))
        matching = match(wanted, got)
        assert {pair.tensor for pair in matching.pairs} <= {"x", "y"}
        assert {item.name for item in matching.float_only if "factors were moved" in item.reason} == divided
        assert "c.w" not in {pair.weight for pair in match_weights(wanted, got)[0]}

    @pytest.mark.parametrize("note", ["{", "3", '["n", 3]', "null"])
    def test_a_note_that_somebody_else_wrote_is_read_as_far_as_it_goes(self, note):
        model = network("norm")
        model.metadata_props.add(key="modelwright.rescaled", value=note)
        assert rescaled(model) <= {"n"}

    def test_a_channel_that_is_never_used_has_no_factor(self):
        low, high = np.zeros(4), np.array([100.0, 1.0, 1.0, 0.0])
        reached = Channels(low, high, np.square(high), 1)
        factors = factors_of(reached, [Reader.of(np.ones((4, 3), np.float32), 0)], 8)
        assert factors is not None
        assert np.isfinite(factors).all()
        assert factors[0] > 3 * factors[1]
        assert factors[3] == 1.0


class TestKeeping:
    def test_only_what_lessens_the_noise_is_kept(self):
        left = {(): 1.0, ("worse",): 1.2, ("good",): 0.5, ("good", "hardly"): 0.499, ("good", "more"): 0.25}
        attempts = {kept: EffortTrial(kept, 0 if "idle" in kept else 3) for kept in (*left, ("good", "idle"))}
        found, gains = best_of(
            ("worse", "good", "hardly", "idle", "more"), attempts.__getitem__, lambda item: np.full(8, left[item.model])
        )
        assert found.model == ("good", "more")
        assert [(item.technique, item.kept) for item in gains] == [
            ("worse", False), ("good", True), ("hardly", False), ("more", True),
        ]  # fmt: skip
        assert gains[1].decibels == pytest.approx(3.01)
        assert (gains[1].low, gains[1].high, gains[1].samples) == (3.01, 3.01, 8)

    def test_what_a_few_samples_cannot_tell_from_chance_is_not_kept(self):
        """Large gains on some samples and losses on others: on average three decibels, and no evidence of one."""
        noise = {(): np.ones(8), ("wild",): 10.0 ** (-np.array([4, -3, 4, -3, 4, -3, 1, -1.6]) / 2)}
        attempts = {kept: EffortTrial(kept, 1) for kept in noise}
        found, gains = best_of(("wild",), attempts.__getitem__, lambda item: noise[item.model])
        assert found.model == ()
        assert not gains[0].kept
        assert gains[0].low < 0 < 1.0 < gains[0].decibels

    @pytest.mark.parametrize(("rows", "judges"), [(63, 6), (64, 8), (200, 32)])
    def test_rows_that_nobody_else_was_given_judge_where_there_are_enough(self, tmp_path, rows, judges):
        """Behind 24 that calibrate and 32 of a gate; without eight of them every fourth of the 24."""
        (tmp_path / "out").mkdir()
        np.savez(tmp_path / "data.npz", x=tied_rows(rows, 4))
        params = QuantizeParams("w8a8", samples=24, effort="best", pairs="all")
        data = DataSource(Data(str(tmp_path / "data.npz")))
        outcome = run_quantize(saved(network("relu"), tmp_path), str(tmp_path / "out"), params, data)
        assert {item.samples for item in outcome.gains} == {judges}

    def test_scores_are_judged_by_what_goes_into_them(self, tmp_path):
        """Noise that changes no score would be noise that nobody sees, and a lucky sample would decide."""
        make = Builder()
        made = make.linear("x", "logits", SIZE, 8)
        make.add("Identity", [make.add("Softmax", [made], "p")], "scores")
        model = make.model([floats("x", 4, SIZE)], [floats("scores", 4, 8)])
        rows = 50 * drawing().standard_normal((8, 4, SIZE)).astype(np.float32)
        meter = NoiseMeter.of(model, drawn(tmp_path, model, rows), tmp_path)
        np.testing.assert_array_equal(meter.noise(model), [0.0, 0.0])
        bias = next(item for item in model.graph.initializer if item.name == "logits.b")
        bias.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(bias) + np.float32(1.0), "logits.b"))
        assert min(meter.noise(model)) > 1e-4

    @pytest.mark.parametrize(("count", "why"), [(7, "it takes 8 samples"), (0, "made-up samples teach nothing")])
    def test_without_samples_it_is_normal_and_says_so(self, tmp_path, count, why):
        (tmp_path / "out").mkdir()
        np.savez(tmp_path / "data.npz", x=drawing().standard_normal((7, 4, SIZE)).astype(np.float32))
        data = DataSource(Data(str(tmp_path / "data.npz"))) if count else DataSource()
        params = QuantizeParams("w8a8", samples=8, effort="best")
        outcome = run_quantize(saved(network("relu"), tmp_path), str(tmp_path / "out"), params, data)
        assert outcome.gains == ()
        assert why in " ".join(outcome.warnings)


class TestInt4:
    """4-bit weights: the same rounding inside of blocks that stay as they are."""

    @pytest.mark.parametrize(("inputs", "symmetric"), [(64, True), (80, False)])
    def test_blocks_and_scales_stay_and_the_outputs_lose_less(self, tmp_path, inputs, symmetric):
        make = Builder(5)
        make.add("MatMul", ["x", make.weight("w", inputs, 16)], "y")
        model = make.model([floats("x", 4, inputs)], [floats("y", 4, 16)])
        mixed = drawing(1).standard_normal((32, 4, 6)) @ drawing(2).standard_normal((6, inputs))
        rows = (mixed + 0.05 * drawing(3).standard_normal(mixed.shape)).astype(np.float32)
        made, noise = {}, {}
        for effort in ("normal", "best"):
            work = tmp_path / effort
            work.mkdir()
            np.savez(tmp_path / "data.npz", x=rows)
            params = QuantizeParams("int4", samples=24, block_size=32, effort=effort, symmetric_weights=symmetric)
            data = DataSource(Data(str(tmp_path / "data.npz")))
            outcome = run_quantize(saved(model, tmp_path), str(work), params, data)
            made[effort] = {
                item.name: onnx.numpy_helper.to_array(item) for item in onnx.load(work / "model.onnx").graph.initializer
            }
            sessions = [ort.InferenceSession(str(path)) for path in (tmp_path / "float.onnx", work / "model.onnx")]
            whole, found = (np.stack([run.run(None, {"x": row})[0] for row in rows[24:]]) for run in sessions)
            noise[effort] = np.square(whole - found).sum()
        changed = [name for name, values in made["normal"].items() if not np.array_equal(values, made["best"][name])]
        assert changed == ["w_Q4"]
        assert [(gain.technique, gain.kept) for gain in outcome.gains] == [("rounding", True)]
        assert noise["best"] < 0.5 * noise["normal"]

    def test_made_up_samples_are_not_learnt_from(self, tmp_path):
        make = Builder(5)
        make.add("MatMul", ["x", make.weight("w", 64, 16)], "y")
        model = make.model([floats("x", 4, 64)], [floats("y", 4, 16)])
        (tmp_path / "out").mkdir()
        params = QuantizeParams("int4", effort="best")
        outcome = run_quantize(saved(model, tmp_path), str(tmp_path / "out"), params, DataSource())
        assert outcome.gains == ()
        assert "made-up samples teach nothing" in " ".join(outcome.warnings)
