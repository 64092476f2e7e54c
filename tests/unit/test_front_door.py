"""`import modelwright` costs next to nothing, and offers every verb."""

import importlib
import inspect
import subprocess
import sys

import pytest

import modelwright as mw

VERBS = (
    "build",
    "plan",
    "config",
    "inspect",
    "analyze",
    "perf",
    "compare",
    "evaluate",
    "debug",
    "repair",
    "read",
    "publish",
    "pull",
    "verify",
)


def test_importing_the_package_imports_nothing_else_of_it():
    code = "import sys; before = set(sys.modules); import modelwright; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    added = set(eval(done.stdout))
    assert {name for name in added if name.startswith("modelwright")} == {"modelwright"}
    assert not {"numpy", "onnx", "onnxruntime", "pydantic", "click", "rich", "torch"} & added


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_is_a_documented_function_of_keywords(name):
    verb = getattr(mw, name)
    assert inspect.isfunction(verb)
    assert inspect.getdoc(verb)
    places = [item for item in inspect.signature(verb).parameters.values() if item.kind is item.POSITIONAL_OR_KEYWORD]
    assert len(places) <= 2, "what a verb is about has a place; everything else has a name"


def test_a_verb_stays_a_verb_when_its_rooms_are_imported():
    importlib.import_module("modelwright.pipeline")
    importlib.import_module("modelwright.plans")
    assert inspect.isfunction(mw.plan)
    assert inspect.isfunction(mw.build)


def test_all_names_are_offered_and_no_others():
    assert set(mw.__all__) <= set(dir(mw))
    assert all(getattr(mw, name) is not None for name in mw.__all__)
    with pytest.raises(AttributeError, match="no attribute 'biuld'"):
        _ = mw.biuld


def test_values_are_values():
    assert mw.Data("x.npz", scale=1 / 255) == mw.Data("x.npz", scale=1 / 255)
    assert str(mw.Arm("m.onnx", name="one", threads=1, config={"a": "b"})) == "one=m.onnx@threads=1,config.a=b"


def test_support_is_the_verbs_also_after_its_room_was_imported():
    code = (
        "import modelwright as mw\n"
        "import modelwright.support\n"
        "from modelwright.support import SupportRun\n"
        "assert mw.support.run.__module__ == 'modelwright.api.support', mw.support\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
