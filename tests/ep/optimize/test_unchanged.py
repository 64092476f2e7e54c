"""A model in which there is nothing to optimize keeps its file, and nobody is said to have worked on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from ep.optimize.optimize_graphs import graph, save, simple
from ep.optimize.test_at_once import MODELS
from modelwright.pipeline import import_model
from modelwright.plans import ModelInput, left_in_store
from modelwright.stages.optimize import PRESETS, OptimizeOutcome, OptimizeParams, run_optimize
from modelwright.store import Produced, Store, stage_key

PORTABLE = OptimizeParams(passes=PRESETS["portable"])


def plain() -> onnx.ModelProto:
    """Weights in an order that is not that of their names, one of them small."""
    nodes = "a = MatMul(x, z) b = Tanh(a) c = MatMul(b, w) y = Mul(c, k)"
    made = graph(f"(float[2,64] x) => (float[2,64] y) {{ {nodes} }}", z=(64, 64), w=(64, 64), k=(64,))
    made.graph.ClearField("value_info")
    return made


def optimized(model: str | Path, folder: Path) -> tuple[Path, OptimizeOutcome]:
    folder.mkdir()
    return folder / "model.onnx", run_optimize(str(model), str(folder), PORTABLE)


def fired(outcome: OptimizeOutcome) -> list[str]:
    return [step.name for step in outcome.steps if step.fired]


def test_a_model_in_which_nothing_is_to_be_done_keeps_its_file(tmp_path: Path) -> None:
    model = save(plain(), tmp_path / "in")
    path, outcome = optimized(model, tmp_path / "out")
    assert path.samefile(model)
    assert fired(outcome) == []


def refuse_links(self: Path, target: Path) -> None:
    raise OSError("a required privilege is not held by the client")


def test_without_links_it_is_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "symlink_to", refuse_links)
    model = save(plain(), tmp_path / "in")
    path, _ = optimized(model, tmp_path / "out")
    assert not path.samefile(model)
    assert path.read_bytes() == Path(model).read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_what_was_optimized_is_not_written_again(name: str, tmp_path: Path) -> None:
    first, _ = optimized(save(MODELS[name](), tmp_path / "in"), tmp_path / "first")
    second, outcome = optimized(first, tmp_path / "second")
    assert fired(outcome) or onnx.load(second) == onnx.load(first)
    if name in ("many alike", "a layer of BERT"):
        assert second.samefile(first)


def with_remark(model: onnx.ModelProto) -> None:
    model.graph.node[0].doc_string = "File /home/someone/export.py"


def with_notes(model: onnx.ModelProto) -> None:
    model.graph.metadata_props.add(key="from", value="/home/someone")


def with_unusual_weight(model: onnx.ModelProto) -> None:
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == "k")
    numbers = np.frombuffer(weight.raw_data, np.float32)
    weight.ClearField("raw_data")
    weight.float_data.extend(numbers.tolist())


@pytest.mark.parametrize("spoil", [with_remark, with_notes, with_unusual_weight])
def test_what_is_not_to_be_delivered_does_not_stay_because_no_pass_fired(spoil, tmp_path: Path) -> None:
    proto = plain()
    spoil(proto)
    model = save(proto, tmp_path / "in")
    path, outcome = optimized(model, tmp_path / "out")
    assert fired(outcome) == []
    assert not path.is_symlink()
    assert b"someone" not in path.read_bytes()


@pytest.mark.parametrize("name", ["y = Relu(x)", "i = Identity(x) y = Relu(i)"])
def test_what_onnxruntime_declares_is_not_removed_as_if_it_had_been_there(name: str, tmp_path: Path) -> None:
    path, outcome = optimized(save(simple(name), tmp_path / "in"), tmp_path / "out")
    assert "remove_unused" not in fired(outcome)
    assert [item.domain for item in onnx.load(path).opset_import] == [""]


@pytest.mark.parametrize("name", ["y = Relu(x)", "a = HardSwish(x) y = Relu(a)"])
def test_a_domain_that_the_model_declared_for_nothing_is_removed(name: str, tmp_path: Path) -> None:
    proto = simple(name)
    proto.opset_import.add(domain="com.microsoft", version=1)
    path, outcome = optimized(save(proto, tmp_path / "in"), tmp_path / "out")
    assert "remove_unused" in fired(outcome)
    assert [item.domain for item in onnx.load(path).opset_import] == [""]


@pytest.mark.parametrize("links", [True, False])
def test_the_store_keeps_an_unchanged_model_once(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:
        monkeypatch.setattr(Path, "symlink_to", refuse_links)
    with Store(tmp_path / "home/store") as store:
        source = ModelInput(import_model(store, Path(save(plain(), tmp_path / "in")), "it").artifact)
        written: list[str] = []

        def produce(workdir: Path) -> Produced:
            with source.opened(store) as path:
                run_optimize(path, str(workdir), PORTABLE)
            reused = left_in_store(workdir, {"model": source})
            written.extend(item.name for item in workdir.iterdir())
            return Produced(dict.fromkeys(written, "model"), reused=reused)

        key = stage_key(stage="optimize", version="1", libraries={}, inputs={"in": source.digest}, params={})
        result = store.once(key, produce).artifact
        assert written == ([] if links else ["model.onnx"])
        assert [(file.name, file.role) for file in result.files] == [("model.onnx", "model")]
        assert result.path_of("model.onnx").samefile(source.artifact.path_of("model.onnx"))


def test_a_file_that_is_not_in_the_store_is_taken_in(tmp_path: Path) -> None:
    """As where a stage reads a model of the user's in its place."""
    model = Path(save(plain(), tmp_path / "in"))
    before = model.read_bytes()
    with Store(tmp_path / "home/store") as store:

        def produce(workdir: Path) -> Produced:
            run_optimize(str(model), str(workdir), PORTABLE)
            return Produced({"model.onnx": "model"}, reused=left_in_store(workdir, {}))

        key = stage_key(stage="optimize", version="1", libraries={}, inputs={}, params={})
        kept = store.once(key, produce).artifact.path_of("model.onnx")
        assert kept.read_bytes() == model.read_bytes() == before
        assert not kept.is_symlink()
        assert not kept.samefile(model)
