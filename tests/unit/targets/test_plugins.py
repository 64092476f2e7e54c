"""Plugins are found by name, without importing them."""

import hashlib
import sys
from pathlib import Path

import pytest

import modelwright
from modelwright.errors import UsageError
from modelwright.stages import compile as compiling
from modelwright.targets import LIBRARIES_VARIABLE, catalogue, installed_plugins, library_digest, one_line


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


def test_a_compiled_model_depends_on_the_version_of_every_package_that_can_compile():
    wanted = {name for ep in catalogue().eps if ep.ep_context for name in (ep.package, ep.flavour) if name}
    assert {"onnxruntime-vitisai", "onnxruntime-ep-nv-tensorrt-rtx"} < wanted
    assert set(compiling.COMPILE.packages) == wanted | {"onnxruntime"}


def test_a_library_the_user_named_is_known_by_its_bytes(tmp_path, monkeypatch):
    library = tmp_path / "libqnn.so"
    library.write_bytes(b"one")
    provider = catalogue().find("qnn")
    assert library_digest(provider) is None
    monkeypatch.setenv(LIBRARIES_VARIABLE, f"QNNExecutionProvider={library}")
    assert library_digest(provider) == hashlib.sha256(b"one").hexdigest()
    library.write_bytes(b"two")
    assert library_digest(provider) == hashlib.sha256(b"two").hexdigest()


def test_session_options_are_made_in_one_place_which_switches_telemetry_off():
    room = Path(modelwright.__file__).parent
    makers = [path for path in room.rglob("*.py") if "ort.SessionOptions()" in path.read_text("utf-8")]
    assert [path.relative_to(room).as_posix() for path in makers] == ["targets/_probe.py"]
    assert makers[0].read_text("utf-8").count("ort.SessionOptions()") == 1


def test_what_onnxruntime_has_to_say_is_not_cut_off_by_where_it_says_it():
    place = (
        "/onnxruntime_src/onnxruntime/core/graph/utils.h:46 void onnxruntime::utils::Check(const std::map<std::string, "
    )
    words = f"failed:{place}int>&, const std::function<void(int)>&, bool) const Opset 27 is too new (26 is known)"
    assert (
        one_line(RuntimeError(words))
        == "failed:utils.h:46 onnxruntime::utils::Check: Opset 27 is too new (26 is known)"
    )
    assert one_line(RuntimeError("graph.cc:12 Add Attempt (again)")) == "graph.cc:12 Add Attempt (again)"
