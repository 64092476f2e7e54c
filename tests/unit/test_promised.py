"""The check that holds every build of the tests to its word finds one that does not keep it."""

import json

import pytest

from support.promised import delivered_as_computed


def manifest(folder, **check):
    said = {"passed": True, "opened": True, "samples": 2, "on_target": 5, **check}
    stages = [{"stage": "check", "outcome": said}]
    found = {"passed": True, "recipe": {"check": {"target": "qnn-npu"}}, "components": [{"stages": stages}]}
    (folder / "wright.json").write_text(json.dumps(found))


def test_a_build_that_its_target_computed_keeps_its_word(tmp_path):
    manifest(tmp_path)
    delivered_as_computed(tmp_path)


@pytest.mark.parametrize("broken", [{"passed": None}, {"opened": False}, {"samples": 0}, {"on_target": 0}])
def test_one_that_passed_without_its_target_is_found(tmp_path, broken):
    manifest(tmp_path, **broken)
    with pytest.raises(AssertionError, match="passed"):
        delivered_as_computed(tmp_path)


def test_what_is_no_build_says_nothing(tmp_path):
    (tmp_path / "wright.json").write_text("{")
    delivered_as_computed(tmp_path)
