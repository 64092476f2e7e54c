"""External weights are found beside the model, and anything else is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper

from modelwright import graph
from modelwright.errors import InputError
from support import models


def pointing_at(folder: Path, name: str = "model.onnx", tensor: int = 0, **entries: object) -> Path:
    """An external model whose entry is overwritten; None removes it."""
    path = models.save_external(models.mlp(), folder, name)
    proto = onnx.load(str(path), load_external_data=False)
    weight = proto.graph.initializer[tensor]
    merged = {item.key: item.value for item in weight.external_data} | entries
    del weight.external_data[:]
    for key, text in merged.items():
        if text is not None:
            weight.external_data.add(key=key, value=str(text))
    path.write_bytes(proto.SerializeToString())
    return path


def refused(path: Path) -> InputError:
    """Both readers of external data must refuse, in the same words."""
    loaded = graph.load(path)
    with pytest.raises(InputError) as caught:
        graph.summary(loaded)
    with pytest.raises(InputError) as again:
        graph.fingerprint(loaded)
    assert str(again.value) == str(caught.value)
    return caught.value


def test_every_external_tensor_is_listed(tmp_path: Path) -> None:
    found = graph.external_data(graph.load(models.save_external(models.mlp(), tmp_path)))
    assert [(item.name, item.dtype, item.shape) for item in found] == [
        ("w1", "float32", (4, 8)),
        ("b1", "float32", (8,)),
        ("w2", "float32", (8, 3)),
    ]
    assert {item.path for item in found} == {tmp_path / "model.onnx.data"}


def test_tensors_in_attributes_and_subgraphs_are_listed(tmp_path: Path) -> None:
    proto = models.branching()
    constant = helper.make_node("Constant", [], ["h2"], value=models.weight("c", 2, 4))
    proto.graph.node[1].attribute[0].g.node.append(constant)
    found = graph.external_data(graph.load(models.save_external(proto, tmp_path)))
    assert [item.name for item in found] == ["w", "c"]


def test_missing_data_is_named(tmp_path: Path) -> None:
    path = models.save_external(models.mlp(), tmp_path)
    (tmp_path / "model.onnx.data").unlink()
    error = refused(path)
    assert error.problem == "model.onnx.data is missing"
    assert "beside model.onnx" in error.fix


@pytest.mark.parametrize(
    "location",
    ["../secret.bin", "sub/../../secret.bin", "..\\secret.bin", "sub\\..\\..\\secret.bin", "..", "./../x"],
)
def test_a_location_outside_the_folder_is_refused(location: str, tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(128))
    folder = tmp_path / "model"
    folder.mkdir()
    error = refused(pointing_at(folder, location=location))
    assert "leads outside" in error.cause


@pytest.mark.parametrize("location", ["/etc/hostname", "C:\\data\\w.bin", "C:w.bin", "\\\\host\\share\\w", "\\w"])
def test_an_absolute_location_is_refused(location: str, tmp_path: Path) -> None:
    assert "absolute path" in refused(pointing_at(tmp_path, location=location)).cause


def test_an_absolute_location_inside_the_folder_is_refused_too(tmp_path: Path) -> None:
    assert "absolute path" in refused(pointing_at(tmp_path, location=tmp_path / "model.onnx.data")).cause


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"location": ""}, "names no file"),
        ({"location": None}, "names no file"),
        ({"location": "."}, "names no file"),
        ({"location": "*/_ORT_MEM_ADDR_/*"}, "memory"),
        ({"offset": -4}, "not a number"),
        ({"offset": "many"}, "not a number"),
        ({"length": -128}, "not a number"),
        ({"length": 64}, "takes 128"),
        ({"offset": 10**9}, "the file at"),
        ({"offset": 10**30}, "the file at"),
        ({"offset": 8}, "overlaps"),
    ],
)
def test_impossible_entries_are_refused(entries: dict[str, object], words: str, tmp_path: Path) -> None:
    # The bias of 32 bytes starts after the first weight; a shifted first weight runs into it.
    assert words in refused(pointing_at(tmp_path, **entries)).cause


def test_truncated_data_is_refused(tmp_path: Path) -> None:
    path = models.save_external(models.mlp(), tmp_path)
    data = tmp_path / "model.onnx.data"
    os.truncate(data, data.stat().st_size - 1)
    error = refused(path)
    assert error.problem == "model.onnx.data is cut short"


def test_a_folder_in_place_of_the_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    assert "not a regular file" in refused(pointing_at(tmp_path, location="weights")).cause


def test_two_tensors_may_share_one_range(tmp_path: Path) -> None:
    proto = models.mlp()
    twin = proto.graph.initializer.add()
    twin.CopyFrom(proto.graph.initializer[0])
    twin.name = "tied"
    path = models.save_external(proto, tmp_path)
    saved = onnx.load(str(path), load_external_data=False)
    del saved.graph.initializer[3].external_data[:]
    saved.graph.initializer[3].external_data.extend(saved.graph.initializer[0].external_data)
    path.write_bytes(saved.SerializeToString())
    assert len(graph.external_data(graph.load(path))) == 4


def test_a_missing_length_means_the_size_of_the_tensor(tmp_path: Path) -> None:
    path = pointing_at(tmp_path, length=None)
    assert graph.external_data(graph.load(path))[0].length == 128


def hub_cache(tmp_path: Path) -> tuple[Path, Path]:
    """A model as the Hub's own cache keeps it: the snapshot's folder, and the blob of its weights."""
    blobs, snapshot = tmp_path / "models--a--b" / "blobs", tmp_path / "models--a--b" / "snapshots" / "abc" / "onnx"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    models.save_external(models.mlp(), blobs)
    (blobs / "model.onnx").rename(blobs / ("1" * 64))
    (blobs / "model.onnx.data").rename(blobs / ("2" * 64))
    (snapshot / "model.onnx").symlink_to(f"../../../blobs/{'1' * 64}")
    (snapshot / "model.onnx.data").symlink_to(f"../../../blobs/{'2' * 64}")
    return snapshot, blobs / ("2" * 64)


def test_the_hubs_cache_with_its_links_works(tmp_path: Path) -> None:
    """It keeps blobs in one folder and links to them from another: the model's folder is the link's."""
    snapshot, weights = hub_cache(tmp_path)
    loaded = graph.load(snapshot / "model.onnx")
    assert graph.summary(loaded).files[1].name == "model.onnx.data"
    assert graph.fingerprint(loaded) == graph.fingerprint(graph.load(models.save(models.mlp(), tmp_path)))
    weights.unlink()
    assert "link" in refused(snapshot / "model.onnx").cause


def test_a_blob_of_the_hubs_cache_that_links_further_is_refused(tmp_path: Path) -> None:
    snapshot, weights = hub_cache(tmp_path)
    weights.rename(tmp_path / "elsewhere")
    weights.symlink_to(tmp_path / "elsewhere")
    assert "leads outside" in refused(snapshot / "model.onnx").cause


@pytest.mark.parametrize(
    "target", ["../blobs/" + "2" * 64, "../secret.bin", "{tmp}/secret.bin", "/dev/zero", "../gone"]
)
def test_a_link_that_leaves_the_folder_is_refused(target: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "blobs").mkdir()
    path = models.save_external(models.mlp(), folder)
    for place in (tmp_path / "secret.bin", tmp_path / "blobs" / ("2" * 64)):
        place.write_bytes((folder / "model.onnx.data").read_bytes())
    (folder / "model.onnx.data").unlink()
    (folder / "model.onnx.data").symlink_to(target.format(tmp=tmp_path))
    assert "leads outside" in refused(path).cause


def test_a_linked_folder_that_leaves_the_models_folder_is_refused(tmp_path: Path) -> None:
    folder, other = tmp_path / "model", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (other / "w.bin").write_bytes(bytes(4096))
    (folder / "sub").symlink_to(other)
    assert "leads outside" in refused(pointing_at(folder, location="sub/w.bin")).cause


def test_a_link_inside_the_folder_and_a_folder_that_is_a_link_work(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    models.save_external(models.mlp(), real)
    (real / "model.onnx.data").rename(real / "weights")
    (real / "model.onnx.data").symlink_to("weights")
    (tmp_path / "link").symlink_to(real)
    assert graph.summary(graph.load(tmp_path / "link" / "model.onnx")).files[1].name == "model.onnx.data"


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    path = pointing_at(tmp_path, location="pipe")
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refused(path).cause
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="is not a file"):
        graph.load(path)


def test_the_working_folder_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models.save_external(models.mlp(), tmp_path)
    monkeypatch.chdir(tmp_path)
    loaded = graph.load("model.onnx")
    monkeypatch.chdir("/")
    assert graph.fingerprint(loaded)


BIG = int(2.5 * 2**30)
MEASURE = """
import sys
from pathlib import Path
from modelwright import graph
from modelwright.worker._usage import peak_rss_bytes
loaded = graph.load(sys.argv[1])
if sys.argv[2] == "summary":
    found = graph.summary(loaded)
    assert found.over_2gib and found.parameters == int(sys.argv[3]) // 4
    assert found.files[1].size_bytes == int(sys.argv[3])
else:
    graph.fingerprint(loaded)
# Not ru_maxrss: a child begins with what its parent used.
counters = Path("/proc/self/io")
read = counters.read_text().split()[1] if counters.exists() else 0
print(read, peak_rss_bytes())
"""


@pytest.mark.parametrize("what", ["summary", pytest.param("fingerprint", marks=pytest.mark.slow)])
def test_a_model_over_2_gib_is_read_without_loading_it(what: str, tmp_path: Path) -> None:
    proto = models.model([helper.make_node("Identity", ["w"], ["y"])], [], [models.value("y", shape=[BIG // 4])])
    weight = proto.graph.initializer.add(name="w", data_type=models.FLOAT, dims=[BIG // 4])
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").touch()
    os.truncate(tmp_path / "w.bin", BIG)
    path = models.save(proto, tmp_path)
    command = [sys.executable, "-c", MEASURE, str(path), what, str(BIG)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    read, peak = map(int, done.stdout.split())
    print(f"{what}: {read / 2**20:.0f} MB read, peak {peak / 2**20:.0f} MB")
    assert peak < 300 * 2**20
    assert read < (BIG // 10 if what == "summary" else 2 * BIG)
