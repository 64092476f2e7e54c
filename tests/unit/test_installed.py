"""The version of a package, read cheaply, is the one that Python would give."""

import importlib.metadata

import pytest

from modelwright._installed import installed


@pytest.mark.parametrize("name", ["numpy", "onnx", "onnxruntime", "Click", "onnx-ir"])
def test_it_is_the_version_of_the_metadata(name: str) -> None:
    assert installed(name) == importlib.metadata.version(name)


def test_what_is_not_there_has_none() -> None:
    assert installed("no-such-package-anywhere") is None
