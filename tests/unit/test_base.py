"""The foundations every room stands on."""

import enum
import math
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

import modelwright
from modelwright._json import canonical, digest, dumps, plain
from modelwright._lazy import lazy
from modelwright.errors import InputError, StoreError, UsageError, WrightError, did_you_mean
from modelwright.home import HOME_VARIABLE, home, logs_dir, runtimes_dir, store_dir


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Point:
    x: int
    where: PurePosixPath
    tags: tuple[Colour, ...]


def test_typed_values_become_plain_json():
    assert plain(Point(1, PurePosixPath("a/b"), (Colour.RED,))) == {"x": 1, "where": "a/b", "tags": ["red"]}


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": [-math.inf]}])
def test_json_refuses_numbers_that_are_not_numbers(value):
    with pytest.raises(ValueError):
        dumps(value)


def test_json_refuses_what_has_no_json_form():
    with pytest.raises(TypeError):
        dumps({"a": object()})
    with pytest.raises(TypeError):
        dumps({1: "a"})


@given(st.dictionaries(st.text(), st.one_of(st.integers(), st.text(), st.none(), st.booleans()), max_size=6))
def test_digest_ignores_the_order_of_keys(value):
    assert digest(dict(reversed(value.items()))) == digest(value)
    assert canonical(value) == canonical(dict(sorted(value.items())))


@pytest.mark.parametrize(("kind", "code"), [(UsageError, 2), (InputError, 3), (StoreError, 5), (WrightError, 4)])
def test_errors_carry_an_exit_code_and_survive_pickling(kind, code):
    error = pickle.loads(pickle.dumps(kind("p", cause="c", fix="f")))
    assert (type(error), error.problem, error.cause, error.fix, error.exit_code) == (
        kind,
        "p",
        "c",
        "f",
        code,
    )


def test_did_you_mean_suggests_only_what_is_close():
    assert did_you_mean("qnn-npuu", ["qnn-npu", "cpu"]) == "did you mean qnn-npu?"
    assert did_you_mean("zebra", ["qnn-npu", "cpu"]) is None


def test_what_a_library_hardly_uses_waits_until_it_is_used(tmp_path):
    """In an interpreter of its own: here everything is imported already."""
    (tmp_path / "onnx_ir").mkdir()
    (tmp_path / "onnx_ir/__init__.py").write_text("import sympy\nfrom onnx_ir import _symbolic_shapes\nplain = 1\n")
    (tmp_path / "onnx_ir/_symbolic_shapes.py").write_text("import sympy\nlargest = sympy.largest\n")
    (tmp_path / "sympy.py").write_text("print('sympy runs')\nlargest = max\n")
    script = """
from modelwright._lazy import lazy
import sys
before = list(sys.meta_path)
ir = lazy("onnx_ir")
print(ir.plain, before == sys.meta_path)
print(ir._symbolic_shapes.largest(1, 2))
"""
    roots = [str(tmp_path), str(Path(modelwright.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[:3] == ["1 True", "sympy runs", "2"]


def test_a_lazy_module_gives_attributes_and_submodules():
    assert lazy("json").loads("1") == 1
    assert lazy("concurrent").futures.Future
    stand_in = lazy("json")
    assert stand_in.dumps is vars(stand_in)["dumps"], "what was asked for once is looked up no more"
    with pytest.raises(AttributeError):
        _ = lazy("json").nonsense


def test_one_variable_moves_everything(monkeypatch, tmp_path):
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    assert home() == tmp_path
    assert {p.parent for p in (store_dir(), runtimes_dir(), logs_dir())} == {tmp_path}
