"""Boxes with classes, as DETR-like models give them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.evaluation.tasks._base import (
    Context,
    EvalTask,
    Metric,
    Outputs,
    Row,
    field,
    nothing_right,
    pick,
    softmax,
)
from modelwright.evaluation.tasks._libraries import library

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

_PRECISIONS = ("map", "map_50", "map_75")


class ObjectDetection(EvalTask):
    """F1 of boxes at an overlap of `iou`, among answers above `threshold`; mAP beside it, by pycocotools.

    Outputs: `logits` (queries, classes) and `pred_boxes` (queries, 4) as centre and size. Labels: `boxes` as
    x1 y1 x2 y2, all in shares of the image, and `label`, one class per box, -1 for padding.
    """

    defaults: ClassVar[Mapping[str, str]] = {"iou": "0.5", "threshold": "0.5", "head": "softmax", "map": "yes"}

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self.metric = Metric("box_f1", form="sums", worst=None)
        self._iou, self._threshold = self.number("iou"), self.number("threshold")
        self._softmax = self.choice("head", ("softmax", "sigmoid")) == "softmax"
        self._map = self.choice("map", ("yes", "no")) == "yes"
        self._answers: list[tuple[NDArray[Any], ...]] = []

    def score(self, row: Row, outputs: Sequence[Outputs]) -> Any:
        logits = pick(outputs[0], ("logits",), 2)
        centres = np.asarray(outputs[0].get("pred_boxes", np.zeros((0, 0))), np.float64)
        if centres.shape != (len(logits), 4):
            raise InputError(
                "the model does not look like a detector",
                cause="it has no output pred_boxes with four numbers per query",
                fix="Score it yourself with `metric` file.py:function.",
            )
        # The last class of a softmax head is "no object".
        scores = softmax(logits)[:, :-1] if self._softmax else 1 / (1 + np.exp(-logits))
        boxes, labels = truth(row, scores.shape[1])
        best, answers = scores.max(axis=1), _corners(centres)
        order = np.argsort(-best, kind="stable")
        found = order[best[order] >= self._threshold]
        kinds = scores.argmax(axis=1)
        right = matched(answers[found], kinds[found], boxes, labels, self._iou)
        self._answers.append((answers, best, kinds, boxes, labels))
        return right, len(found), len(labels)

    def value(self, numbers: NDArray[Any]) -> float:
        right, found, wanted = numbers
        return float(2 * right / (found + wanted)) if found + wanted else 1.0

    def spoiled(self, numbers: NDArray[Any]) -> NDArray[Any]:
        return nothing_right(numbers, 1)

    def more(self, numbers: NDArray[Any]) -> dict[str, float]:
        if not self._map:
            return {}
        # One task object scores one model, so these are all its answers.
        return average_precision(self._answers)


def average_precision(answers: Sequence[tuple[NDArray[Any], ...]]) -> dict[str, float]:
    """COCO's mAP by its own tools; -1, COCO's word for "no boxes at all", is left out."""
    coco, evaluation = library("pycocotools.coco", "pycocotools"), library("pycocotools.cocoeval", "pycocotools")
    found: list[dict[str, Any]] = []
    wanted: list[dict[str, Any]] = []
    kinds_seen: set[int] = set()
    for image, (boxes, scores, kinds, true_boxes, labels) in enumerate(answers):
        sizes, true_sizes = _with_sizes(boxes), _with_sizes(true_boxes)
        for box, score, kind in zip(sizes, scores, kinds, strict=True):
            found.append({"image_id": image, "category_id": int(kind), "bbox": box, "score": float(score)})
        for box, kind in zip(true_sizes, labels, strict=True):
            number = len(wanted) + 1
            area = box[2] * box[3]
            wanted.append(
                {"id": number, "image_id": image, "category_id": int(kind), "bbox": box, "area": area, "iscrowd": 0}
            )
        kinds_seen |= {int(kind) for kind in (*kinds, *labels)}
    truth = coco.COCO()
    truth.dataset = {
        "info": {},
        "images": [{"id": image} for image in range(len(answers))],
        "annotations": wanted,
        "categories": [{"id": kind} for kind in sorted(kinds_seen)],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        run = evaluation.COCOeval(truth, truth.loadRes(found), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return {name: float(run.stats[place]) for place, name in enumerate(_PRECISIONS) if run.stats[place] >= 0}


def _with_sizes(boxes: NDArray[Any]) -> list[list[float]]:
    return [[float(v) for v in (x1, y1, x2 - x1, y2 - y1)] for x1, y1, x2, y2 in boxes]


def truth(row: Row, classes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    labels = np.asarray(field(row, "label", "a class per box, -1 for padding")).reshape(-1).astype(np.int64)
    boxes = np.asarray(field(row, "boxes", "x1 y1 x2 y2 per box, in shares of the image"), np.float64).reshape(-1, 4)
    if len(boxes) != len(labels):
        raise InputError(
            f"a row has {len(boxes)} boxes and {len(labels)} labels",
            cause="every box has one class",
            fix="Write as many labels as boxes; -1 marks padding.",
        )
    boxes, labels = boxes[labels >= 0], labels[labels >= 0]
    if len(labels) and labels.max() >= classes:
        raise InputError(
            f"label {int(labels.max())} does not fit the model",
            cause=f"its head has {classes} classes, numbered 0 to {classes - 1}",
            fix="Check the labels, and `settings` head=sigmoid for heads without a no-object class.",
        )
    if len(boxes) and ((boxes[:, 2:] < boxes[:, :2]).any() or boxes.min() < -0.01 or boxes.max() > 1.01):
        raise InputError(
            "the boxes are not x1 y1 x2 y2 in shares of the image",
            cause=f"one is {[round(float(v), 3) for v in boxes[_odd(boxes)]]}",
            fix="Divide by the width and height of the image, and write corners, not sizes.",
        )
    return boxes, labels


def _odd(boxes: NDArray[Any]) -> int:
    bad = (boxes[:, 2:] < boxes[:, :2]).any(axis=1) | (boxes.min(axis=1) < -0.01) | (boxes.max(axis=1) > 1.01)
    return int(bad.argmax())


def matched(answers: NDArray[Any], kinds: NDArray[Any], boxes: NDArray[Any], labels: NDArray[Any], least: float) -> int:
    """How many answers, best first, meet an unclaimed box of their class."""
    if not len(answers) or not len(boxes):
        return 0
    overlap = overlaps(answers, boxes)
    free = np.ones(len(boxes), bool)
    right = 0
    for line, kind in zip(overlap, kinds, strict=True):
        fitting = np.where(free & (labels == kind), line, -1.0)
        place = int(fitting.argmax())
        if fitting[place] >= least:
            free[place] = False
            right += 1
    return right


def overlaps(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Intersection over union of every pair."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    common = np.clip(high - low, 0, None).prod(axis=2)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (one, other)]
    union = areas[0][:, None] + areas[1][None, :] - common
    return np.asarray(np.where(union > 0, common / np.where(union > 0, union, 1.0), 0.0))


def _corners(centres: NDArray[Any]) -> NDArray[Any]:
    half = centres[:, 2:] / 2
    return np.concatenate([centres[:, :2] - half, centres[:, :2] + half], axis=1)
