"""Names that leave the folder, or mean two things, are refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelwright.errors import StoreError
from modelwright.store import Store


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/../../x",
        "/etc/x",
        "C:/x",
        "C:x",
        "a\\b",
        "",
        ".",
        "a//b",
        "a/",
        "a\nb",
        "\udcff",
        ".wright-artifact.json",
    ],
)
def test_a_name_outside_the_folder_or_of_unclear_meaning_is_refused(store, key, tmp_path, name: str) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    with pytest.raises(StoreError) as caught:
        store.put({name: source}, key=key(), roles={name: "model"})
    assert caught.value.fix
    assert store.get(key()) is None


@pytest.mark.parametrize(
    "names", [("Model.onnx", "model.onnx"), ("é", "e\u0301"), ("a", "a/b"), ("A", "a/b"), ("ß", "SS")]
)
def test_names_that_collide_on_some_system_are_refused(store, key, tmp_path, names: tuple[str, str]) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    with pytest.raises(StoreError):
        store.put(dict.fromkeys(names, source), key=key(), roles=dict.fromkeys(names, "model"))


def test_spaces_unicode_nested_and_empty_files_come_back_as_they_were(store, key, writer, tmp_path) -> None:
    files = {
        "mein modell/ä 名前 🙂.onnx": b"graph",
        "a b/c d/e.data": b"",
        "UPPER": b"u",
        "..almost": b"dots",
    }
    artifact = store.once(key(), writer(files)).artifact
    out = store.materialize(artifact, tmp_path / "out ü")
    assert {name: (out / name).read_bytes() for name in files} == files


def test_a_link_to_a_folder_is_refused_and_a_link_to_a_file_is_followed(store, key, tmp_path) -> None:
    real, folder = tmp_path / "real", tmp_path / "snapshot"
    real.mkdir()
    (real / "blob").write_bytes(b"weights")
    folder.mkdir()
    (folder / "model.onnx").symlink_to(real / "blob")
    artifact = store.put(folder, key=key(), roles={"model.onnx": "model"})
    assert artifact.path("model").read_bytes() == b"weights"
    assert not artifact.path("model").is_symlink()
    (folder / "more").symlink_to(real)
    with pytest.raises(StoreError, match="more"):
        store.put(folder, key=key(n=2), roles={"model.onnx": "model"})


def test_a_manifest_that_points_outside_is_never_followed(root: Path, key, tmp_path, caplog) -> None:
    """Even with the right digest: as if someone had written the blob and the journal row by hand."""
    import hashlib
    import sqlite3

    evil = b'{"files":[{"digest":"%s","name":"../../evil","role":"model","size":1}],"format":1,"meta":{}}'
    file = hashlib.sha256(b"x").hexdigest()
    data = evil % file.encode()
    digest = hashlib.sha256(data).hexdigest()
    with Store(root) as store:
        (tmp_path / "x").write_bytes(b"x")
        store.put({"x": tmp_path / "x"}, key=key(), roles={"x": "model"})
        (root / "blobs" / digest[:2]).mkdir(exist_ok=True)
        (root / "blobs" / digest[:2] / digest).write_bytes(data)
    journal = sqlite3.connect(root / "journal.sqlite")
    journal.execute("UPDATE entries SET manifest = ?", (digest,))
    journal.execute("INSERT INTO refs SELECT key, ? FROM entries", (digest,))
    journal.execute("INSERT INTO blobs VALUES (?, ?)", (digest, len(data)))
    journal.commit()
    journal.close()
    with Store(root) as store:
        assert store.get(key()) is None
        assert "not a manifest" in caplog.text
        assert (root / "quarantine" / digest).exists()
        assert store.entries() == ()
