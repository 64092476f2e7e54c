"""What an output is, told by its name, the task, its shape and the numbers that the export gives."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.stages.validate._types import OutputKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

# In the order in which they are asked; `last_hidden_state` is what encoders embed with, other states are handed on.
_NAMES: tuple[tuple[str, OutputKind], ...] = (
    (r"last_hidden_state|embed|pooler", "embeddings"),
    (r"past|present|state(?!ful)|cache|memory|^[hc]n$", "states"),
    (r"box|bbox|rect|coord|landmark", "boxes"),
    (r"mask|segment|depth|heatmap", "maps"),
    (r"logit|score|prob|class|label|softmax", "scores"),
)
_TASKS: dict[str, OutputKind] = {
    "feature-extraction": "embeddings",
    "sentence-similarity": "embeddings",
    "image-feature-extraction": "embeddings",
    "audio-xvector": "embeddings",
    "image-segmentation": "maps",
    "depth-estimation": "maps",
}
# Boxes are four numbers; a picture has at least so many rows and columns.
BOX, _PICTURE = 4, 8
# Pictures in colour, and what their numbers reach from and to; learned ones leave it by a little.
_COLOURS, _RANGES, _BEYOND = 3, ((0.0, 255.0), (-1.0, 1.0), (0.0, 1.0)), 0.15
# Of places: what counts as seen, how few that are, and how nearly always is always.
_LIKELY, _FEW, _ALWAYS = 0.25, 0.05, 0.999
# What is hardly a chance, and what float32 leaves of numbers around one.
_HARDLY, _FLOAT32_OF_ONE = 1e-3, 1e-6
# Chances are near 0 or near 1, but for a few; what is often between is a picture, a share or a level.
_UNSURE, _SELDOM = (0.2, 0.8), 0.2


def kind_of(name: str, answers: Sequence[NDArray[Any]], task: str | None) -> OutputKind:
    """Of an output of numbers."""
    named = next((kind for pattern, kind in _NAMES if re.search(pattern, name, re.IGNORECASE)), None)
    if named in (None, "boxes", "scores") and stacked(answers) is not None:
        return "detections"
    if named in (None, "scores") and are_chances(answers):
        return "chances"
    if is_picture(answers[0]) and (named == "scores" or (named is None and _is_one_map(answers))):
        return "maps"
    if named is None and are_images(answers):
        return "images"
    return named or _TASKS.get(task or "") or ("scores" if are_shares(answers) else "other")


def are_classes(name: str, answers: Sequence[NDArray[Any]]) -> bool:
    """Whether the numbers of a row stand for classes of which one is the answer: a distribution, or logits by name."""
    if kind_of(name, answers, None) != "scores" or any(answer.ndim < 2 for answer in answers):
        return False
    return are_shares(answers) or re.search("logit", name, re.IGNORECASE) is not None


def _is_one_map(answers: Sequence[NDArray[Any]]) -> bool:
    return all(answer.shape[1] == 1 and within_one(answer) for answer in answers)


def are_chances(answers: Sequence[NDArray[Any]]) -> bool:
    """Whether every number stands for itself: between 0 and 1, no shares of a whole, no picture, some likely."""
    if is_picture(answers[0]) or are_shares(answers) or not all(map(within_one, answers)):
        return False
    values = np.concatenate([answer.ravel() for answer in answers])
    unsure = (values > _UNSURE[0]) & (values < _UNSURE[1])
    return bool(values.max() >= 0.5 and unsure.mean() <= _SELDOM)


def are_images(answers: Sequence[NDArray[Any]]) -> bool:
    """Whether they are pictures in colour, in one of the usual ranges, and no shares of three classes."""
    if not all(is_picture(answer) and answer.shape[1] == _COLOURS for answer in answers):
        return False
    low, high = (min(map(np.min, answers)), max(map(np.max, answers)))
    if not any(_about(low, high, *ends) for ends in _RANGES):
        return False
    return not are_shares([np.moveaxis(answer, 1, -1) for answer in answers])


def _about(low: float, high: float, darkest: float, brightest: float) -> bool:
    """Most of a range is used, and it is left by a little at most."""
    room = _BEYOND * (brightest - darkest)
    return darkest - room <= low and brightest - 3 * room <= high <= brightest + room


def within_one(values: NDArray[Any]) -> bool:
    return float(values.min()) >= -1e-3 and float(values.max()) <= 1.001


def tells_nothing(pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]], *, rounded: bool) -> bool:
    """Chances of next to nothing on both sides, such as a detector's where nothing is: most of them is rounding, and
    one rounding is as good as another. Shares of a whole are none, however many there are. `rounded` on purpose."""
    pairs = list(pairs)
    if not pairs or any(one.size == 0 or float(one.min()) < 0.0 for one, _ in pairs):
        return False
    if any(max(float(one.max()), float(np.abs(other).max())) > _HARDLY for one, other in pairs):
        return False
    apart = max(float(np.abs(one.astype(np.float64) - other).max()) for one, other in pairs)
    return (rounded or apart <= _FLOAT32_OF_ONE) and not are_shares([one for one, _ in pairs])


def is_picture(answer: NDArray[Any]) -> bool:
    return answer.ndim >= 4 and min(answer.shape[-2:]) >= _PICTURE


def are_shares(answers: Sequence[NDArray[Any]]) -> bool:
    """Whether every row along the last axis is a distribution."""
    if any(answer.ndim == 0 or answer.shape[-1] < 2 or not np.isfinite(answer).all() for answer in answers):
        return False
    sums = np.concatenate([answer.reshape(-1, answer.shape[-1]).sum(axis=1) for answer in answers])
    return bool(np.allclose(sums, 1.0, atol=1e-3)) and min(float(answer.min()) for answer in answers) >= 0.0


@dataclass(frozen=True)
class Stacked:
    """How a detector stacks boxes, in pixels, scores between 0 and 1, and maybe more (the coefficients of masks):
    (1, 84, 8400), (1, 25200, 85), (1, 37, 8400).

    `axis` is where they are stacked and `scored` the first column that is no score. `objectness`: the first score says
    whether there is anything, and the others what. `centred`: boxes are a middle and a size, not two corners.
    """

    axis: int
    scored: int
    objectness: bool
    centred: bool

    def scores(self, table: NDArray[Any]) -> NDArray[Any]:
        """Of a table (columns, places), a row for each class."""
        found = table[BOX : self.scored]
        return found[1:] * found[:1] if self.objectness else found

    def corners(self, boxes: NDArray[Any]) -> NDArray[Any]:
        first, second = boxes[:2].astype(np.float64), boxes[2:].astype(np.float64)
        return np.concatenate([first - second / 2, first + second / 2] if self.centred else [first, second])

    def table(self, answer: NDArray[Any]) -> NDArray[Any]:
        """(columns, places)."""
        return np.moveaxis(answer, self.axis, 1).reshape(answer.shape[self.axis], -1)


def stacked(answers: Sequence[NDArray[Any]]) -> Stacked | None:
    """None where it is no such output: a few of many places are seen, and boxes are larger than scores."""
    first = answers[0]
    if first.ndim != 3 or first.shape[0] != 1 or len({answer.shape for answer in answers}) > 1:
        return None
    axis = 1 if first.shape[1] < first.shape[2] else 2
    if not BOX < first.shape[axis] <= first.shape[3 - axis]:
        return None
    columns = np.moveaxis(np.stack(answers), axis + 1, 0).reshape(first.shape[axis], -1)
    scored = BOX + _leading(within_one(column) for column in columns[BOX:])
    boxes, scores = columns[:BOX], columns[BOX:scored]
    if not len(scores) or float(boxes.max()) <= 2.0 or (scored < len(columns) and not _rare(scores)):
        return None
    corners = bool((boxes[2:] >= boxes[:2]).mean() > _ALWAYS)
    return Stacked(axis, scored, _has_objectness(scores), not corners)


def _leading(flags: Iterable[bool]) -> int:
    return sum(1 for _ in itertools.takewhile(bool, flags))


def _rare(scores: NDArray[Any]) -> bool:
    return float(np.mean(scores > _LIKELY)) < _FEW


def _has_objectness(scores: NDArray[Any]) -> bool:
    """Classes that are told of every place, also where nothing is, need one number that says where something is."""
    return len(scores) > 1 and not _rare(scores[1:].max(axis=0)) and _rare(scores[0])


def slice_axis(answer: NDArray[Any]) -> int | None:
    """The axis along which numbers mean different things: channels of pictures, columns of everything else."""
    if answer.ndim < 2:
        return None
    if answer.ndim >= 4:
        return 1 if answer.shape[1] <= answer.shape[-1] or not is_square(answer) else answer.ndim - 1
    return 1 if answer.ndim == 3 and answer.shape[1] * 8 <= answer.shape[2] else answer.ndim - 1


def is_square(answer: NDArray[Any]) -> bool:
    """Channels last: the picture comes before them."""
    return bool(min(answer.shape[1:3]) > answer.shape[-1])
