"""The stage as a whole: what it leaves alone, what it refuses, what it reports."""

from __future__ import annotations

import hashlib
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from ep.optimize.optimize_graphs import (
    CONV,
    X8,
    bert_layer,
    conv,
    f32,
    fused,
    gelu,
    graph,
    i64,
    masked_attention,
    save,
    simple,
)
from ep.optimize.test_every_pass import feeds_for, run
from modelwright import graph as graphs
from modelwright._json import canonical
from modelwright.errors import InputError
from modelwright.models import symbolic_sizes
from modelwright.stages.optimize import (
    ORT_IMPORT,
    PRESETS,
    OptimizeOutcome,
    OptimizeParams,
    _said,
    _trace,
    check_passes,
    find_pass,
    passes,
    resolve_passes,
    run_optimize,
)
from modelwright.stages.optimize._shapes import merged_axes


def optimize(
    model: str, tmp_path: Path, *names: str, opset: int | None = None, **dims: int
) -> tuple[Path, OptimizeOutcome]:
    out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
    out.mkdir()
    params = OptimizeParams(passes=names, opset=opset, fix_dims=tuple(dims.items()))
    return out / "model.onnx", run_optimize(model, str(out), params)


def ops(path: Path | str) -> list[str]:
    return [node.op_type for node in onnx.load(path, load_external_data=False).graph.node]


def digest(folder: Path) -> dict[str, str]:
    return {item.name: hashlib.sha256(item.read_bytes()).hexdigest() for item in sorted(folder.iterdir())}


def big() -> onnx.ModelProto:
    """Weights too big to be kept in memory or in probes: a transposed one, and twins."""
    text = (
        "(float[1,160] x) => (float[1,160] y) { t = Transpose<perm=[1,0]>(a) m = MatMul(x, t) n = Add(m, c) "
        "r = Relu(n) o = MatMul(r, b) i = Identity(o) y = MatMul(i, b2) }"
    )
    first, twin = np.random.default_rng(1).standard_normal((2, 160, 160)).astype(np.float32) / 16
    return graph(text, a=first, c=(160,), b=twin, b2=twin.copy())


# --- names ------------------------------------------------------------------------------------------------------------


def test_listing_the_passes_imports_no_runtime() -> None:
    code = (
        "import sys; from modelwright.stages.optimize import passes, resolve_passes, PRESETS; "
        "resolve_passes(PRESETS['portable']); assert passes(); "
        "heavy = {'onnx', 'onnxruntime', 'numpy', 'onnx_ir', 'torch', 'pydantic'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_kebab_case_is_the_same_name() -> None:
    assert find_pass("Conv-Activation-Fusion") is find_pass("conv_activation_fusion")


@pytest.mark.parametrize("wrong", ["conv_activaton_fusion", "conv-activation-fussion"])
def test_a_misspelt_pass_is_refused_with_the_right_name(wrong: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_passes([wrong])
    assert "conv_activation_fusion" in caught.value.fix


def test_a_misspelt_pass_stops_the_stage_before_anything_is_written(tmp_path: Path) -> None:
    model = save(conv("y = Relu(c)"), tmp_path / "in")
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(InputError):
        run_optimize(model, str(out), OptimizeParams(passes=("conv_bn_fusoin",)))
    assert not list(out.iterdir())


def test_a_pass_of_other_tools_that_cannot_be_had_says_why() -> None:
    with pytest.raises(InputError) as caught:
        find_pass("matmul-activation-fusion")
    assert "DirectML" in caught.value.cause


def test_requirements_are_added_transitively_from_the_table() -> None:
    for item in passes():
        closure = resolve_passes([item.name])
        assert item.name in closure
        for name in closure:
            assert set(find_pass(name).requires) <= set(closure)
    assert "transformers_layer_norm_fusion" in resolve_passes(["transformers_embed_layer_norm_fusion"])


def test_one_set_of_passes_is_one_set_of_parameters() -> None:
    first = OptimizeParams(passes=resolve_passes(["bias-gelu-fusion", "gelu_fusion", "constant_folding"]))
    second = OptimizeParams(passes=resolve_passes(["constant_folding", "bias_gelu_fusion"]))
    assert canonical(first) == canonical(second)


def test_the_portable_preset_has_only_portable_passes() -> None:
    assert PRESETS["portable"]
    for name in PRESETS["portable"]:
        row = find_pass(name)
        assert row.portable
        assert not row.approximate
        assert not row.host_specific


@pytest.mark.parametrize("level", [1, 2, 3])
def test_no_transformer_of_this_onnxruntime_escapes_the_table(level: int, tmp_path: Path) -> None:
    """With everything switched off, onnxruntime runs only what it never lets anybody switch off."""
    code = (
        "import sys, onnxruntime as ort; from modelwright.stages.optimize._ort import disabled, _LEVELS; "
        "o = ort.SessionOptions(); o.log_severity_level = 0; "
        f"o.graph_optimization_level = getattr(ort.GraphOptimizationLevel, _LEVELS[{level}]); "
        "ort.InferenceSession(sys.argv[1], o, providers=['CPUExecutionProvider'], "
        "disabled_optimizers=sorted(disabled(())))"
    )
    model = save(conv("y = Relu(c)"), tmp_path / "in")
    done = subprocess.run([sys.executable, "-c", code, model], capture_output=True, text=True, check=True)
    log = done.stdout + done.stderr
    ran = {
        line.split("GraphTransformer ")[1].split(" modified")[0]
        for line in log.splitlines()
        if "GraphTransformer " in line
    }
    assert ran <= {
        "EnsureUniqueDQForNodeUnit",
        "RemoveDuplicateCastTransformer",
        "CastFloat16Transformer",
        "FuseFp16InitializerToFp32NodeTransformer",
        "MemcpyTransformer",
    }


# --- what stays the same ----------------------------------------------------------------------------------------------


def test_no_passes_is_no_change(tmp_path: Path) -> None:
    model = save(conv("i = Identity(c) y = Relu(i)"), tmp_path / "in")
    path, outcome = optimize(model, tmp_path)
    assert path.read_bytes() == Path(model).read_bytes()
    assert outcome.steps == ()
    assert outcome.ops_before == outcome.ops_after


def test_no_passes_on_external_weights_is_the_same_graph(tmp_path: Path) -> None:
    model = save(big(), tmp_path / "in", external=True)
    path, _ = optimize(model, tmp_path)
    assert graphs.fingerprint(graphs.load(path)) == graphs.fingerprint(graphs.load(model))
    assert [item.name for item in path.parent.iterdir()] == ["model.onnx"]


@pytest.mark.parametrize("preset", ["portable", "ort-extended"])
def test_the_same_request_gives_the_same_bytes_in_every_process(preset: str, tmp_path: Path) -> None:
    model = save(big(), tmp_path / "in")
    code = (
        "import sys; from modelwright.stages.optimize import *; "
        f"run_optimize(sys.argv[1], sys.argv[2], OptimizeParams(passes=PRESETS[{preset!r}]))"
    )
    found = []
    for index in range(3):
        out = tmp_path / f"run{index}"
        out.mkdir()
        env = os.environ | {"PYTHONHASHSEED": str(index)}
        subprocess.run([sys.executable, "-c", code, model, str(out)], check=True, env=env)
        found.append(digest(out))
    assert found[0] == found[1] == found[2]


def test_the_input_may_be_read_only_and_stays_as_it_is(tmp_path: Path) -> None:
    model = save(big(), tmp_path / "in", external=True)
    before = digest(tmp_path / "in")
    for item in (tmp_path / "in").iterdir():
        item.chmod(0o444)
    (tmp_path / "in").chmod(0o555)
    try:
        optimize(model, tmp_path, *PRESETS["portable"], "clamp_infinities")
        assert digest(tmp_path / "in") == before
    finally:
        (tmp_path / "in").chmod(0o755)


def test_external_weights_inline_weights_and_no_weights_touched_give_one_result(tmp_path: Path) -> None:
    inline = save(big(), tmp_path / "inline")
    external = save(big(), tmp_path / "external", external=True)
    first, _ = optimize(inline, tmp_path, *PRESETS["portable"])
    second, _ = optimize(external, tmp_path, *PRESETS["portable"])
    assert first.read_bytes() == second.read_bytes()
    assert first.parent.joinpath("model.onnx.data").exists() is False
    feeds = feeds_for(inline)
    np.testing.assert_allclose(run(first, feeds)[0], run(inline, feeds)[0], rtol=1e-5, atol=1e-5)


def test_what_does_not_fit_in_one_file_gets_external_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelwright.graph._write.INLINE_BYTES", 1000)
    model = save(big(), tmp_path / "in")
    path, _ = optimize(model, tmp_path, *PRESETS["portable"])
    assert sorted(item.name for item in path.parent.iterdir()) == ["model.onnx", "model.onnx.data"]
    graphs.external_data(graphs.load(path))
    feeds = feeds_for(model)
    np.testing.assert_allclose(run(path, feeds)[0], run(model, feeds)[0], rtol=1e-5, atol=1e-5)


def test_stack_traces_and_doc_strings_of_the_exporter_are_gone(tmp_path: Path) -> None:
    source = conv("y = Relu(c)")
    for node in source.graph.node:
        node.doc_string = "File /home/someone/model.py, line 3"
        node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value="/home/someone")
    path, _ = optimize(save(source, tmp_path / "in"), tmp_path, "conv_activation_fusion", "unfuse_conv")
    assert b"someone" not in path.read_bytes()
    assert not any(node.doc_string for node in onnx.load(path).graph.node)


def test_weights_in_typed_fields_are_written_like_any_other(tmp_path: Path) -> None:
    source = simple("y = Mul(x, k)", "1,512")
    values = np.arange(512, dtype=np.float32)
    source.graph.initializer.append(helper.make_tensor("k", TensorProto.FLOAT, [512], values.tolist()))
    path, _ = optimize(save(source, tmp_path / "in"), tmp_path, "remove_identity")
    np.testing.assert_array_equal(numpy_helper.to_array(onnx.load(path).graph.initializer[0]), values)


def encoder() -> onnx.ModelProto:
    """Attention, whose projections onnxruntime turns into Gemm at level 2, and a projection it takes at level 1."""
    model = bert_layer()
    made = [("MatMul", ["y", "wf"], ["f"]), ("Add", ["f", "bo"], ["out"])]
    model.graph.node.extend(helper.make_node(*part) for part in made)
    model.graph.initializer.append(numpy_helper.from_array(np.eye(8, dtype=np.float32) * 2, "wf"))
    model.graph.output[0].name = "out"
    return model


def test_the_result_can_be_optimized_again_by_anyone(tmp_path: Path) -> None:
    """onnxruntime names the shapes around a Gemm without looking whether the name is taken."""
    model = save(encoder(), tmp_path / "in")
    once, first = optimize(model, tmp_path, "matmul_add_fusion")
    assert first.not_fired == ()
    feeds = feeds_for(model)
    expected = run(model, feeds)[0]
    session = ort.InferenceSession(str(once), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, feeds)[0], expected, rtol=1e-4, atol=1e-5)
    twice, _ = optimize(str(once), tmp_path, *PRESETS["ort-extended"])
    np.testing.assert_allclose(run(twice, feeds)[0], expected, rtol=1e-4, atol=1e-5)


def test_a_model_that_plain_onnxruntime_optimized_before_is_taken(tmp_path: Path) -> None:
    model = save(encoder(), tmp_path / "in")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(tmp_path / "plain.onnx")
    ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    path, _ = optimize(str(tmp_path / "plain.onnx"), tmp_path, *PRESETS["ort-extended"])
    feeds = feeds_for(model)
    np.testing.assert_allclose(run(path, feeds)[0], run(model, feeds)[0], rtol=1e-4, atol=1e-5)


# --- what it reports --------------------------------------------------------------------------------------------------


def test_what_onnxruntime_says_of_itself_saves_sessions_and_changes_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions, real = [], _trace.optimize_bytes
    monkeypatch.setattr(_trace, "optimize_bytes", lambda *given, **named: sessions.append(1) or real(*given, **named))
    for number, model in enumerate((simple("m = MatMul(x, w) y = Add(m, c)", w=(4, 4), c=(4,)), big())):
        path = save(model, tmp_path / f"in{number}")
        sessions.clear()
        _, told = optimize(path, tmp_path, *PRESETS["portable"])
        fewer = len(sessions)
        with monkeypatch.context() as deaf:
            deaf.setattr(_said, "_LINE", re.compile("what nobody writes"))
            _, asked = optimize(path, tmp_path, *PRESETS["portable"])
        assert effects(told) == effects(asked)
        assert fewer < len(sessions) - fewer


def effects(outcome: OptimizeOutcome) -> list[tuple[object, ...]]:
    return [(step.name, step.fired, step.nodes_before, step.nodes_after, step.delta) for step in outcome.steps]


def test_each_pass_of_a_batch_is_reported_with_what_it_did(tmp_path: Path) -> None:
    _, outcome = optimize(save(big(), tmp_path / "in"), tmp_path, *PRESETS["ort-basic"])
    steps = {step.name: step for step in outcome.steps}
    assert steps["constant_folding"].delta == (("Transpose", -1),)
    assert steps["identity_elimination"].delta == (("Identity", -1),)
    assert steps["matmul_add_fusion"].delta == (("Add", -1), ("Gemm", 1), ("MatMul", -1))
    fired = {name for name, step in steps.items() if step.fired}
    assert fired == {"constant_folding", "identity_elimination", "matmul_add_fusion"}
    assert set(outcome.not_fired) == set(PRESETS["ort-basic"]) - fired
    total = sum(step.nodes_after - step.nodes_before for step in outcome.steps)
    assert outcome.nodes_before + total == outcome.nodes_after


def test_a_pass_that_only_works_on_what_a_later_one_leaves_counts_as_fired(tmp_path: Path) -> None:
    """conv_mul_fusion comes first in the table, but here BatchNormalization is in its way."""
    norm = {"g": (4,), "h": (4,), "m": (4,), "v": np.ones(4, np.float32)}
    source = conv("n = BatchNormalization(c, g, h, m, v) y = Mul(n, k)", k=(4, 1, 1), **norm)
    path, outcome = optimize(save(source, tmp_path / "in"), tmp_path, "conv_mul_fusion", "conv_bn_fusion")
    assert ops(path) == ["Conv"]
    assert outcome.not_fired == ()
    assert {step.name: step.delta for step in outcome.steps}["conv_mul_fusion"] == (("Mul", -1),)


def test_what_loading_with_onnxruntime_does_is_not_blamed_on_a_pass(tmp_path: Path) -> None:
    source = simple("k = Constant<value_float=2.0>() a = CastLike(k, x) y = Mul(x, a)")
    _, outcome = optimize(save(source, tmp_path / "in"), tmp_path, "conv_bn_fusion")
    imported, fusion = outcome.steps
    assert imported.name == ORT_IMPORT
    assert imported.delta == (("Cast", 1), ("CastLike", -1), ("Constant", -1))
    assert not fusion.fired
    assert outcome.not_fired == ("conv_bn_fusion",)


def test_requirements_that_were_added_are_named_and_not_blamed(tmp_path: Path) -> None:
    _, outcome = optimize(save(simple("y = Relu(x)"), tmp_path / "in"), tmp_path, "bias_gelu_fusion")
    assert outcome.added == ("gelu_fusion",)
    assert outcome.not_fired == ("bias_gelu_fusion",)


def test_checking_all_passes_finds_the_ones_that_change_this_model(tmp_path: Path) -> None:
    model = save(
        conv("n = BatchNormalization(c, g, h, m, v) y = Relu(n)", g=(4,), h=(4,), m=(4,), v=np.ones(4, np.float32)),
        tmp_path / "in",
    )
    effects = check_passes(model, str(tmp_path))
    assert [effect.name for effect in effects] == [item.name for item in passes()]
    fired = {effect.name for effect in effects if effect.fired}
    assert "conv_bn_fusion" in fired
    # Relu is behind BatchNormalization, so alone there is nothing to fuse.
    assert not fired & {"conv_activation_fusion", "conv_add_fusion", "unfuse_conv", "gelu_fusion", "clamp_infinities"}


def test_a_fusion_whose_shape_inference_fails_says_so(tmp_path: Path) -> None:
    """onnxruntime's symbolic shape inference knows no Constant with a plain float; its sessions remove those."""
    name = "transformers_skip_layer_norm_fusion"
    text = (
        "(float[1,4,8] x, float[1,4,8] z) => (float[1,4,8] y) { k = Constant<value_float=1.5>() "
        "n = Mul(z, k) s = Add(x, n) y = LayerNormalization<axis=-1>(s, gamma, beta) }"
    )
    model = save(graph(text, gamma=(8,), beta=(8,)), tmp_path / "in")
    _, alone = optimize(model, tmp_path, name)
    assert alone.not_fired == (name,)
    assert "shape inference" in (alone.steps[-1].problem or "")
    _, folded = optimize(model, tmp_path, name, "constant_folding")
    assert name not in folded.not_fired


def test_the_machine_dependence_of_a_layout_is_reported(tmp_path: Path) -> None:
    _, outcome = optimize(save(conv("y = Relu(c)"), tmp_path / "in"), tmp_path, "nchwc_transformer")
    assert outcome.host_specific == ("nchwc_transformer",)


# --- the conv fusion hazard -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "activation",
    [
        "y = Relu(c)",
        "y = Sigmoid(c)",
        "y = Tanh(c)",
        "y = LeakyRelu<alpha=0.3>(c)",
        "y = Clip(c, lo, hi)",
        "y = HardSigmoid<alpha=0.3>(c)",
    ],
)
def test_fused_convolutions_are_made_and_unmade(activation: str, tmp_path: Path) -> None:
    limits = {"lo": f32(-0.5), "hi": f32(0.5)} if "Clip" in activation else {}
    model = save(conv(activation, **limits), tmp_path / "in")
    made, _ = optimize(model, tmp_path, "conv_activation_fusion")
    assert ops(made) == ["FusedConv"]
    unmade, outcome = optimize(str(made), tmp_path, "unfuse_conv")
    assert not any("FusedConv" in op for op, _ in outcome.ops_after)
    feeds = feeds_for(model)
    np.testing.assert_allclose(run(unmade, feeds)[0], run(model, feeds)[0], rtol=1e-5, atol=1e-6)


def test_a_residual_block_is_unfused_into_conv_add_relu(tmp_path: Path) -> None:
    text = (
        "(float[1,4,8,8] x) => (float[1,4,8,8] y) "
        "{ q = Relu(x) c = Conv<pads=[1,1,1,1]>(q, w, b) a = Add(c, q) y = Relu(a) }"
    )
    model = save(graph(text, w=(4, 4, 3, 3), b=(4,)), tmp_path / "in")
    made, _ = optimize(model, tmp_path, "conv_add_activation_fusion")
    assert ops(made) == ["Relu", "FusedConv"]
    unmade, _ = optimize(str(made), tmp_path, "unfuse_conv")
    assert ops(unmade) == ["Relu", "Conv", "Add", "Relu"]
    feeds = feeds_for(model)
    np.testing.assert_allclose(run(unmade, feeds)[0], run(model, feeds)[0], rtol=1e-5, atol=1e-6)


def test_an_activation_that_is_unknown_stays_fused(tmp_path: Path) -> None:
    weights = {"w": np.ones((4, 3, 3, 3), np.float32)}
    model = save(fused("FusedConv", weights, [1, 3, 8, 8], [1, 4, 6, 6], activation="Swish"), tmp_path / "in")
    _, outcome = optimize(model, tmp_path, "unfuse_conv")
    assert outcome.not_fired == ("unfuse_conv",)


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1e300, -1e39])
def test_doubles_that_no_float_can_hold_stay_doubles(tmp_path: Path, number: float) -> None:
    text = "(float[2,4] x) => (double[2,4] y) { a = Cast<to=11>(x) y = Min(a, k) }"
    model = save(graph(text, 17, k=np.full(4, number)), tmp_path / "in")
    path, outcome = optimize(model, tmp_path, "narrow_doubles")
    assert outcome.not_fired == ("narrow_doubles",)
    assert ops(path) == ["Cast", "Min"]


def test_infinite_mask_constants_become_finite_and_the_softmax_stays(tmp_path: Path) -> None:
    model = save(masked_attention(-math.inf), tmp_path / "in")
    path, outcome = optimize(model, tmp_path, "clamp_infinities", "drop_isnan_guard")
    assert ops(path) == ["Add", "Softmax"]
    assert {step.name: step.fired for step in outcome.steps} == {"clamp_infinities": True, "drop_isnan_guard": True}
    for tensor in onnx.load(path).graph.initializer:
        assert np.isfinite(numpy_helper.to_array(tensor)).all()
    feeds = feeds_for(model)
    np.testing.assert_allclose(run(path, feeds)[0], run(model, feeds)[0], atol=1e-7)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_every_float_type_is_clamped_to_its_own_limit(kind: type, tmp_path: Path) -> None:
    code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    value = numpy_helper.from_array(np.array([-np.inf, 1, np.inf, np.nan], kind), "k")
    made = helper.make_graph(
        [helper.make_node("Constant", [], ["k"], value=value), helper.make_node("Add", ["x", "k"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", code, [4])],
        [helper.make_tensor_value_info("y", code, [4])],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path, _ = optimize(save(model, tmp_path / "in"), tmp_path, "clamp_infinities")
    got = numpy_helper.to_array(onnx.load(path).graph.node[0].attribute[0].t)
    limit = np.finfo(kind).max
    np.testing.assert_array_equal(got, np.array([-limit, 1, limit, np.nan], kind))


def test_mask_fillers_become_mild_and_ordinary_weights_stay(tmp_path: Path) -> None:
    filler = float(np.finfo(np.float32).min)
    source = simple("a = Add(x, mask) y = Mul(a, w)", mask=f32(filler, 0.0, 1.5, -1e9), w=f32(1e6, 2.0, 3.0, 4.0))
    path, _ = optimize(save(source, tmp_path / "in"), tmp_path, "clamp_mask_constants")
    got = {item.name: numpy_helper.to_array(item).tolist() for item in onnx.load(path).graph.initializer}
    assert got == {"mask": [-1000.0, 0.0, 1.5, -1000.0], "w": [1e6, 2.0, 3.0, 4.0]}


def test_a_where_that_guards_nothing_stays(tmp_path: Path) -> None:
    source = simple("bad = IsNaN(x) y = Where(bad, zero, x)", zero=f32(0.0))
    path, outcome = optimize(save(source, tmp_path / "in"), tmp_path, "drop_isnan_guard")
    assert ops(path) == ["IsNaN", "Where"]
    assert outcome.not_fired == ("drop_isnan_guard",)


# --- dimensions and opset ---------------------------------------------------------------------------------------------


def test_symbolic_dimensions_get_a_size_everywhere(tmp_path: Path) -> None:
    model = save(graph("(float[n,4] x) => (float[n,4] y) { a = Exp(x) y = Relu(a) }"), tmp_path / "in")
    path, outcome = optimize(model, tmp_path, n=3)
    summary = graphs.summary(graphs.load(path))
    assert summary.inputs[0].shape == summary.outputs[0].shape == (3, 4)
    assert outcome.steps[0].name == "fix_dims"
    assert ops(path) == ["Exp", "Relu"]


def test_an_unknown_dimension_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    model = save(graph("(float[batch,4] x) => (float[batch,4] y) { y = Relu(x) }"), tmp_path / "in")
    with pytest.raises(InputError) as caught:
        optimize(model, tmp_path, bach=1)
    assert "batch" in caught.value.fix


def test_the_requested_opset_is_the_produced_opset(tmp_path: Path) -> None:
    model = save(big(), tmp_path / "in")
    path, outcome = optimize(model, tmp_path, opset=21)
    assert outcome.opset == 21
    assert {item.domain: item.version for item in onnx.load(path).opset_import} == {"": 21}
    feeds = feeds_for(model)
    np.testing.assert_array_equal(run(path, feeds)[0], run(model, feeds)[0])


def test_an_opset_that_cannot_be_reached_is_an_error(tmp_path: Path) -> None:
    model = save(simple("y = LayerNormalization(x, g, b)", g=(4,), b=(4,)), tmp_path / "in")
    with pytest.raises(InputError, match="opset 11"):
        optimize(model, tmp_path, opset=11)


def test_a_new_opset_lets_a_standard_fusion_fire(tmp_path: Path) -> None:
    model = save(gelu(17), tmp_path / "in")
    _, before = optimize(model, tmp_path, "standard_gelu_fusion")
    path, after = optimize(model, tmp_path, "standard_gelu_fusion", opset=20)
    assert before.not_fired == ("standard_gelu_fusion",)
    assert after.not_fired == ()
    assert "Gelu" in ops(path)


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_compiled_model_is_refused(tmp_path: Path) -> None:
    made = helper.make_graph(
        [helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft", embed_mode=1, ep_cache_context=b"blob")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = save(helper.make_model(made, opset_imports=imports, ir_version=8), tmp_path / "in")
    with pytest.raises(InputError) as caught:
        optimize(model, tmp_path)
    assert "compiled from" in caught.value.fix


def test_half_precision_is_not_silently_wrapped_into_casts(tmp_path: Path) -> None:
    text = "(float16[1,3,8,8] x) => (float16[1,4,8,8] y) { c = Conv<pads=[1,1,1,1]>(x, w) y = Relu(c) }"
    model = save(graph(text, w=np.ones((4, 3, 3, 3), np.float16)), tmp_path / "in")
    path, outcome = optimize(model, tmp_path, "identity_elimination", "remove_identity")
    left_out = next(step for step in outcome.steps if step.name == "identity_elimination")
    assert not left_out.fired
    assert "casts" in (left_out.problem or "")
    assert [node.op_type for node in onnx.load(path).graph.node] == ["Conv", "Relu"]


@pytest.mark.parametrize("passes", [(), ("remove_identity",), ("identity_elimination",)])
def test_nodes_that_stand_before_their_inputs_are_put_in_order(tmp_path: Path, passes: tuple[str, ...]) -> None:
    """As onnxruntime takes them, and ONNX's checker does not."""
    model = graph("(float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }")
    model.graph.node.reverse()
    path, _ = optimize(save(model, tmp_path / "in"), tmp_path, *passes)
    onnx.checker.check_model(str(path))


def test_a_model_onnxruntime_cannot_load_is_the_users_problem_not_a_traceback(tmp_path: Path) -> None:
    model = save(graph(f"{X8} {{ {CONV} y = NoSuchOperator(c) }}", w=(4, 3, 3, 3), b=(4,)), tmp_path / "in")
    with pytest.raises(InputError, match="onnxruntime"):
        optimize(model, tmp_path, "conv_bn_fusion")


def test_nothing_but_the_result_is_left_in_the_folder(tmp_path: Path) -> None:
    path, _ = optimize(save(big(), tmp_path / "in"), tmp_path, *PRESETS["ort-extended"], *PRESETS["transformers"])
    assert [item.name for item in path.parent.iterdir()] == ["model.onnx"]


# --- our shape rewrites -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dims", "perm", "sizes", "order"),
    [
        ((1, 2, 3, 4, 5), (0, 1, 2, 3, 4), [120], [0]),
        ((1, 2, 4, 2, 3), (0, 3, 4, 1, 2), [8, 6], [1, 0]),
        ((2, 3, 4, 5, 6), (0, 2, 1, 4, 3), [2, 3, 4, 5, 6], [0, 2, 1, 4, 3]),
        ((2, 3, 1, 5, 6), (0, 3, 2, 1, 4), [2, 3, 5, 6], [0, 2, 1, 3]),
    ],
)
def test_axes_that_move_together_become_one(
    dims: tuple[int, ...], perm: tuple[int, ...], sizes: list[int], order: list[int]
) -> None:
    assert merged_axes(dims, perm) == (sizes, order)
    data = np.arange(math.prod(dims))
    expected = data.reshape(dims).transpose(perm).reshape(-1)
    np.testing.assert_array_equal(data.reshape(sizes).transpose(order).reshape(-1), expected)


def test_an_uneven_split_is_sliced_at_the_right_places(tmp_path: Path) -> None:
    text = "(float[2,7] x) => (float[2,3] a, float[2,3] b, float[2,1] c) { a, b, c = Split<axis=-1, num_outputs=3>(x) }"
    model = save(graph(text, 18), tmp_path / "in")
    path, _ = optimize(model, tmp_path, "static_split_to_slice")
    assert "Split" not in ops(path)
    feeds = feeds_for(model)
    for expected, actual in zip(run(model, feeds), run(path, feeds), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_a_split_of_unknown_sizes_stays(tmp_path: Path) -> None:
    text = "(float[2,6] x, int64[2] parts) => (float[2,a] y, float[2,b] z) { y, z = Split<axis=1>(x, parts) }"
    _, outcome = optimize(save(graph(text), tmp_path / "in"), tmp_path, "static_split_to_slice")
    assert outcome.not_fired == ("static_split_to_slice",)


def test_dropout_whose_mask_is_read_stays(tmp_path: Path) -> None:
    text = "(float[2,4] x) => (float[2,4] y, bool[2,4] m) { y, m = Dropout(x) }"
    _, outcome = optimize(save(graph(text), tmp_path / "in"), tmp_path, "remove_dropout")
    assert outcome.not_fired == ("remove_dropout",)


@pytest.mark.parametrize("name", ["remove_dropout", "remove_identity"])
def test_a_node_between_input_and_output_keeps_both_names(name: str, tmp_path: Path) -> None:
    op = "Dropout" if name == "remove_dropout" else "Identity"
    model = save(simple(f"y = {op}(x)"), tmp_path / "in")
    path, _ = optimize(model, tmp_path, name)
    loaded = onnx.load(path)
    assert [item.name for item in loaded.graph.input] == ["x"]
    assert [item.name for item in loaded.graph.output] == ["y"]
    feeds = feeds_for(model)
    np.testing.assert_array_equal(run(path, feeds)[0], feeds["x"])


def test_identities_that_name_the_outputs_of_branches_stay(tmp_path: Path) -> None:
    """Both branches give the same outer value; neither may take its name away."""
    branch = [
        helper.make_graph([helper.make_node("Identity", ["a"], [f"{name}_out"])], name, [], [value_info(f"{name}_out")])
        for name in ("then", "else")
    ]
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("If", ["flag"], ["c"], then_branch=branch[0], else_branch=branch[1]),
        helper.make_node("Add", ["b", "c"], ["y"]),
    ]
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    made = helper.make_graph(nodes, "branches", [value_info("x"), flag], [value_info("y")])
    model = save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "in")
    path, outcome = optimize(model, tmp_path, "remove_identity")
    assert outcome.steps[0].delta == (("Identity", -1),)
    feeds = {"x": np.array([-1, 2, 3], np.float32), "flag": np.array(True)}
    np.testing.assert_array_equal(run(path, feeds)[0], run(model, feeds)[0])


def value_info(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])


def test_metadata_that_a_fixed_size_makes_untrue_is_corrected(tmp_path: Path) -> None:
    source = simple("y = Relu(x)", "1,3,4,4")
    for axis, dim in ((2, "height"), (3, "width")):
        source.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = dim
    helper.set_model_props(source, {"imgsz": "[640, 640]", "batch": "1", "names": "{0: 'cat'}"})
    model = save(source, tmp_path / "in")
    (tmp_path / "out").mkdir()
    outcome = run_optimize(str(model), str(tmp_path / "out"), OptimizeParams(fix_dims=(("height", 8), ("width", 6))))
    notes = {item.key: item.value for item in onnx.load(tmp_path / "out" / "model.onnx").metadata_props}
    assert notes == {"imgsz": "[8, 6]", "batch": "1", "names": "{0: 'cat'}"}
    assert "metadata" in [step.name for step in outcome.steps]


def test_dimensions_without_a_name_are_fixed_by_their_place(tmp_path: Path) -> None:
    source = simple("y = Relu(x)", "1,3,4,4")
    dims = source.graph.input[0].type.tensor_type.shape.dim
    dims[0].dim_value = -1
    dims[2].dim_param = dims[3].dim_param = "?"
    model = save(source, tmp_path / "in")
    assert symbolic_sizes(graphs.load(model)) == {"x:0": 1, "x:2": 224, "x:3": 224}
    fixed = OptimizeParams(fix_dims=(("x:0", 2), ("x:2", 8), ("x:3", 6)))
    (tmp_path / "out").mkdir()
    run_optimize(str(model), str(tmp_path / "out"), fixed)
    (declared,) = onnx.load(tmp_path / "out" / "model.onnx").graph.input
    assert [dim.dim_value for dim in declared.type.tensor_type.shape.dim] == [2, 3, 8, 6]


def test_big_weights_in_constant_nodes_go_through(tmp_path: Path) -> None:
    """As converters from other frameworks write them; onnxruntime makes initializers of them."""
    values = np.random.default_rng(0).standard_normal((3, 4096)).astype(np.float32)
    nodes = [
        helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(values, "k")),
        helper.make_node("Reshape", ["x", "shape"], ["row"]),
        helper.make_node("MatMul", ["row", "k"], ["a"]),
        helper.make_node("ReduceSum", ["a"], ["s"], keepdims=0),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    made = helper.make_graph(nodes, "g", [value_info("x")], [value_info("y")], [i64_tensor("shape", 1, 3)])
    model = save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "in")
    path, _ = optimize(model, tmp_path, "constant_folding")
    feeds = {"x": np.array([-1, 2, 3], np.float32)}
    np.testing.assert_allclose(run(path, feeds)[0], run(model, feeds)[0], rtol=1e-5)


def i64_tensor(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def test_twins_are_stored_once_and_near_twins_are_not(tmp_path: Path) -> None:
    near = np.full(4, 2.5, np.float32)
    near[-1] = np.nextafter(np.float32(2.5), np.float32(3))
    full = np.full(4, 2.5, np.float32)
    source = simple("a = Mul(x, k1) b = Mul(a, k2) y = Mul(b, k3)", k1=full, k2=full.copy(), k3=near)
    path, _ = optimize(save(source, tmp_path / "in"), tmp_path, "dedupe_initializers")
    assert len(onnx.load(path).graph.initializer) == 2


def test_reshape_targets_with_copied_dimensions_survive_a_lower_rank(tmp_path: Path) -> None:
    text = (
        "(float[1,8,6] x) => (float[1,6,8] y) <float[1,2,4,2,3] r, float[1,2,3,2,4] t> "
        "{ r = Reshape(x, a) t = Transpose<perm=[0,3,4,1,2]>(r) y = Reshape(t, b) }"
    )
    model = save(graph(text, a=i64(0, 2, 4, 2, -1), b=i64(0, 6, -1)), tmp_path / "in")
    path, _ = optimize(model, tmp_path, "lower_rank_transpose")
    transposes = [node for node in onnx.load(path).graph.node if node.op_type == "Transpose"]
    assert [list(node.attribute[0].ints) for node in transposes] == [[1, 0]]
    feeds = feeds_for(model)
    np.testing.assert_array_equal(run(path, feeds)[0], run(model, feeds)[0])


def tied(turned: str, **weights: object) -> onnx.ModelProto:
    """Tokens looked up in a table that is also the last layer."""
    table = np.random.default_rng(0).normal(size=(300, 24)).astype(np.float32)
    text = f"(int64[1,5] ids) => (float[1,5,300] y) {{ x = Gather(table, ids) r = Relu(x) {turned} }}"
    return graph(text, table=table, **{name: table.T.copy() if w is None else w for name, w in weights.items()})


@pytest.mark.parametrize("names", [("constant_folding",), PRESETS["portable"], PRESETS["ort-extended"]])
def test_folding_stores_a_tied_weight_once(tmp_path: Path, names: tuple[str, ...]) -> None:
    model = save(tied("t = Transpose<perm=[1,0]>(table) y = MatMul(r, t)"), tmp_path / "in")
    path, outcome = optimize(model, tmp_path, *names)
    assert [list(tensor.dims) for tensor in onnx.load(path).graph.initializer if len(tensor.dims) == 2] == [[300, 24]]
    assert "Transpose" in ops(path)
    assert "tied_weights" in [step.name for step in outcome.steps]
    feeds = {"ids": np.array([[1, 2, 299, 4, 0]])}
    np.testing.assert_array_equal(run(path, feeds)[0], run(model, feeds)[0])


def test_a_weight_that_came_turned_a_second_time_is_stored_once_and_a_near_one_is_not(tmp_path: Path) -> None:
    model = save(tied("y = MatMul(r, t)", t=None), tmp_path / "in")
    path, _ = optimize(model, tmp_path, "dedupe_initializers")
    assert [list(tensor.dims) for tensor in onnx.load(path).graph.initializer] == [[300, 24]]
    feeds = {"ids": np.array([[1, 2, 299, 4, 0]])}
    np.testing.assert_array_equal(run(path, feeds)[0], run(model, feeds)[0])
    source = tied("y = MatMul(r, t)", t=None)
    near = numpy_helper.to_array(source.graph.initializer[1]).copy()
    near[-1, -1] = np.nextafter(near[-1, -1], np.float32(9))
    source.graph.initializer[1].CopyFrom(numpy_helper.from_array(near, "t"))
    path, _ = optimize(save(source, tmp_path / "near"), tmp_path, "dedupe_initializers")
    assert len(onnx.load(path).graph.initializer) == 2


def test_a_weight_that_folding_turned_for_one_reader_only_stays_folded(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).normal(size=(80, 64)).astype(np.float32)
    text = "(float[2,64] x) => (float[2,80] y) { t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) }"
    path, _ = optimize(save(graph(text, w=weight), tmp_path / "in"), tmp_path, *PRESETS["portable"])
    assert ops(path) == ["MatMul"]


def listed(*names: str) -> onnx.ModelProto:
    """A model whose weights of these names are inputs too, as exporters listed all of them once."""
    scales = {name: np.ones(4, np.float32) for name in ("scale", "mean", "var")}
    made = conv("y = BatchNormalization(c, scale, shift, mean, var)", shift=(4,), **scales)
    for tensor in made.graph.initializer:
        if tensor.name in names:
            made.graph.input.append(helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, list(tensor.dims)))
    return made


@pytest.mark.parametrize(("ir_version", "opset"), [(8, None), (8, 21), (3, None)])
def test_weights_that_are_all_listed_as_inputs_are_folded_and_converted(
    tmp_path: Path, ir_version: int, opset: int | None
) -> None:
    """Before IR 4 all of them had to be."""
    made = listed("w", "b", "scale", "shift", "mean", "var")
    made.ir_version = ir_version
    model = save(made, tmp_path / "in")
    path, outcome = optimize(model, tmp_path, *PRESETS["portable"], opset=opset)
    assert ops(path) == ["Conv"]
    assert [value.name for value in onnx.load(path).graph.input] == ["x"]
    assert "freeze_weights" in [step.name for step in outcome.steps]
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)}
    np.testing.assert_allclose(run(path, feeds)[0], run(model, feeds)[0], atol=1e-5)
    done = {effect.name: effect.fired for effect in check_passes(model, str(tmp_path), ("conv_bn_fusion",))}
    assert done == {"conv_bn_fusion": True}


def test_an_input_with_a_default_among_weights_that_are_none_stays_an_input(tmp_path: Path) -> None:
    model = save(listed("shift"), tmp_path / "in")
    path, _ = optimize(model, tmp_path, *PRESETS["portable"], opset=21)
    assert [value.name for value in onnx.load(path).graph.input] == ["x", "shift"]
    feeds = {"x": np.ones((1, 3, 8, 8), np.float32), "shift": np.full(4, 7, np.float32)}
    np.testing.assert_allclose(run(path, feeds)[0], run(model, feeds)[0], atol=1e-5)
