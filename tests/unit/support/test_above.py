"""The other runtime that an artifact has to open in."""

import pytest

from modelwright.errors import ExecutionError
from modelwright.support import _above
from modelwright.worker import Runtime


@pytest.mark.parametrize(
    ("versions", "found"),
    [
        ({}, None),
        ({"broken": None}, None),
        ({"same": "1.31.1"}, None),
        ({"other": "1.24.1"}, "other"),
        ({"broken": None, "same": "1.31.1", "without": "", "other": "1.24.1"}, "other"),
    ],
)
def test_it_is_one_of_this_machine_that_is_whole_and_has_another_onnxruntime(versions, found, monkeypatch, tmp_path):
    def find(name):
        if versions[name] is None:
            raise ExecutionError("broken", cause="its installation did not finish", fix="create it again")
        held = (("onnxruntime", versions[name]),) if versions[name] else ()
        return Runtime(name, tmp_path / "python", versions=held)

    monkeypatch.setattr(_above, "runtime_names", lambda: tuple(versions))
    monkeypatch.setattr(_above, "find_runtime", find)
    monkeypatch.setattr(_above, "installed", lambda _: "1.31.1")
    chosen = _above._another_runtime()
    assert (None if chosen is None else chosen.name) == found
