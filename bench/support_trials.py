"""Real models on the ladder: each trial is one `support.run`, from the claim to its last level.

    python -m bench.support_trials [NAME ...]

Trained models of `bench.zoo`, a ViT and a T5 that are trained here in a minute, and three families from their
configurations with seeded weights. Each has a folder of its own beside the store, so a run that was ended goes on, and
what is on record is not measured again. A trial that is begun with another version of modelwright begins anew.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import modelwright as mw
from bench import written, zoo
from modelwright import home
from modelwright.errors import WrightError
from modelwright.support import SupportRun, this_tool

NAME = "support_trials"
METRICS = Path(__file__).with_name("support_metrics.py")
_EVERYDAY = 'precision = "w8a8"\n[quantize]\nop_types = ["all"]\nper_channel = false\npairs = "all"\n'
Asked = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """`make` gives what `support.run` is asked; `recipe` is the contribution, as text. The number of seeds of the gate
    is part of the claim: five where a build takes seconds, fewer where a model is exported for each."""

    make: Callable[[Path], Asked]
    more: Mapping[str, Any] = field(default_factory=dict)
    recipe: str | None = None


def run(*names: str) -> dict[str, Any]:
    rows = {row["trial"]: row for row in written.read(NAME).get("rows", [])}
    for name in names or TRIALS:
        began, row = time.monotonic(), {"trial": name, "tool": this_tool().digest[:12], "commit": this_tool().commit}
        try:
            row |= told(_run(TRIALS[name], name))
        except zoo.Gone as error:
            row |= {"left_out": str(error)}
        except WrightError as error:
            row |= {"refused": f"{error.problem}: {error.cause}", "exit": error.exit_code}
        rows[name] = {**row, "seconds": round(time.monotonic() - began, 1)}
        sys.stderr.write(json.dumps(rows[name]) + "\n")
        written.write(NAME, summed(rows))
    return summed(rows)


def summed(rows: Mapping[str, Any]) -> dict[str, Any]:
    listed = [rows[name] for name in TRIALS if name in rows]
    words = Counter(one["word"] for row in listed for one in row.get("rows", ()))
    gates = Counter(row["gate"] for row in listed if row.get("gate"))
    reached = {row["trial"]: row.get("reached") for row in listed}
    missing = [name for name in TRIALS if name not in rows]
    return {"gates": dict(gates), "words": dict(words), "reached": reached, "not_run": missing, "rows": listed}


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


def _run(trial: Trial, name: str) -> SupportRun:
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
    return mw.support.run(model, out, on_progress=lambda step: None, **asked)


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

        held = np.load(Path(__file__).parents[1] / "demo" / "fashion_test.npz")
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


_CONFIGS = {"owlvit": _owlvit, "vitpose": _vitpose, "blip": _blip}
_WITHOUT = 'precision = "w8a8"\n[quantize]\nnodes_to_exclude = ["/model/{}/Conv"]\n'
_L3 = {"ceiling": "L3"}
_NPU = {"targets": ["qnn-npu"], "precisions": ["w8a16"], "ceiling": "L4", "seeds": 2}
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
    "vit-npu": Trial(_vit, _NPU),
    "lite0-npu": Trial(_zoo("lite0"), _NPU),
    "silero-vad-npu": Trial(_silero, _NPU),
    "magika-openvino": Trial(_zoo("magika"), {"targets": ["openvino-npu"], "seeds": 1}),
    "minilm-everyday": Trial(_zoo("minilm"), {**_L3, "seeds": 2}, _EVERYDAY),
}


if __name__ == "__main__":
    run(*sys.argv[1:])
