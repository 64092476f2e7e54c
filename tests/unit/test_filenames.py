"""Files that are written here can be opened everywhere."""

from pathlib import Path

import pytest

from modelwright._filenames import near, reserved, unportable
from modelwright._output import check_output
from modelwright.errors import StoreError, UsageError
from modelwright.store._names import check_names

RESERVED = ["CON", "nul", "Aux.json", "com1", "LPT9.tar.gz", "prn .txt", "conin$", "COM²", "out.", "out ", "a.. "]


@pytest.mark.parametrize("name", RESERVED)
def test_names_that_windows_keeps_or_changes_are_refused(name, tmp_path):
    assert reserved(name)
    with pytest.raises(StoreError, match="cannot hold"):
        check_names([f"folder/{name}"])
    with pytest.raises(StoreError, match="cannot hold"):
        check_names([f"{name}/model.onnx"])
    with pytest.raises(UsageError):
        check_output(tmp_path / name)


@pytest.mark.parametrize("name", ["a:b", "a\\b", "a?b", 'a"b', "a*", "<a>", "a|b", "a\x1bb", "a\u202eb", "a\udcff"])
def test_files_of_an_artifact_have_names_that_every_system_takes(name):
    assert unportable(name)
    with pytest.raises(StoreError, match="cannot hold"):
        check_names([name])


@pytest.mark.parametrize(
    "name", ["model.onnx", "console", "nulls.json", "com10", "aux_loss", ".hidden", "größe 2.bin", ".."]
)
def test_ordinary_names_are_not(name):
    assert reserved(name) is None
    assert unportable(name) is None


def test_a_result_may_have_a_colon_in_its_name(tmp_path):
    check_output(Path(tmp_path, "2026-11-16T14:05.json"))


def test_a_path_that_is_shown_to_others_says_nothing_about_this_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert near(str(tmp_path / "a" / "b.npz")) == "a/b.npz"
    assert near(str(tmp_path.parent / "elsewhere.npz")) == "elsewhere.npz"
    assert [near(word) for word in ("--target", "cpu", "a/b")] == ["--target", "cpu", "a/b"]
