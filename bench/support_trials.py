"""Real models on the ladder: each trial is one `support.run`, from the claim to its last level, and one review of it.

    python -m bench.support_trials [NAME ...]

Trained models of `bench.zoo`, a ViT and a T5 that are trained here in a minute, and three families from their
configurations with seeded weights. Each has a folder of its own beside the store, so a run that was ended goes on, and
what is on record is not measured again. A trial that is begun with another version of modelwright begins anew. Run it
in a tree that is its commit: evidence of any other tree is stale for every review, and the result says so.

A trial is no test that has to come out well. Some are there for what the gate and the rows say where something is
wrong: what a review says of those is right when it is not `approve`.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import modelwright as mw
from bench import written, zoo
from modelwright import home
from modelwright.errors import WrightError
from modelwright.support import SupportReview, SupportRun, this_tool

NAME = "support_trials"
METRICS = Path(__file__).with_name("support_metrics.py")
DEMO = Path(__file__).parents[1] / "demo"
_EVERYDAY = 'precision = "w8a8"\n[quantize]\nop_types = ["all"]\nper_channel = false\npairs = "all"\n'
Asked = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """`make` gives what `support.run` is asked; `recipe` is the contribution, as text. The number of seeds of the gate
    is part of the claim: five where a build takes seconds, fewer where a model is exported for each."""

    make: Callable[[Path], Asked]
    more: Mapping[str, Any] = field(default_factory=dict)
    recipe: str | None = None
    redrawn: int = 5
    """With how many seeds the reviewer asks the gate."""


def run(*names: str) -> dict[str, Any]:
    rows = {row["trial"]: row for row in written.read(NAME).get("rows", [])}
    for name in names or TRIALS:
        began, tool = time.monotonic(), this_tool()
        row = {"trial": name, "tool": tool.digest[:12], "commit": tool.commit, "dirty": tool.dirty}
        try:
            used = cpu_s()
            out, asked, found = _run(TRIALS[name], name)
            row |= {**told(found), "cpu_seconds": round(cpu_s() - used, 1)}
            used = cpu_s()
            row["review"] = reviewed(mw.support.review(out, **asked, seeds=TRIALS[name].redrawn))
            row["review"] |= {"cpu_seconds": round(cpu_s() - used, 1)}
        except zoo.Gone as error:
            row |= {"left_out": str(error)}
        except WrightError as error:
            row |= {"refused": f"{error.problem}: {error.cause}", "exit": error.exit_code}
        # Somebody else may have run another trial meanwhile.
        rows = {row["trial"]: row for row in written.read(NAME).get("rows", [])}
        rows[name] = {**row, "seconds": round(time.monotonic() - began, 1)}
        sys.stderr.write(json.dumps(rows[name]) + "\n")
        written.write(NAME, summed(rows))
    return summed(rows)


def summed(rows: Mapping[str, Any]) -> dict[str, Any]:
    listed = [rows[name] for name in TRIALS if name in rows]
    words = Counter(one["word"] for row in listed for one in row.get("rows", ()))
    gates = Counter(row["gate"] for row in listed if row.get("gate"))
    reached = {row["trial"]: row.get("reached") for row in listed}
    verdicts = {row["trial"]: row["review"]["verdict"] for row in listed if "review" in row}
    missing = [name for name in TRIALS if name not in rows]
    return {
        "gates": dict(gates),
        "words": dict(words),
        "reached": reached,
        "verdicts": verdicts,
        "not_run": missing,
        "rows": listed,
    }


def told(found: SupportRun) -> dict[str, Any]:
    return {
        "claim": found.claim_digest,
        "gate": None if found.gate is None else found.gate.word,
        "gate_reasons": () if found.gate is None else found.gate.reasons,
        "state": found.state,
        "reached": found.reached,
        "claim_met": found.claim_met,
        "gain": found.gain,
        "rows": [_line(row) for row in found.rows],
        "without": [_line(row) for row in found.base],
    }


def _line(row: Any) -> dict[str, Any]:
    shown = {"level": row.level, "case": f"{row.target} {row.precision}", "part": row.component, "word": row.word}
    return {**shown, "because": "; ".join(row.reasons)}


def reviewed(found: SupportReview) -> dict[str, Any]:
    """Row by row: what was claimed, what came out here, and the word for that."""
    rows = [{"row": row.name, "claimed": row.claimed, "found": row.found, "word": row.word} for row in found.rows]
    odd = [
        {**row, "because": one.reason} if row["word"] != "reproduced" else row
        for row, one in zip(rows, found.rows, strict=True)
    ]
    return {"verdict": found.verdict, "gate": list(found.gate), "reasons": list(found.reasons), "rows": odd}


def cpu_s() -> float:
    """Of this process and of all that it has waited for."""
    parts = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)


def _run(trial: Trial, name: str) -> tuple[Path, Asked, SupportRun]:
    """The folder, what a reviewer has to be told of this machine, and the run."""
    place = home.home() / "bench" / "support" / name
    place.mkdir(parents=True, exist_ok=True)
    asked = {**trial.make(place), **trial.more}
    if trial.recipe is not None:
        (place / "recipe.toml").write_text(trial.recipe)
        asked["recipe"] = place / "recipe.toml"
    out = place / f"run-{this_tool().digest[:12]}"
    for other in place.glob("run-*"):
        if other != out:
            shutil.rmtree(other)
    model = asked.pop("model")
    found = mw.support.run(model, out, on_progress=lambda step: None, **asked)
    mw.support.report(out)
    here: Asked = {"model": model, "data": asked["data"].source if "data" in asked else None}
    # Whoever runs this has read the metrics: they lie beside this file.
    return out, {**here, "metric": METRICS if "metric" in asked else None}, found


# the models


def _zoo(name: str, task: str | None = None) -> Callable[[Path], Asked]:
    def make(place: Path) -> Asked:
        trained = zoo.trained(name)
        data = place / "rows.npz"
        if not data.is_file():
            np.savez(data, **trained.labelled)  # type: ignore[arg-type]
        return {"model": str(trained.path), "task": task or trained.task, "data": mw.Data(str(data))}

    return make


def _silero(place: Path) -> Asked:
    """Frame by frame, with the state that the float model has then."""
    data, model = place / "rows.npz", zoo.trained("silero-vad")
    if not data.is_file():
        from bench.zoo import _audio

        rng = np.random.default_rng(4)
        parts = [_audio._broken_up(_audio.speech(name), rng) for name in ("beckett", "two_cities")]
        rows, labels = [], []
        for sound, spoken in parts:
            followed = list(_audio._followed(zoo.answers(model.path), _audio._frames(sound[:480])))
            known = ~np.isnan(spoken[: len(followed)])
            rows += [sample for (sample, _), good in zip(followed, known, strict=False) if good]
            labels += [float(one) for one, good in zip(spoken, known, strict=False) if good]
        stacked: dict[str, Any] = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        np.savez(data, **stacked, label=np.asarray(labels, np.float32))
    return {"model": str(model.path), "data": mw.Data(str(data)), "metric": f"{METRICS}:spoken", "max_drop": "3pt"}


def _ocr(place: Path) -> Asked:
    data, model = place / "rows.npz", zoo.trained("ppocr-rec")
    if not data.is_file():
        from bench.zoo import _drawn, _ocr

        rng = np.random.default_rng(1)
        texts = [_drawn.phrase(rng) for _ in range(200)]
        pictures = [_ocr._padded(_drawn.line(text, rng), 320) for text in texts]
        answer = zoo.answers(model.path)
        # What the float model reads, as classes: whether a build reads the same.
        labels = np.zeros((len(pictures), 64), np.int64)
        for place_of, picture in enumerate(pictures):
            best = answer(picture)[0][0].argmax(axis=-1)
            kept = best[np.insert(best[1:] != best[:-1], 0, True)]
            kept = kept[kept > 0][:64]
            labels[place_of, : len(kept)] = kept
        stacked = {name: np.concatenate([one[name] for one in pictures]) for name in pictures[0]}
        np.savez(data, **stacked, label=labels)
    return {"model": str(model.path), "data": mw.Data(str(data)), "metric": f"{METRICS}:read", "max_drop": "3pt"}


def _vit(place: Path) -> Asked:
    """Fashion-MNIST, as a Hugging Face folder: trained on the demo's images in a minute."""
    folder, data = place / "model", place / "rows.npz"
    if not data.is_file():
        import torch
        from transformers import ViTConfig, ViTForImageClassification

        held = np.load(DEMO / "fashion_test.npz")
        pictures = held["image"].reshape(-1, 1, 28, 28).astype("f4") / 255
        labels = held["label"].astype("i8")
        half = len(pictures) // 2
        torch.manual_seed(0)
        torch.set_num_threads(1)
        config = ViTConfig(
            image_size=28, patch_size=7, num_channels=1, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=128, num_labels=10, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )  # fmt: skip
        model = ViTForImageClassification(config)
        step = torch.optim.AdamW(model.parameters(), lr=2e-3)
        x, y = torch.from_numpy(pictures[:half]), torch.from_numpy(labels[:half])
        for number in range(400):
            chosen = torch.randint(0, len(x), (64,), generator=torch.Generator().manual_seed(number))
            step.zero_grad()
            torch.nn.functional.cross_entropy(model(x[chosen]).logits, y[chosen]).backward()
            step.step()
        model.save_pretrained(folder)
        np.savez(data, pixel_values=pictures[half:], label=labels[half:])
    return {"model": str(folder), "task": "image-classification", "data": mw.Data(str(data)), "max_drop": "3pt"}


def _t5(place: Path) -> Asked:
    """Reverses six digits, as a Hugging Face folder."""
    folder, data = place / "model", place / "rows.npz"
    if not data.is_file():
        import torch
        from transformers import T5Config, T5ForConditionalGeneration

        torch.manual_seed(0)
        torch.set_num_threads(1)
        config = T5Config(
            vocab_size=16, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0,
            decoder_start_token_id=0, eos_token_id=1, pad_token_id=0, n_positions=16, feed_forward_proj="relu",
        )  # fmt: skip
        model = T5ForConditionalGeneration(config)
        step = torch.optim.AdamW(model.parameters(), lr=2e-3)
        rng = np.random.default_rng(0)
        for _ in range(900):
            ids, wanted = _reversed(rng, 64)
            step.zero_grad()
            model(input_ids=torch.from_numpy(ids), labels=torch.from_numpy(wanted)).loss.backward()
            step.step()
        model.save_pretrained(folder)
        ids, wanted = _reversed(np.random.default_rng(99), 160)
        np.savez(data, input_ids=ids, attention_mask=np.ones_like(ids), label=wanted)
    return {
        "model": str(folder),
        "task": "translation",
        "data": mw.Data(str(data)),
        "max_drop": "3pt",
        "recipe": _lengths(place),
    }


def _lengths(place: Path) -> Path:
    """A build with room for seven tokens; without it the length is a guess."""
    path = place / "recipe.toml"
    path.write_text("[export]\nsequence_length = 7\ncache_length = 16\n")
    return path


def _reversed(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    digits = rng.integers(3, 13, (count, 6))
    end = np.ones((count, 1), np.int64)
    return np.hstack([digits, end]), np.hstack([digits[:, ::-1], end])


def _configured(kind: str) -> Callable[[Path], Asked]:
    def make(place: Path) -> Asked:
        folder = place / "model"
        if not folder.is_dir():
            _CONFIGS[kind]().save_pretrained(folder)
        return {"model": str(folder), "random_weights": True}

    return make


def _owlvit() -> Any:
    from transformers import OwlViTConfig

    small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = {**small, "vocab_size": 160, "max_position_embeddings": 16, "bos_token_id": 0, "eos_token_id": 159}
    vision = {**small, "image_size": 64, "patch_size": 16, "initializer_range": 0.3}
    config = OwlViTConfig(text_config={**text, "initializer_range": 0.3}, vision_config=vision, projection_dim=32)
    config.architectures = ["OwlViTForObjectDetection"]
    return config


def _vitpose() -> Any:
    from transformers import VitPoseBackboneConfig, VitPoseConfig

    backbone = VitPoseBackboneConfig(
        image_size=[64, 48], patch_size=[16, 16], hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        out_indices=[2], initializer_range=0.3,
    )  # fmt: skip
    config = VitPoseConfig(backbone_config=backbone, num_labels=17, initializer_range=0.3)
    config.architectures = ["VitPoseForPoseEstimation"]
    return config


def _blip() -> Any:
    from transformers import BlipConfig

    small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = {
        **small,
        "encoder_hidden_size": 32,
        "vocab_size": 160,
        "max_position_embeddings": 32,
        "initializer_range": 0.3,
    }
    tokens = {"bos_token_id": 150, "eos_token_id": 151, "pad_token_id": 0, "sep_token_id": 152}
    vision = {**small, "image_size": 64, "patch_size": 16, "initializer_range": 0.3}
    config = BlipConfig(
        text_config={**text, **tokens}, vision_config=vision, projection_dim=32, image_text_hidden_size=32
    )
    config.architectures = ["BlipForConditionalGeneration"]
    return config


def _fashion(place: Path) -> Asked:
    return {"model": str(DEMO / "fashion_cnn.onnx")}


def _fashion_rows(place: Path) -> Asked:
    return {**_zoo("fashion")(place), "max_drop": "3pt"}


def _own_operator(place: Path) -> Asked:
    path = place / "model.onnx"
    if not path.is_file():
        node = onnx.helper.make_node("Twice", ["x", "w"], ["y"], domain="acme.operators")
        values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 8]) for name in "xy"]
        weight = onnx.numpy_helper.from_array(np.ones((8, 8), np.float32), "w")
        graph = onnx.helper.make_graph([node], "net", values[:1], values[1:], [weight])
        opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("acme.operators", 1)]
        onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return {"model": str(path)}


def _by_chance(place: Path) -> Asked:
    """A family that looks at what it is traced with: the answer's first number decides what the graph does."""
    file = place / "heat.py"
    file.write_text(
        "from modelwright.stages.export import ModelFamily\n\n\ndef heat(output):\n"
        '    maps = output.heatmaps\n    return {"heatmaps": maps if maps[0, 0, 0, 0] > 0 else -maps}\n\n\n'
        'FAMILY = ModelFamily(classes={"keypoint-detection": "VitPoseForPoseEstimation"}, answers=heat)\n'
    )
    return {**_configured("vitpose")(place), "family": file}


_CONFIGS = {"owlvit": _owlvit, "vitpose": _vitpose, "blip": _blip}
_WITHOUT = 'precision = "w8a8"\n[quantize]\nnodes_to_exclude = ["/model/{}/Conv"]\n'
_L3 = {"ceiling": "L3"}
_NPU = {"targets": ["qnn-npu"], "precisions": ["w8a16"], "ceiling": "L4", "seeds": 2}
_INT8 = {"precisions": ["w8a8"], "seeds": 3}
TRIALS: dict[str, Trial] = {
    "magika": Trial(_zoo("magika"), _L3),
    "lite0": Trial(_zoo("lite0"), _L3),
    "silero-vad": Trial(_silero, _L3),
    "ppocr-rec": Trial(_ocr, _L3),
    "vit": Trial(_vit, {**_L3, "seeds": 3}),
    "minilm": Trial(_zoo("minilm"), {**_L3, "seeds": 2}),
    "vitpose": Trial(_configured("vitpose"), {"family": "vitpose", "task": "keypoint-detection", "seeds": 2}),
    "owlvit": Trial(_configured("owlvit"), {"seeds": 2}),
    "blip": Trial(_configured("blip"), {"seeds": 2}),
    "t5": Trial(_t5, {**_L3, "seeds": 2}),
    "magika-everyday": Trial(_zoo("magika"), {**_L3, "seeds": 2}, _EVERYDAY),
    # The last convolution is what 8 bits ruin; the first one stays float anyway, because that is faster.
    "silero-vad-repaired": Trial(_silero, {**_L3, "seeds": 2}, _WITHOUT.format("encoder/3/reparam_conv")),
    "silero-vad-inert": Trial(_silero, {**_L3, "seeds": 2}, _WITHOUT.format("stft")),
    "magika-inert": Trial(_zoo("magika"), {"seeds": 2}, "[validation]\nsamples = 16\n"),
    "magika-nothing-new": Trial(_zoo("magika"), {"seeds": 2}, 'precision = "fp32"\n'),
    # What nobody here has: an operator of somebody's own domain. There is nothing to build it with.
    "own-operator": Trial(_own_operator, {"seeds": 3}),
    "vitpose-by-chance": Trial(_by_chance, {"task": "keypoint-detection", "seeds": 4}, redrawn=4),
    # 8 bits whose ranges come of made-up inputs: nothing shows that they are good.
    "fashion-made-up": Trial(_fashion, _INT8),
    "fashion-npu": Trial(_fashion_rows, _NPU, redrawn=2),
    "vit-npu": Trial(_vit, _NPU, redrawn=2),
    "silero-vad-npu": Trial(_silero, _NPU, redrawn=2),
    "lite0-npu": Trial(_zoo("lite0"), _NPU, redrawn=2),
    "magika-openvino": Trial(_zoo("magika"), {"targets": ["openvino-npu"], "seeds": 1}),
    "minilm-everyday": Trial(_zoo("minilm"), {**_L3, "seeds": 2}, _EVERYDAY),
}


if __name__ == "__main__":
    run(*sys.argv[1:])
