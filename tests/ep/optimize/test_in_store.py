"""Weights that lie in files of their own are read where the store keeps them, and are not written again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from modelwright.data import DataSource
from modelwright.graph import external_data, load
from modelwright.pipeline import import_model
from modelwright.plans import ModelInput, left_in_store
from modelwright.stages.optimize import OptimizeParams, run_optimize
from modelwright.stages.quantize import QuantizeParams, run_quantize
from modelwright.stages.validate import Gate, run_validate
from modelwright.store import Produced, Store, stage_key
from support.models import model, save_external, value, weight

X = np.random.default_rng(0).standard_normal((2, 72)).astype(np.float32)


@pytest.fixture(autouse=True)
def no_room_in_the_graph(monkeypatch):
    """Every model is one whose weights do not fit into one file."""
    monkeypatch.setattr("modelwright.graph._write.INLINE_BYTES", 1000)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "home/store") as opened:
        yield opened


def chain(*, turned: bool = False) -> onnx.ModelProto:
    """Products of weights too large to be taken for constants; folding makes new ones of those that are `turned`."""
    nodes, name = [], "x"
    for index in range(3):
        matrix = f"w{index}"
        if turned:
            nodes.append(helper.make_node("Transpose", [matrix], [f"t{index}"], name=f"turn{index}"))
            matrix = f"t{index}"
        nodes.append(helper.make_node("MatMul", [name, matrix], [f"m{index}"], name=f"product{index}"))
        nodes.append(helper.make_node("Identity", [f"m{index}"], [f"i{index}"], name=f"idle{index}"))
        nodes.append(helper.make_node("Tanh", [f"i{index}"], [f"y{index}"], name=f"tanh{index}"))
        name = f"y{index}"
    weights = [weight(f"w{index}", 72, 72, seed=index) for index in range(3)]
    return model(nodes, [value("x", shape=[2, 72])], [value(name, shape=[2, 72])], weights)


def answer(path: str | Path) -> np.ndarray:
    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"x": X})[0]


def optimized(store: Store, source: ModelInput, folder: Path, *passes: str) -> tuple[ModelInput, list[str]]:
    """The result in the store, and the files that were written for it."""
    written: list[str] = []

    def produce(workdir: Path) -> Produced:
        with source.opened(store) as path:
            run_optimize(path, str(workdir), OptimizeParams(passes))
        reused = left_in_store(workdir, {"model": source})
        written.extend(item.name for item in workdir.iterdir())
        return Produced(dict.fromkeys(written, "model"), reused=reused)

    key = stage_key(stage="optimize", version="1", libraries={}, inputs={"in": source.digest}, params=passes)
    return ModelInput(store.once(key, produce).artifact), written


def imported(store: Store, proto: onnx.ModelProto, folder: Path) -> ModelInput:
    folder.mkdir(exist_ok=True)
    return ModelInput(import_model(store, save_external(proto, folder), "it").artifact)


def test_a_graph_is_opened_beside_the_weights_and_leaves_nothing_behind(store, tmp_path):
    source = imported(store, chain(), tmp_path / "in")
    with source.opened(store) as path:
        assert Path(path).parent == store.root
        onnx.checker.check_model(path)
        (data,) = {tensor.path for tensor in external_data(load(path))}
        assert data.is_relative_to(store.root / "blobs")
        assert np.array_equal(answer(path), answer(tmp_path / "in/model.onnx"))
    assert not list(store.root.glob("*.onnx"))
    assert not (tmp_path / "home/scratch").exists()


def test_a_stage_that_changes_the_graph_writes_the_graph(store, tmp_path):
    source = imported(store, chain(), tmp_path / "in")
    before = store.stats().bytes
    result, written = optimized(store, source, tmp_path, "remove_identity")
    assert written == ["model.onnx"]
    assert store.stats().bytes - before < 5000
    ours, theirs = ({file.name: file.digest for file in one.files} for one in (result, source))
    assert ours["model.onnx.data"] == theirs["model.onnx.data"]
    folder = store.materialize(result.artifact, tmp_path / "out")
    assert not [node for node in onnx.load(folder / "model.onnx").graph.node if node.op_type == "Identity"]
    assert np.array_equal(answer(folder / "model.onnx"), answer(tmp_path / "in/model.onnx"))


def test_the_result_of_one_stage_is_opened_in_place_by_the_next(store, tmp_path):
    source = imported(store, chain(), tmp_path / "in")
    once, _ = optimized(store, source, tmp_path, "remove_identity")
    twice, written = optimized(store, once, tmp_path, "remove_identity", "remove_unused")
    assert written == ["model.onnx"]
    assert twice.digest == once.digest


def test_onnxruntime_leaves_the_weights_where_they_are(store, tmp_path):
    source = imported(store, chain(), tmp_path / "in")
    result, written = optimized(store, source, tmp_path, "constant_folding", "remove_identity")
    assert written == ["model.onnx"]
    folder = store.materialize(result.artifact, tmp_path / "out")
    assert np.allclose(answer(folder / "model.onnx"), answer(tmp_path / "in/model.onnx"), atol=1e-6)


def test_a_file_of_which_nothing_is_read_any_more_is_not_kept_for_it(store, tmp_path):
    source = imported(store, chain(turned=True), tmp_path / "in")
    result, _ = optimized(store, source, tmp_path, "constant_folding")
    digests = {file.digest for file in source.files} & {file.digest for file in result.files}
    assert not digests
    folder = store.materialize(result.artifact, tmp_path / "out")
    assert np.allclose(answer(folder / "model.onnx"), answer(tmp_path / "in/model.onnx"), atol=1e-6)


def test_weights_of_a_folder_that_only_looks_like_a_store_are_written(tmp_path):
    folder = tmp_path / "blobs" / "ab"
    folder.mkdir(parents=True)
    path = save_external(chain(), tmp_path, "open-me.onnx")
    place = f"blobs/ab/ab{'0' * 62}"
    (tmp_path / "open-me.onnx.data").rename(tmp_path / place)
    proto = onnx.load(path, load_external_data=False)
    for tensor in proto.graph.initializer:
        next(entry for entry in tensor.external_data if entry.key == "location").value = place
    path.write_bytes(proto.SerializeToString())
    (tmp_path / "out").mkdir()
    run_optimize(str(path), str(tmp_path / "out"), OptimizeParams(("remove_identity",)))
    assert sorted(item.name for item in (tmp_path / "out").iterdir()) == ["model.onnx", "model.onnx.data"]


def test_a_model_with_other_files_beside_it_is_opened_in_a_copy_of_its_folder(store, tmp_path):
    path = save_external(chain(), tmp_path)
    (tmp_path / "words.txt").write_text("more")
    files = {item.name: item for item in (path, tmp_path / "model.onnx.data", tmp_path / "words.txt")}
    key = stage_key(stage="x", version="1", libraries={}, inputs={}, params={})
    kept = store.put(files, key=key, roles=dict.fromkeys(files, "model"))
    with ModelInput(kept).opened(store) as opened:
        assert (Path(opened).parent / "words.txt").read_text() == "more"


def test_what_a_killed_process_left_open_goes_with_the_next_opening(tmp_path):
    root = tmp_path / "store"
    Store(root).close()
    with Store(root) as first:
        first.stats()
    (root / "tmp/dead").mkdir()
    left = root / "open-dead-1.onnx"
    left.write_bytes(b"x")
    with Store(root) as again:
        again.stats()
    assert not left.exists()


@pytest.mark.parametrize("precision", ["w8a8", "fp16", "int4"])
def test_a_model_that_is_opened_in_place_is_quantized_as_one_in_a_folder(store, tmp_path, precision, monkeypatch):
    monkeypatch.setattr("modelwright.graph._write.INLINE_BYTES", 1 << 30)
    source = imported(store, chain(), tmp_path / "in")
    results = []
    with source.opened(store) as opened:
        for number, path in enumerate((opened, str(tmp_path / "in/model.onnx"))):
            folder = tmp_path / str(number)
            folder.mkdir()
            run_quantize(path, str(folder), QuantizeParams(precision, samples=2, block_size=16), DataSource())
            results.append((folder / "model.onnx").read_bytes())
    assert results[0] == results[1]


def test_a_model_that_is_opened_in_place_is_judged_as_one_in_a_folder(store, tmp_path):
    source = imported(store, chain(), tmp_path / "in")
    with source.opened(store) as opened:
        outcome = run_validate(
            opened, str(tmp_path / "in/model.onnx"), str(tmp_path), Gate(precision="fp32"), DataSource()
        )
    assert outcome.passed is True, outcome.checks
