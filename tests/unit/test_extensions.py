"""An extension that is broken is named, with the package it comes from; one that would replace ours is refused."""

import sys

import pytest

from modelwright import _extensions
from modelwright._extensions import EPS, PASSES, TASKS, extensions, load_extension
from modelwright.errors import ExecutionError
from modelwright.stages.optimize import PassExtension, find_pass
from modelwright.targets import EpAdapter

CODE = """
from modelwright.stages.optimize import Pass, PassExtension

number = 7
mine = PassExtension(Pass("remove_unused", "rewrite", "cleanup", "Not ours"), lambda model: 0)
other = PassExtension(Pass("other_name", "rewrite", "cleanup", "Another name"), lambda model: 0)
"""
ENTRY_POINTS = """
[modelwright.eps]
number = broken_wright:number
gone = broken_wright:gone
[modelwright.passes]
remove_unused = broken_wright:mine
named = broken_wright:other
"""


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    info = tmp_path / "broken_wright-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-wright\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "broken_wright.py").write_text(CODE)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    caches = (_extensions.extensions, _extensions._entry_point_files)
    for cache in caches:
        cache.cache_clear()
    yield
    monkeypatch.undo()
    sys.modules.pop("broken_wright", None)
    for cache in caches:
        cache.cache_clear()


def test_extensions_are_found_without_importing_them():
    assert list(extensions(EPS)) == ["gone", "number"]
    assert extensions(TASKS) == {}
    assert "broken_wright" not in sys.modules


@pytest.mark.parametrize(
    ("name", "why"), [("gone", "has no attribute 'gone'"), ("number", "is a int, not a EpAdapter")]
)
def test_one_that_cannot_be_used_says_why_and_whose_it_is(name, why):
    with pytest.raises(ExecutionError, match="of broken-wright cannot be used") as caught:
        load_extension(EPS, name, EpAdapter)
    assert why in caught.value.cause


def test_a_pass_of_ours_is_not_replaced():
    assert "Not ours" not in find_pass("remove_unused").summary
    assert load_extension(PASSES, "remove_unused", PassExtension).row.summary == "Not ours"


def test_a_pass_under_another_name_than_its_own_is_refused():
    with pytest.raises(ExecutionError, match="cannot be used"):
        find_pass("named")
