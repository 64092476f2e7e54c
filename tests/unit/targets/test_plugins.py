"""Plugins are found by name, without importing them."""

import sys

import pytest

from modelwright.errors import UsageError
from modelwright.targets import LIBRARIES_VARIABLE, installed_plugins


@pytest.fixture
def fake_distribution(tmp_path, monkeypatch):
    def make(name: str) -> None:
        folder = tmp_path / f"{name.replace('-', '_')}-1.2.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")

    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    return make


def test_a_package_named_by_the_convention_is_a_plugin(fake_distribution):
    fake_distribution("onnxruntime-ep-acme")
    plugin = next(p for p in installed_plugins() if p.label == "onnxruntime-ep-acme")
    assert (plugin.module, plugin.version) == ("onnxruntime_ep_acme", "1.2")
    assert "onnxruntime_ep_acme" not in sys.modules


@pytest.mark.parametrize("name", ["onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-extensions"])
def test_flavours_and_companions_are_not_plugins(fake_distribution, name):
    fake_distribution(name)
    assert name not in [plugin.label for plugin in installed_plugins()]


def test_libraries_can_be_named_in_the_environment(monkeypatch):
    monkeypatch.setenv(LIBRARIES_VARIABLE, "AcmeExecutionProvider=/opt/acme/libacme.so")
    plugin = installed_plugins()[-1]
    assert (plugin.ep_name, plugin.library) == ("AcmeExecutionProvider", "/opt/acme/libacme.so")


def test_an_unreadable_environment_entry_is_a_usage_error(monkeypatch):
    monkeypatch.setenv(LIBRARIES_VARIABLE, "just-a-path.so")
    with pytest.raises(UsageError, match=r"cannot read 'just-a-path\.so'"):
        installed_plugins()
