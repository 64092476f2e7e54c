"""The models of the trials: what `support.run` is asked about each, made or fetched once into a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import modelwright as mw
from bench import zoo
from bench.families import FAMILIES

METRICS = Path(__file__).with_name("support_metrics.py")
DEMO = Path(__file__).parents[1] / "demo"
Asked = dict[str, Any]


def of_the_zoo(name: str, task: str | None = None) -> Callable[[Path], Asked]:
    def make(place: Path) -> Asked:
        trained = zoo.trained(name)
        data = place / "rows.npz"
        if not data.is_file():
            np.savez(data, **trained.labelled)  # type: ignore[arg-type]
        return {"model": str(trained.path), "task": task or trained.task, "data": mw.Data(str(data))}

    return make


def minilm(place: Path) -> Asked:
    """Pairs of words, ranked by people (SimLex-999): the zoo's 353 pairs are too few to decide about 0.05."""
    data, model = place / "simlex.npz", zoo.trained("minilm")
    if not data.is_file():
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(model.path)
        listed = zoo.package("gensim==4.4.0") / "gensim/test/test_data/simlex999.txt"
        pairs = [line.split("\t") for line in listed.read_text().splitlines() if line[:1] not in ("#", "")]
        sides = [
            dict(tokenizer([pair[side] for pair in pairs], padding="max_length", max_length=16, return_tensors="np"))
            for side in (0, 1)
        ]
        twins = {f"{name}_pair": array for name, array in sides[1].items()}
        np.savez(data, **sides[0], **twins, label=np.asarray([float(pair[2]) for pair in pairs]))
    return {"model": str(model.path), "task": model.task, "data": mw.Data(str(data))}


def silero(place: Path) -> Asked:
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


def recogniser(place: Path) -> Asked:
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


def vit(place: Path) -> Asked:
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


def t5(place: Path) -> Asked:
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
    return {"model": str(folder), "task": "translation", "data": mw.Data(str(data)), "max_drop": "3pt"}


def _reversed(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    digits = rng.integers(3, 13, (count, 6))
    end = np.ones((count, 1), np.int64)
    return np.hstack([digits, end]), np.hstack([digits[:, ::-1], end])


def configured(kind: str) -> Callable[[Path], Asked]:
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


def fashion(place: Path) -> Asked:
    return {"model": str(DEMO / "fashion_cnn.onnx")}


def fashion_rows(place: Path) -> Asked:
    return {**of_the_zoo("fashion")(place), "max_drop": "3pt"}


def own_operator(place: Path) -> Asked:
    path = place / "model.onnx"
    if not path.is_file():
        node = onnx.helper.make_node("Twice", ["x", "w"], ["y"], domain="acme.operators")
        values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 8]) for name in "xy"]
        weight = onnx.numpy_helper.from_array(np.ones((8, 8), np.float32), "w")
        graph = onnx.helper.make_graph([node], "net", values[:1], values[1:], [weight])
        opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("acme.operators", 1)]
        onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return {"model": str(path)}


def vilt(place: Path) -> Asked:
    if not (place / "model").is_dir():
        next(family for family in FAMILIES if family.name == "vilt").write(place / "model")
    return {"model": str(place / "model"), "random_weights": True}


def by_chance(place: Path) -> Asked:
    """A family that looks at what it is traced with: the answer's first number decides what the graph does."""
    file = place / "heat.py"
    file.write_text(
        "from modelwright.stages.export import ModelFamily\n\n\ndef heat(output):\n"
        '    maps = output.heatmaps\n    return {"heatmaps": maps if maps[0, 0, 0, 0] > 0 else -maps}\n\n\n'
        'FAMILY = ModelFamily(classes={"keypoint-detection": "VitPoseForPoseEstimation"}, answers=heat)\n'
    )
    return {**configured("vitpose")(place), "family": file}


_CONFIGS = {"owlvit": _owlvit, "vitpose": _vitpose, "blip": _blip}
