"""What one model type needs is in one file, ours or another package's, and in no shared code."""

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from modelwright.errors import ExecutionError
from modelwright.stages import export
from modelwright.stages.export import ModelFamily, _family

HERE = Path(export.__file__).parent
MINE = ModelFamily(classes={"image-classification": "MineForImages"})


@pytest.fixture
def outside(monkeypatch):
    """An entry point of another package, by the name of a model type."""

    def add(name):
        point = EntryPoint(name, f"{__name__}:MINE", _family.FAMILIES)
        monkeypatch.setattr(_family, "extensions", lambda _: {name: point})
        monkeypatch.setattr("modelwright._extensions.extensions", lambda _: {name: point})

    return add


def test_a_type_is_found_in_any_spelling():
    assert _family.family("mgp-str").classes == _family.family("MGP_STR").classes != {}


def test_a_type_that_needs_nothing_gets_nothing():
    plain = _family.family("resnet")
    assert (plain.classes, plain.answers, plain.parts) == ({}, None, None)


def test_another_package_adds_a_family(outside):
    outside("mine2")
    assert _family.family("mine-2").classes == MINE.classes


def test_another_package_cannot_change_one_that_is_known(outside):
    outside("vilt")
    with pytest.raises(ExecutionError, match="vilt"):
        _family.family("vilt")


def test_no_shared_code_names_a_model_type():
    ours = "|".join(path.stem for path in (HERE / "families").glob("[a-z]*.py"))
    for path in HERE.glob("*.py"):
        assert not re.search(rf"(?i)\b({ours}|mgp-str|clip)\b", path.read_text()), path.name
