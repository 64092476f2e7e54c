"""What an output is, told by its name, the task, its shape and the numbers that the export gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
    (r"past|present|state|cache|memory|^[hc]n$", "states"),
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


def kind_of(name: str, answers: Sequence[NDArray[Any]], task: str | None) -> OutputKind:
    """Of an output of numbers."""
    named = next((kind for pattern, kind in _NAMES if re.search(pattern, name, re.IGNORECASE)), None)
    if named in (None, "boxes", "scores") and stacked_axis(answers) is not None:
        return "detections"
    if is_picture(answers[0]) and (named == "scores" or (named is None and _is_one_map(answers))):
        return "maps"
    return named or _TASKS.get(task or "") or ("scores" if are_shares(answers) else "other")


def are_classes(name: str, answers: Sequence[NDArray[Any]]) -> bool:
    """Whether the numbers of a row stand for classes of which one is the answer: a distribution, or logits by name."""
    if kind_of(name, answers, None) != "scores" or any(answer.ndim < 2 for answer in answers):
        return False
    return are_shares(answers) or re.search("logit", name, re.IGNORECASE) is not None


def _is_one_map(answers: Sequence[NDArray[Any]]) -> bool:
    return all(answer.shape[1] == 1 and within_one(answer) for answer in answers)


def within_one(values: NDArray[Any]) -> bool:
    return float(values.min()) >= -1e-3 and float(values.max()) <= 1.001


def is_picture(answer: NDArray[Any]) -> bool:
    return answer.ndim >= 4 and min(answer.shape[-2:]) >= _PICTURE


def are_shares(answers: Sequence[NDArray[Any]]) -> bool:
    """Whether every row along the last axis is a distribution."""
    if any(answer.ndim == 0 or answer.shape[-1] < 2 or not np.isfinite(answer).all() for answer in answers):
        return False
    sums = np.concatenate([answer.reshape(-1, answer.shape[-1]).sum(axis=1) for answer in answers])
    return bool(np.allclose(sums, 1.0, atol=1e-3)) and min(float(answer.min()) for answer in answers) >= 0.0


def stacked_axis(answers: Sequence[NDArray[Any]]) -> int | None:
    """Where a detector stacks boxes, in pixels, and scores between 0 and 1: (1, 84, 8400) or (1, 25200, 85)."""
    first = answers[0]
    if first.ndim != 3 or len({answer.shape for answer in answers}) > 1:
        return None
    axis = 1 if first.shape[1] < first.shape[2] else 2
    if not BOX < first.shape[axis] <= first.shape[3 - axis]:
        return None
    columns = np.moveaxis(np.stack(answers), axis + 1, 0).reshape(first.shape[axis], -1)
    boxes, scores = columns[:BOX], columns[BOX:]
    return axis if float(boxes.max()) > 2.0 and within_one(scores) else None


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
