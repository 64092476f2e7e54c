"""The version of a package, read cheaply, is the one that Python would give."""

import importlib.metadata
import zipfile

import pytest

from modelwright._installed import installed


@pytest.mark.parametrize("name", ["numpy", "onnx", "onnxruntime", "Click", "onnx-ir"])
def test_it_is_the_version_of_the_metadata(name: str) -> None:
    assert installed(name) == importlib.metadata.version(name)


def test_what_is_not_there_has_none() -> None:
    assert installed("no-such-package-anywhere") is None


def installed_at(folder, name: str, metadata: str) -> None:
    info = folder / name
    info.mkdir(parents=True)
    (info / "METADATA").write_text(metadata)


def test_of_two_the_first_on_the_path_is_meant(tmp_path, monkeypatch) -> None:
    text = "Metadata-Version: 2.1\nName: Twice.Installed\nVersion: {}\n\nVersion: 9\n"
    installed_at(tmp_path / "late", "twice_installed-1.0.dist-info", text.format("1.0"))
    installed_at(tmp_path / "early", "Twice.Installed-2.0.dist-info", text.format("2.0"))
    monkeypatch.syspath_prepend(tmp_path / "late")
    monkeypatch.syspath_prepend(tmp_path / "early")
    assert installed("twice-installed") == importlib.metadata.version("twice-installed") == "2.0"


def test_what_is_listed_in_another_way_is_found_too(tmp_path, monkeypatch) -> None:
    (tmp_path / "old_way-3.0.egg-info").mkdir()
    (tmp_path / "old_way-3.0.egg-info" / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: old-way\nVersion: 3.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed("old-way") == "3.0"


def test_what_an_archive_holds_is_found_too(tmp_path, monkeypatch) -> None:
    archive = tmp_path / "app.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("zipped_up-4.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: zipped-up\nVersion: 4.0\n")
    monkeypatch.syspath_prepend(archive)
    assert installed("zipped-up") == importlib.metadata.version("zipped-up") == "4.0"


def test_a_folder_without_its_version_does_not_hide_the_package(tmp_path, monkeypatch) -> None:
    (tmp_path / "torn-1.0.dist-info").mkdir()
    (tmp_path / "next").mkdir()
    installed_at(tmp_path / "next", "torn-1.1.dist-info", "Metadata-Version: 2.1\nName: torn\nVersion: 1.1\n")
    monkeypatch.syspath_prepend(tmp_path / "next")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed("torn") == "1.1"
