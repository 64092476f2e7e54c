"""Builds of several graphs, evaluated as the one model they were made from, beside PyTorch."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from modelwright.errors import InputError, UsageError
from modelwright.evaluation import EvalOptions, evaluate
from modelwright.evaluation._parts import parts_of
from modelwright.models import read_build, resolve
from modelwright.pipeline import build, deliver, resolve_recipe
from modelwright.store import Store
from modelwright.targets import parse_target
from modelwright.vocabulary import Data
from support import builds, models

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).parents[3]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
ROWS, TOKENS = 4, 8


class Ready:
    """A tiny model with saved weights, and its build for the CPU."""

    def __init__(self, name: str, folder: Path, **sizes: int) -> None:
        from bench.families import FAMILIES, source_of

        from modelwright.stages.export import ExportParams, load_model

        config = source_of(next(family for family in FAMILIES if family.name == name), folder / "config")
        self.model = load_model(config, ExportParams(task=config.task, random_weights=True, seed=11)).model
        self.folder, self.out = folder / name, folder / "out"
        self.model.save_pretrained(self.folder)
        source = resolve(str(self.folder))
        recipe = resolve_recipe(source, parse_target("cpu"), file={"export": sizes})
        with Store(folder / "store") as store:
            deliver(build(source, recipe, store=store), self.out, store=store)

    def size(self, component: str, name: str) -> list[int]:
        manifest = json.loads((self.out / "wright.json").read_text())
        inputs = next(part["inputs"] for part in manifest["components"] if part["name"] == component)
        return next(spec["sizes"] for spec in inputs if spec["name"] == name)

    def damaged(self, component: str) -> Path:
        """A copy of the build with noise in the weights of one graph."""
        copy = self.out.with_name("damaged")
        shutil.copytree(self.out, copy)
        path, rng = copy / component / "model.onnx", np.random.default_rng(0)
        model = onnx.load(path)
        for tensor in model.graph.initializer:
            values = numpy_helper.to_array(tensor)
            if values.dtype == np.float32 and values.ndim > 1:
                noisy = values + rng.standard_normal(values.shape).astype(np.float32) * values.std()
                tensor.CopyFrom(numpy_helper.from_array(noisy, tensor.name))
        onnx.save(model, path)
        builds.reseal(copy)
        return copy


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    return Ready("t5", tmp_path_factory.mktemp("t5"), sequence_length=12, cache_length=16)


def greedy(model, given, start, end, steps):
    """What PyTorch writes, without a cache."""
    ids = [start]
    with torch.no_grad():
        while len(ids) <= steps and ids[-1] != end:
            given = {name: torch.as_tensor(array) for name, array in given.items()}
            logits = model(**given, decoder_input_ids=torch.tensor([ids])).logits
            ids.append(int(logits[0, -1].argmax()))
    return ids[1:]


def prompts(length: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    mask = (np.arange(length)[None] < np.arange(length - ROWS, length)[:, None] + 1).astype(np.int64)
    return {"input_ids": rng.integers(3, 90, (ROWS, length)) * mask, "attention_mask": mask}


def written(ready: Ready, arrays: dict[str, np.ndarray], path: Path, end: int = 1) -> Path:
    """The data with PyTorch's own answers as labels, padded with -1."""
    start = ready.model.config.decoder_start_token_id
    labels = np.full((ROWS, TOKENS), -1)
    for row in range(ROWS):
        ids = greedy(ready.model, {name: array[[row]] for name, array in arrays.items()}, start, end, TOKENS)
        labels[row, : len(ids)] = ids
    np.savez(path, **arrays, label=labels)
    return path


def test_a_translation_by_encoder_and_decoder_is_pytorchs(t5, tmp_path):
    data = written(t5, prompts(12), tmp_path / "d.npz")
    options = EvalOptions(settings={"longest": str(TOKENS)})
    found = evaluate(t5.out, t5.folder, Data(str(data)), "translation", options)
    assert (found.values.candidate, found.values.reference) == (pytest.approx(1.0), pytest.approx(1.0))
    assert found.reference.engine.startswith("torch")
    assert dict(found.candidate.nodes_per_ep)["CPUExecutionProvider"] > 100


def test_a_damaged_decoder_shows_in_the_metric(t5, tmp_path):
    data = written(t5, prompts(12), tmp_path / "d.npz")
    settings = {"longest": str(TOKENS), "start": "0", "end": "1"}
    bad = t5.damaged("decoder")
    found = evaluate(bad, t5.out, Data(str(data)), "summarization", EvalOptions(settings=settings))
    assert found.values.reference == pytest.approx(1.0)
    assert found.values.candidate < 0.8


@pytest.mark.parametrize(
    ("task", "settings", "error", "words"),
    [
        (None, {}, UsageError, "graph by graph"),
        ("translation", {}, UsageError, "token an answer starts"),
        ("translation", {"start": "0", "end": "1", "longest": "40"}, InputError, "cache"),
        ("translation", {"start": "nought", "end": "1"}, UsageError, "token ids"),
    ],
)
def test_what_a_build_of_several_graphs_cannot_do_is_said(t5, tmp_path, task, settings, error, words):
    data = tmp_path / "d.npz"
    np.savez(data, **prompts(12), label=np.full((ROWS, 2), 5))
    # A token that never comes, so that the answer would go on for ever.
    settings = {**settings, "end": "98"} if "longest" in settings else settings
    options = EvalOptions(settings=settings, outputs=task is None)
    with pytest.raises(error) as caught:
        evaluate(t5.out, t5.out, Data(str(data)), task, options)
    assert words in " ".join((caught.value.problem, caught.value.cause, caught.value.fix))


@pytest.mark.proof
def test_speech_is_written_by_a_decoder(tmp_path):
    ready = Ready("whisper", tmp_path, cache_length=16)
    sizes = ready.size("encoder", "input_features")
    arrays = {"input_features": np.random.default_rng(1).standard_normal((ROWS, *sizes[1:])).astype(np.float32)}
    end = ready.model.generation_config.eos_token_id
    data = written(ready, arrays, tmp_path / "d.npz", end)
    options = EvalOptions(settings={"longest": str(TOKENS)})
    found = evaluate(ready.out, ready.folder, Data(str(data)), "asr", options)
    assert (found.values.candidate, found.values.reference) == (0.0, 0.0)


@pytest.mark.proof
def test_images_are_sorted_by_two_towers(tmp_path):
    ready = Ready("clip", tmp_path)
    rng = np.random.default_rng(2)
    pixels = rng.standard_normal((24, *ready.size("vision", "pixel_values")[1:])).astype(np.float32)
    length = ready.size("text", "input_ids")[1]
    ids = np.sort(rng.integers(2, 97, (5, length)), axis=1)
    ids[:, -1] = 98
    texts = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    with torch.no_grad():
        tensors = {name: torch.from_numpy(array) for name, array in {"pixel_values": pixels, **texts}.items()}
        labels = ready.model(**tensors).logits_per_image.argmax(dim=1).numpy()
    np.savez(
        tmp_path / "d.npz",
        pixel_values=pixels,
        label=labels,
        **{f"shared.{name}": array for name, array in texts.items()},
    )
    found = evaluate(ready.out, ready.folder, Data(str(tmp_path / "d.npz")), "zero-shot-image-classification")
    assert (found.values.candidate, found.values.reference) == (1.0, 1.0)
    assert {item.output for item in found.outputs} == {"image_embeds", "text_embeds"}
    assert all(item.scores.cosine.worst > 0.99999 for item in found.outputs)


@pytest.mark.proof
def test_a_text_goes_through_prompt_and_steps(tmp_path):
    ready = Ready("qwen3", tmp_path, sequence_length=8, cache_length=24)
    ids = np.random.default_rng(4).integers(3, 90, (ROWS, 20))
    np.savez(tmp_path / "d.npz", input_ids=ids)
    choice = Data(str(tmp_path / "d.npz"))
    found = evaluate(ready.out, ready.folder, choice, "text-generation")
    assert found.values.candidate == pytest.approx(found.values.reference, rel=1e-4)
    assert found.outputs[0].scores.cosine.worst > 0.99999
    # The prompt graph sees eight of twenty tokens; a broken second graph cannot hide behind it.
    broken = evaluate(ready.damaged("decode"), ready.folder, choice, "text-generation")
    assert abs(broken.values.candidate / broken.values.reference - 1) > 0.01


def test_graphs_that_work_together_in_no_known_way_are_refused(tmp_path):
    models.save(models.mlp(), tmp_path / "a")
    builds.write_manifest(tmp_path, ("a",))
    with pytest.raises(InputError, match="several models"):
        parts_of(read_build(tmp_path))
    builds.write_manifest(tmp_path, ("a",), links=[{"from": "a"}])
    with pytest.raises(InputError, match="cannot be read as a build"):
        parts_of(read_build(tmp_path))
