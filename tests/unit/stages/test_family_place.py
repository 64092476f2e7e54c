"""Where the family of a model type lies, without importing it."""

import sys

import pytest

from modelwright import _extensions
from modelwright.stages.export import family_place


@pytest.fixture
def another_package(tmp_path, monkeypatch):
    (tmp_path / "acme_family.py").write_text("raise RuntimeError('it was imported')\n")
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[modelwright.families]\nacmetype = acme_family:FAMILY\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = (_extensions.extensions, _extensions._entry_point_files)
    for one in found:
        one.cache_clear()
    yield tmp_path / "acme_family.py"
    for one in found:
        one.cache_clear()


def test_ours_is_found_by_the_model_type_however_it_is_spelt():
    assert family_place("mgp-str").name == "mgpstr.py"
    assert family_place("mgp_str") == family_place("MGPSTR")
    assert family_place("bert") is None


def test_that_of_another_package_is_found_and_not_imported(another_package):
    assert family_place("acme-type") == another_package
    assert "acme_family" not in sys.modules
