"""A class or a distance for each pixel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.evaluation.tasks._base import Context, EvalTask, Metric, Outputs, Row, field, nothing_right, pick

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")


class Segmentation(EvalTask):
    """Mean over classes of intersection over union, pooled over all images.

    The numbers of a sample are, for each class, the pixels in both maps, in the answer, and in the label.
    """

    defaults: ClassVar[Mapping[str, str]] = {"ignore": "255"}

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self.metric = Metric("mean_iou", form="sums", worst=None)
        self._ignore = int(self.number("ignore"))

    def score(self, row: Row, outputs: Sequence[Outputs]) -> Any:
        label = np.asarray(field(row, "label", "the class of each pixel"))
        label = label.reshape(label.shape[-2:])
        classes, answer = self._answer(outputs[0], label.shape)
        used = label != self._ignore
        if used.any() and not (label[used].min() >= 0 and label[used].max() < classes):
            raise InputError(
                f"class {int(label[used].max())} does not fit the model",
                cause=f"its head has {classes} classes, numbered 0 to {classes - 1}, and {self._ignore} is ignored",
                fix="Check the labels, or say which number is to be ignored with `settings` ignore=N.",
            )
        wanted, got = label[used].astype(np.int64), answer[used]
        both = np.bincount(wanted[wanted == got], minlength=classes)
        counts = (both, np.bincount(got, minlength=classes), np.bincount(wanted, minlength=classes))
        return np.concatenate(counts)

    def _answer(self, outputs: Outputs, size: tuple[int, ...]) -> tuple[int, NDArray[Any]]:
        logits = pick(outputs, ("logits",), 3)
        return len(logits), resized(logits, (size[0], size[1])).argmax(axis=0)

    def value(self, numbers: NDArray[Any]) -> float:
        both, got, wanted = np.split(numbers, 3)
        union = got + wanted - both
        return float((both[union > 0] / union[union > 0]).mean()) if (union > 0).any() else 1.0

    def spoiled(self, numbers: NDArray[Any]) -> NDArray[Any]:
        return nothing_right(numbers, len(numbers) // 3)

    def more(self, numbers: NDArray[Any]) -> dict[str, float]:
        both, _, wanted = np.split(numbers.sum(axis=0), 3)
        return {"pixel_accuracy": float(both.sum() / wanted.sum())} if wanted.sum() else {}


class Depth(EvalTask):
    """Mean |error| / depth over the pixels with a positive depth, after the answer was fitted to the label.

    `align` fits a scale and a shift (affine), a scale (median), or nothing (none); `space` says whether the model
    answers depth or its inverse. The numbers of a sample are that error and the share of pixels within a factor 1.25.
    """

    defaults: ClassVar[Mapping[str, str]] = {"align": "affine", "space": "depth"}

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self.metric = Metric("abs_rel", unit="ratio", higher_is_better=False, span=None, worst=None)
        self._align = self.choice("align", ("affine", "median", "none"))
        self._inverse = self.choice("space", ("depth", "disparity")) == "disparity"

    def score(self, row: Row, outputs: Sequence[Outputs]) -> tuple[float, float]:
        label: NDArray[Any] = np.asarray(field(row, "label", "the depth of each pixel"), np.float64)
        label = np.reshape(label, np.shape(label)[-2:])
        found = pick({name: np.squeeze(value) for name, value in outputs[0].items()}, ("predicted_depth",), 2)
        height, width = label.shape
        found = resized(found[None], (height, width))[0]
        used = np.isfinite(label) & (label > 0)
        if not used.any():
            raise InputError(
                "a depth label has no valid pixel",
                cause="no value is finite and above zero",
                fix="Leave this row out of the data.",
            )
        wanted, got = label[used], found[used]
        goal = 1.0 / wanted if self._inverse else wanted
        got = aligned(got, goal, self._align)
        got = 1.0 / np.maximum(got, 1e-6) if self._inverse else np.maximum(got, 1e-6)
        ratio = np.maximum(got / wanted, wanted / got)
        return float((np.abs(got - wanted) / wanted).mean()), float((ratio < 1.25).mean())

    def more(self, numbers: NDArray[Any]) -> dict[str, float]:
        return {"delta1": float(numbers[:, 1].mean())}


def aligned(got: NDArray[Any], goal: NDArray[Any], how: str) -> NDArray[Any]:
    if how == "none":
        return got
    if how == "median":
        middle = float(np.median(got))
        return got * (float(np.median(goal)) / middle) if middle else got
    design = np.stack([got, np.ones_like(got)], axis=1)
    scale, shift = np.linalg.lstsq(design, goal, rcond=None)[0]
    return np.asarray(got * scale + shift)


def resized(planes: NDArray[Any], size: tuple[int, int]) -> NDArray[Any]:
    """Bilinear, pixel centres aligned to areas, as segmentation and depth heads are read."""
    for axis, wanted in ((1, size[0]), (2, size[1])):
        have = planes.shape[axis]
        if have != wanted:
            place = np.clip((np.arange(wanted) + 0.5) * have / wanted - 0.5, 0, have - 1)
            low = np.floor(place).astype(int)
            high = np.minimum(low + 1, have - 1)
            part = (place - low).reshape([-1 if index == axis else 1 for index in range(3)])
            planes = np.take(planes, low, axis) * (1 - part) + np.take(planes, high, axis) * part
    return planes
