"""What is not an ONNX model is named for what it is; a damaged one is never summarised as another."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import pickle
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from modelwright import graph
from modelwright.errors import InputError
from modelwright.graph._skeleton import LARGE, skeleton
from support import models


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", "weights")
    return buffer.getvalue()


def _safetensors() -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(8)


STRANGERS = {
    "text": (b"hello, this is a readme\n", "text file"),
    "text that begins like a field": (b"Bonjour\n", "text file"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS"),
    "html": (b"<!DOCTYPE html><html><body>Log in</body></html>", "HTML"),
    "json": (b'{"model_type": "bert"}', "JSON"),
    "xml": (b'<?xml version="1.0"?><net name="m"/>', "XML"),
    "zip": (_zip(), "ZIP"),
    "pickle": (pickle.dumps({"weights": [1.0, 2.0]}), "pickle"),
    "safetensors": (_safetensors(), "safetensors"),
    "gguf": (b"GGUF\x03\0\0\0" + bytes(64), "GGUF"),
    "ort": (b"\x18\0\0\0ORTM" + bytes(64), "ORT-format"),
    "tflite": (b"\x1c\0\0\0TFL3" + bytes(64), "TensorFlow Lite"),
    "zeros": (bytes(4096), "does not begin like one"),
    "raw weights": (struct.pack("<256f", *[0.1] * 256), "does not begin like one"),
    "an unknown protobuf": (b"\x50\x01\x5a\x03abc", "does not begin like one"),
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_a_stranger_is_named_with_a_next_step(kind: str, tmp_path: Path) -> None:
    content, words = STRANGERS[kind]
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        graph.load(path)
    assert caught.value.problem == "model.onnx is not an ONNX model"
    assert words in caught.value.cause
    assert caught.value.fix


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\x08\x0a", "cut short"),
        (b"\x08\x0a\x12\x05tests", "cut short"),
        (b"\x08\x0a\x3a\x00\x42\x02\x10\x15", "empty graph"),
        (b"\x12\x05tests", "not an ONNX model"),
    ],
)
def test_bytes_that_parse_as_an_empty_message_are_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        graph.load(path)


def test_a_large_stranger_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(_safetensors())
    os.truncate(path, 20 * 2**30)
    with pytest.raises(InputError) as caught:
        graph.load(path)
    assert "safetensors" in caught.value.cause


def test_one_file_over_2_gib_is_sent_to_external_data(tmp_path: Path) -> None:
    path = models.save(models.mlp(), tmp_path)
    os.truncate(path, 3 * 2**30)
    with pytest.raises(InputError) as caught:
        graph.load(path)
    assert "external data" in caught.value.fix


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    models.save(models.mlp(), tmp_path, "real.onnx")
    with pytest.raises(InputError, match="does not exist") as caught:
        graph.load(tmp_path / "reel.onnx")
    assert "real.onnx" in caught.value.fix


def test_a_folder_names_the_models_inside(tmp_path: Path) -> None:
    models.save(models.mlp(), tmp_path, "inside.onnx")
    with pytest.raises(InputError, match="is a folder") as caught:
        graph.load(tmp_path)
    assert "inside.onnx" in caught.value.fix


def test_a_broken_link_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").symlink_to(tmp_path / "blobs" / "gone")
    with pytest.raises(InputError, match="broken link"):
        graph.load(tmp_path / "model.onnx")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_an_input_error(tmp_path: Path) -> None:
    path = models.save(models.mlp(), tmp_path)
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be read"):
        graph.load(path)


SAMPLES = {
    "float": models.mlp(),
    "large": models.mlp(hidden=20_000),
    "two domains": models.matmul_nbits(),
    "subgraphs": models.branching(),
    "functions": models.with_function(),
}
BYTES = {name: proto.SerializeToString() for name, proto in SAMPLES.items()}


def _inspect(data: bytes) -> tuple[graph.ModelSummary, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(data)
        loaded = graph.load(path)
        found = graph.summary(loaded)
        return dataclasses.replace(found, path=Path(), files=(), total_bytes=0), graph.fingerprint(loaded)


@given(name=st.sampled_from(sorted(SAMPLES)), data=st.data())
@settings(max_examples=400, deadline=None)
def test_a_cut_at_any_byte_is_refused_or_told(name: str, data: st.DataObject) -> None:
    whole = BYTES[name]
    # The border of every top-level field lies in the last bytes, after the graph; look there as often.
    tail = st.integers(max(0, len(whole) - 120), len(whole) - 1)
    cut = data.draw(tail | st.integers(0, len(whole) - 1))
    try:
        found, _ = _inspect(whole[:cut])
    except InputError:
        return
    assert found.warnings, f"{name} cut at {cut} of {len(whole)} was summarised without a word"


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - {"large"}))
def test_every_cut_point_of_a_small_model(name: str) -> None:
    whole = BYTES[name]
    silent = []
    for cut in range(len(whole)):
        try:
            if not _inspect(whole[:cut])[0].warnings:
                silent.append(cut)
        except InputError:
            continue
    assert silent == []


def test_a_cut_that_only_loses_metadata_keeps_summary_and_fingerprint() -> None:
    """The one undetectable cut, just before trailing metadata, loses nothing that we report."""
    proto = models.mlp()
    whole = proto.SerializeToString()
    entry = proto.metadata_props.add()
    entry.key, entry.value = "note", "text"
    longer = proto.SerializeToString()
    assert longer.startswith(whole)
    assert _inspect(longer) == _inspect(whole)


@given(name=st.sampled_from(sorted(set(SAMPLES) - {"large"})), data=st.data())
@settings(max_examples=400, deadline=None)
def test_damaged_bytes_give_an_answer_or_an_input_error(name: str, data: st.DataObject) -> None:
    damaged = bytearray(BYTES[name])
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        _inspect(bytes(damaged))


def test_a_large_inline_model_keeps_its_weights_on_disk(tmp_path: Path) -> None:
    loaded = graph.load(models.save(SAMPLES["large"], tmp_path))
    assert not loaded.model.graph.initializer[0].HasField("raw_data")
    assert loaded.model.graph.initializer[0].dims == [4, 20_000]
    span = loaded.on_disk[0]
    original = SAMPLES["large"].graph.initializer[0].raw_data
    assert loaded.path.read_bytes()[span.offset : span.offset + span.length] == original


def _replaced(path: Path, content: bytes) -> None:
    """As an archive is unpacked over the one before: of the same size, and of the time that it says."""
    status = path.stat()
    assert status.st_size == len(content)
    new = path.with_suffix(".new")
    new.write_bytes(content)
    os.utime(new, ns=(status.st_mtime_ns, status.st_mtime_ns))
    new.replace(path)


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(models.mlp().SerializeToString())
    before = graph.shared(path)
    other = models.mlp()
    other.graph.name = "z" * len(other.graph.name)
    _replaced(path, other.SerializeToString())
    assert before.model.graph.name != graph.shared(path).model.graph.name == other.graph.name


def test_weights_of_a_file_that_was_replaced_are_not_taken_for_those_of_the_one_before(tmp_path: Path) -> None:
    loaded = graph.load(models.save(SAMPLES["large"], tmp_path))
    _replaced(loaded.path, loaded.path.read_bytes()[::-1])
    with pytest.raises(InputError, match="changed since it was opened"):
        graph.fingerprint(loaded)


def test_nothing_is_written_beside_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "read only"
    folder.mkdir()
    path = models.save_external(models.mlp(hidden=20_000), folder)
    for file in folder.iterdir():
        file.chmod(0o444)
    before = [(file.name, file.stat()) for file in sorted(folder.iterdir())]
    folder.chmod(0o555)
    try:
        loaded = graph.load(path)
        assert graph.summary(loaded).precision.label == "fp32"
        assert graph.fingerprint(loaded)
        after = [(file.name, file.stat()) for file in sorted(folder.iterdir())]
    finally:
        folder.chmod(0o755)
    stamps = [
        [(name, status.st_size, status.st_mtime_ns, status.st_ino) for name, status in listing]
        for listing in (before, after)
    ]
    assert stamps[0] == stamps[1]


def _many_small_weights() -> bytes:
    """A file larger than what stays on disk, of weights that are not."""
    weights = [numpy_helper.from_array(np.full(256, index, np.float32), f"w{index}") for index in range(100)]
    nodes = [helper.make_node("Add", ["x", f"w{index}"], [f"y{index}"], name=f"node{index}") for index in range(100)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [256]) for name in ("x", "y99")]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)).SerializeToString()


def test_where_no_weight_is_large_the_file_is_taken_as_it_is() -> None:
    data = _many_small_weights()
    assert len(data) > LARGE
    found = skeleton(memoryview(data))
    assert found is not None
    assert (found.data, found.left_out) == (data, {})


@given(st.integers(0, len(_many_small_weights()) - 1))
def test_a_file_that_is_cut_is_not_walked_to_its_end(length: int) -> None:
    found = skeleton(memoryview(_many_small_weights()[:length]))
    # Between two fields of the model nothing is seen to lack.
    assert found is None or found.data == _many_small_weights()[:length]


@pytest.mark.parametrize("name", [b"node7", b"Add", b"y7"])
def test_a_damaged_name_is_found_in_a_node_of_plain_ones(name: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(_many_small_weights().replace(name, b"\xff" + name[1:], 1))
    with pytest.raises(InputError, match="damaged"):
        graph.load(path)
