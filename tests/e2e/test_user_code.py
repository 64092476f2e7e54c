"""The user's own Python, behaving badly: it runs in a child, and never in a plan."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

GOOD = """
import numpy as np
def read():
    for index in range(4):
        yield {"x": np.full((1, 4), index, np.float32)}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    weights = numpy_helper.from_array(np.arange(16, dtype=np.float32).reshape(4, 4) / 16, "w")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weights])
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("import sys; sys.exit(0)", "sys.exit(0)"),
        ("import os; os._exit(0)", "exit code 0"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("x = bytearray(b'x') * (3 << 30)", "more than its limit of 1,000 MB"),
    ],
    ids=["exit", "leave", "crash", "memory"],
)
def test_a_reader_that_does_not_return_is_an_input_error_about_the_reader(wright, model, tmp_path, body, why):
    (tmp_path / "mine.py").write_text(f"def read():\n    print('not JSON', flush=True)\n    {body}\n    yield {{}}\n")
    answer = wright("quantize", model, "-p", "w8a8", "--data", "mine.py:read", "--memory", "1GB", "--json")
    assert answer.code == 3, answer.err
    assert answer.json["error"]["problem"] == "the data function mine.py:read failed"
    assert why in answer.json["error"]["cause"]


def test_a_plan_runs_no_code_of_the_users_says_what_depends_on_it_and_stores_nothing(wright, model, tmp_path):
    (tmp_path / "mine.py").write_text("open('it-ran', 'w')\nraise SystemExit(0)\n")
    for target in ("cpu", "qnn-npu"):
        words = ["--target", target, "--precision", "w8a8", "--data", "mine.py:read", "--plan", "--json"]
        answer = wright("build", "-m", model, *words)
        assert answer.code == 0, answer.err
        steps = {step["stage"]: step for step in answer.json["plans"][0]["stages"]}
        assert steps["quantize"]["why"] == steps["validate"]["why"] == "unknown until the reader runs"
        assert steps["quantize"]["key"] is None
        # On an NPU the samples decide the shapes, and so the first stage.
        assert (steps["optimize"]["why"] is None) == (target == "cpu")
    assert not (tmp_path / "it-ran").exists()
    assert not [path for path in (tmp_path / "home" / "store").glob("blobs/**/*") if path.is_file()]


def test_a_reader_runs_once_for_a_whole_build_and_what_it_gave_is_what_the_build_is_about(wright, model, tmp_path):
    counting = "open('calls', 'a').write('x')\nimport random\n" + GOOD.replace(
        "index, np", "index + random.random(), np"
    )
    (tmp_path / "mine.py").write_text(counting)
    words = ["quantize", model, "-p", "w8a8", "--data", "mine.py:read", "--json"]
    first, second = wright(*words), wright(*words)
    assert first.code in (0, 1), first.err
    assert (tmp_path / "calls").read_text() == "xx"
    keys = [answer.json["builds"][0]["components"][0]["stages"][1]["key"] for answer in (first, second)]
    assert keys[0] != keys[1]


def test_a_metric_that_leaves_is_an_input_error_about_the_metric(wright, model, tmp_path):
    (tmp_path / "mine.py").write_text("import sys\ndef score(outputs, row):\n    sys.exit(0)\n")
    np.savez(tmp_path / "data.npz", x=np.ones((30, 4), np.float32))
    words = ["--reference", model, "--data", "data.npz", "--metric", "mine.py:score", "--json"]
    answer = wright("eval", model, *words)
    assert answer.code == 3, answer.err
    assert answer.json["error"]["problem"] == "the metric mine.py:score failed"
