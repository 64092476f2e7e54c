"""`build --shared`: several targets in one folder, large files that are the same there once."""

import shutil

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import modelwright as mw
from modelwright.errors import UsageError
from modelwright.store import Store, _fs

TARGETS = ["cpu", "dml-gpu", "cuda-gpu"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Two matrices of 256 KiB."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((256, 256), np.float32) / 16, name) for name in ("a", "b")]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"], name="first"),
        helper.make_node("Tanh", ["h"], ["t"], name="tanh"),
        helper.make_node("MatMul", ["t", "b"], ["y"], name="second"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 256]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], weights)
    path = tmp_path_factory.mktemp("layout") / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("home") / "store") as opened:
        yield opened


def build(model, store, output, targets=TARGETS, **options):
    return mw.build(model, targets, output=output, store=store, **{"shared": True, **options})


def inodes(output):
    return {folder.name: (folder / "model.onnx").stat().st_ino for folder in output.iterdir() if folder.is_dir()}


def weight(output):
    """Bytes on disk."""
    stats = {stat.st_ino: stat.st_size for path in output.rglob("*") if path.is_file() and (stat := path.stat())}
    return sum(stats.values())


@pytest.fixture
def shared(model, store, tmp_path):
    build(model, store, tmp_path / "out")
    return tmp_path / "out"


def test_what_targets_have_in_common_is_there_once_and_cannot_be_edited_by_mistake(shared, model, store, tmp_path):
    assert set(inodes(shared)) == {"cpu", "dml-gpu", "cuda-gpu"}
    assert len(set(inodes(shared).values())) == 1
    assert weight(shared) < 1.3 * (model.stat().st_size + 20_000)
    assert not (shared / "cpu/model.onnx").stat().st_mode & 0o222
    # Nothing of it is the store's own file.
    blobs = {path.stat().st_ino for path in store.root.rglob("*") if path.is_file()}
    assert blobs.isdisjoint(inodes(shared).values())


def test_every_folder_is_whole_by_itself_wherever_it_is_moved(shared, tmp_path):
    moved = shared.rename(tmp_path / "elsewhere")
    assert len(set(inodes(moved).values())) == 1
    shutil.copytree(moved / "dml-gpu", tmp_path / "alone")
    shutil.rmtree(moved / "cpu")
    for folder in (moved / "cuda-gpu", tmp_path / "alone"):
        assert mw.open_build(folder).path == folder
        onnx.checker.check_model(str(folder / "model.onnx"))


def test_the_same_command_again_leaves_all_as_it_is(shared, model, store):
    before = {path: path.stat().st_mtime_ns for path in shared.rglob("*")}
    build(model, store, shared)
    assert {path: path.stat().st_mtime_ns for path in shared.rglob("*")} == before


def test_a_target_that_is_built_later_shares_with_those_that_are_there(shared, model, store):
    build(model, store, shared, ["webgpu-gpu"])
    assert len(inodes(shared)) == 4
    assert len(set(inodes(shared).values())) == 1


def test_another_precision_is_a_file_of_its_own_and_leaves_the_others_alone(shared, model, store):
    before = inodes(shared)
    build(model, store, shared, ["cuda-gpu"], precision="fp16")
    after = inodes(shared)
    assert after["cuda-gpu"] != before["cuda-gpu"]
    assert (after["cpu"], after["dml-gpu"]) == (before["cpu"], before["dml-gpu"])
    for name in after:
        mw.open_build(shared / name)


def test_copies_become_shared_and_shared_ones_copies(model, store, tmp_path):
    out = tmp_path / "out"
    build(model, store, out, shared=False)
    assert len(set(inodes(out).values())) == 3
    build(model, store, out)
    assert len(set(inodes(out).values())) == 1
    build(model, store, out, shared=False)
    assert len(set(inodes(out).values())) == 3
    assert (out / "cpu/model.onnx").stat().st_mode & 0o200


def test_a_file_that_somebody_edited_is_not_shared_with_others(shared, model, store):
    edited = shared / "cpu/model.onnx"
    edited.unlink()
    edited.write_bytes(b"mine")
    shutil.rmtree(shared / "dml-gpu")
    build(model, store, shared, ["dml-gpu"])
    assert inodes(shared)["dml-gpu"] == inodes(shared)["cuda-gpu"]
    assert edited.read_bytes() == b"mine"
    with pytest.raises(UsageError, match="Will not replace"):
        build(model, store, shared, ["cpu"])


@pytest.mark.parametrize("step", ["link model.onnx", "chmod model.onnx", "rename"])
def test_a_kill_on_the_way_leaves_whole_folders_and_the_next_run_finishes(model, store, tmp_path, monkeypatch, step):
    class Killed(BaseException):
        pass

    seen = []

    def kill(name):
        seen.append(name)
        # The first folder is written; the second one is being linked.
        if name.startswith(step) and any(word.startswith("link model.onnx") for word in seen):
            raise Killed

    out = tmp_path / "out"
    monkeypatch.setattr(_fs, "hook", kill)
    with pytest.raises(Killed):
        build(model, store, out)
    monkeypatch.setattr(_fs, "hook", None)
    for folder in out.iterdir():
        if (folder / "wright.json").is_file():
            mw.open_build(folder)
    build(model, store, out)
    assert sorted(item.name for item in out.iterdir()) == sorted(TARGETS)
    assert len(set(inodes(out).values())) == 1


def test_a_disk_without_links_is_said_before_a_copy_is_made_instead(model, store, tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(_fs, "link", refuse)
    with pytest.raises(UsageError, match="cannot keep one file in two folders"):
        build(model, store, tmp_path / "out")
    mw.open_build(tmp_path / "out" / "cpu")


def test_sharing_without_a_folder_is_refused(model, store):
    with pytest.raises(UsageError, match="nothing would be shared"):
        build(model, store, None)


def test_the_command_takes_it_too(model, tmp_path, wright):
    out = tmp_path / "out"
    assert wright("build", model, "--target", "cpu", "--shared", "-o", out, "--json").code == 0
    assert (out / "cpu/model.onnx").is_file()
