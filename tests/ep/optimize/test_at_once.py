"""One session on the message says what a session for loading, one for the passes, and objects say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ep.optimize.optimize_graphs import FIRES, bert_layer, graph, i64, save, simple
from ep.optimize.test_stage import big, digest
from modelwright.stages.optimize import (
    ORT_IMPORT,
    PRESETS,
    OptimizeOutcome,
    OptimizeParams,
    _at_once,
    _message,
    _ort,
    _working_model,
    run_optimize,
)


def with_function() -> onnx.ModelProto:
    model = graph("(float[2,4] x) => (float[2,4] y) { a = own.Twice(x) y = Relu(a) }", domains=("own",))
    twice = helper.make_node("Add", ["p", "p"], ["q"])
    made = helper.make_function("own", "Twice", ["p"], ["q"], [twice], [helper.make_opsetid("", 17)])
    model.functions.append(made)
    return model


def with_branches() -> onnx.ModelProto:
    """Constants inside and outside, and an Identity that a pass removes."""
    model = simple("c = Constant<value_float=2.0>() a = Mul(x, c) i = Identity(a) y = Relu(i)")
    info = helper.make_tensor_value_info
    branches = []
    for number in (1.0, 2.0):
        one = helper.make_node("Constant", [], [f"k{number}"], value_float=number)
        add = helper.make_node("Add", ["y", f"k{number}"], [f"z{number}"])
        branches.append(helper.make_graph([one, add], f"b{number}", [], [info(f"z{number}", TensorProto.FLOAT, None)]))
    model.graph.input.append(info("flag", TensorProto.BOOL, []))
    choice = helper.make_node("If", ["flag"], ["z"], then_branch=branches[0], else_branch=branches[1])
    model.graph.node.append(choice)
    model.graph.output.append(info("z", TensorProto.FLOAT, None))
    return model


def of_one_width(count: int = 40) -> onnx.ModelProto:
    """Equal biases, weights of equal shape, a residual: a small one of the long models of `bench/scale`."""
    text, value = "", "x"
    weights: dict[str, np.ndarray | tuple[int, ...]] = {}
    for index in range(count):
        text += f"m{index} = MatMul({value}, w{index}) a{index} = Add(m{index}, b{index}) r{index} = Add(a{index}, x) "
        weights |= {f"w{index}": (16, 16), f"b{index}": np.full(16, 0.01, np.float32)}
        value = f"r{index}"
    return simple(f"{text} y = Tanh({value})", shape="2,16", **weights)


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "weights in files": big,
    "a layer of BERT": bert_layer,
    "a local function": with_function,
    "branches": with_branches,
    "many alike": of_one_width,
    # HardSwish and CenterCropPad have no kernel: loading takes their definitions.
    "an operator of others": lambda: simple("a = HardSwish(x) i = Identity(a) y = Relu(i)"),
    "one that folds away": lambda: graph(
        "(float[2,4] x) => (float[2,3] y) { s = Identity(t) a = CenterCropPad<axes=[1]>(x, s) y = Relu(a) }",
        opset=21,
        t=i64(3),
    ),
    "casts in a row": FIRES["cast_chain_elimination"],
    "casts in a row for a pass": FIRES["cast_elimination"],
    "an unused output": lambda: simple("a, m = Dropout(x) u = Exp(a) y = Relu(a)"),
    "a tied weight": lambda: graph(
        "(int64[2] i) => (float[2,96] y) { g = Gather(w, i) t = Transpose<perm=[1,0]>(w) y = MatMul(g, t) }", w=(96, 96)
    ),
    "a weight given out": lambda: graph("(float[4] x) => (float[4] y, float[4] c) { y = Add(x, c) }", c=(4,)),
    "half bytes": FIRES["matmul_nbits_fusion"],
}


@pytest.fixture(params=["inside", "in a file"])
def external(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "in a file")


@pytest.mark.parametrize("name", MODELS)
def test_it_says_and_writes_what_the_longer_way_does(
    name: str, external: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = save(MODELS[name](), tmp_path / "in", external=external)
    for preset in ("portable", "ort-extended"):
        short = made(model, tmp_path / f"{preset}-short", preset)
        with monkeypatch.context() as longer:
            longer.setattr(_message, "is_plain", lambda model: False)
            objects = made(model, tmp_path / f"{preset}-objects", preset)
            longer.setattr(_working_model, "at_once", lambda *given: None)
            apart = made(model, tmp_path / f"{preset}-apart", preset)
        assert short == objects == apart


def made(model: str, folder: Path, preset: str) -> tuple[dict[str, str], OptimizeOutcome]:
    folder.mkdir()
    outcome = run_optimize(model, str(folder), OptimizeParams(passes=PRESETS[preset]))
    steps = tuple(dataclasses.replace(step, seconds=None) for step in outcome.steps)
    return digest(folder), dataclasses.replace(outcome, steps=steps, seconds=0.0, session_seconds=None)


@pytest.mark.parametrize("name", ["an operator of others", "one that folds away", "a local function", "casts in a row"])
def test_what_loading_does_is_loadings(name: str, tmp_path: Path) -> None:
    _, outcome = made(save(MODELS[name](), tmp_path / "in"), tmp_path / "out", "portable")
    loading = next(step for step in outcome.steps if step.name == ORT_IMPORT)
    assert loading.fired
    assert loading.delta


def test_many_nodes_never_become_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise AssertionError("objects were made")

    monkeypatch.setattr(_working_model, "objects", refuse)
    _, outcome = made(save(of_one_width(), tmp_path / "in"), tmp_path / "out", "portable")
    assert {step.name for step in outcome.steps if step.fired} == {"matmul_add_fusion", "dedupe_initializers"}


@pytest.mark.parametrize(
    ("made", "sessions", "fired"),
    [
        (lambda: simple("a = Exp(x) b = Sin(x) y = Add(a, b)"), [False], False),
        (lambda: simple("a = Exp(x) b = Exp(x) y = Add(a, b)"), [True], True),
        # They become equal when their constants are shared.
        (
            lambda: simple("a = Add(x, c) b = Add(x, d) y = Mul(a, b)", c=np.array(2, "f"), d=np.array(2, "f")),
            [False, True],
            True,
        ),
    ],
    ids=["none", "equal", "become equal"],
)
def test_equal_expressions_are_only_looked_for_where_there_may_be_any(tmp_path, monkeypatch, made, sessions, fired):
    asked = []

    def optimize(*words, **named):
        asked.append("common_subexpression_elimination" in words[3].names)
        return _ort.optimize_bytes(*words, **named)

    monkeypatch.setattr(_at_once, "optimize_bytes", optimize)
    (tmp_path / "out").mkdir()
    passes = ("constant_sharing", "common_subexpression_elimination")
    found = run_optimize(save(made(), tmp_path), str(tmp_path / "out"), OptimizeParams(passes))
    assert asked == sessions
    assert [step.fired for step in found.steps if step.name == "common_subexpression_elimination"] == [fired]
