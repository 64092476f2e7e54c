"""Rows of a matrix that end badly by what they are: a graph without an end, one that eats memory, one that ends the
process, data whose code aborts or meets a full disk. Each fails by its class, and the rest is done."""

import platform
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import modelwright as mw
from support.models import mlp, model, save, value

CODE = """
import os

def aborts():
    os.abort()

def full():
    with open("/dev/full", "wb") as stream:
        stream.write(bytes(1 << 20))
    yield {}
"""


def endless():
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["again"]), helper.make_node("Sin", ["a"], ["b"])],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("a", shape=[1, 4])],
        [value("again", TensorProto.BOOL, []), value("b", shape=[1, 4])],
    )
    loop = helper.make_node("Loop", ["n", "yes", "x"], ["y"], body=body)
    rounds = [numpy_helper.from_array(np.array(2**62), "n"), numpy_helper.from_array(np.array(True), "yes")]
    return model([loop], [value("x", shape=[1, 4])], [value("y", shape=[1, 4])], rounds)


def hungry():
    nodes = [helper.make_node("Expand", ["x", "n"], ["big"]), helper.make_node("ReduceMax", ["big"], ["y"], keepdims=0)]
    shape = numpy_helper.from_array(np.array([200_000_000, 4]), "n")
    return model(nodes, [value("x", shape=[1, 4])], [value("y", shape=[])], [shape])


def overflowing():
    """The least of all integers modulo -1: no x86 can divide that, and onnxruntime's process ends with SIGFPE."""
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT32),
        helper.make_node("Sub", ["i", "i"], ["zero"]),
        helper.make_node("Add", ["zero", "least"], ["a"]),
        helper.make_node("Add", ["zero", "minus"], ["b"]),
        helper.make_node("Mod", ["a", "b"], ["d"]),
        helper.make_node("Cast", ["d"], ["y"], to=TensorProto.FLOAT),
    ]
    numbers = {"least": -(2**31), "minus": -1}
    weights = [numpy_helper.from_array(np.array([number], np.int32), name) for name, number in numbers.items()]
    return model(nodes, [value("x", shape=[1, 4])], [value("y", shape=[1, 4])], weights)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other CPUs divide it")
def test_a_model_that_ends_the_process_is_a_crash_and_the_others_are_built(tmp_path):
    models = {"ends": overflowing(), "good": mlp(16)}
    rows = [str(save(made, tmp_path, f"{name}.onnx")) for name, made in models.items()]
    result = mw.matrix(rows, "cpu", output=tmp_path / "out")
    assert {one.cell.model: one.words for one in result} == {"ends": "failed (crash)", "good": "validated"}
    failure = result.find("ends", "cpu")[0].failure
    assert "SIGFPE" in failure.cause
    assert Path(failure.log).is_file()
    assert result.passed is False


@pytest.mark.proof
def test_models_and_data_that_end_badly_fail_by_class_and_the_rest_is_done(tmp_path):
    (tmp_path / "code.py").write_text(CODE)
    rows = [
        {"model": str(save(endless(), tmp_path, "endless.onnx"))},
        {"model": str(save(hungry(), tmp_path, "hungry.onnx"))},
        {"model": str(save(mlp(8), tmp_path, "aborts.onnx")), "data": f"{tmp_path / 'code.py'}:aborts"},
        {"model": str(save(mlp(12), tmp_path, "fills.onnx")), "data": f"{tmp_path / 'code.py'}:full"},
        {"model": str(save(mlp(16), tmp_path, "good.onnx"))},
    ]
    with mw.limited(timeout=60, memory=1 << 30):
        result = mw.matrix(rows, "cpu", output=tmp_path / "out")
    assert {one.cell.model: one.words for one in result} == {
        "endless": "failed (timeout)",
        "hungry": "failed (oom)",
        "aborts": "failed (input)",  # the code that aborts is the one that the row names
        "fills": "failed (disk)",
        "good": "validated",
    }
    assert result.passed is False
    assert (tmp_path / "out" / "good" / "cpu" / "model.onnx").is_file()
