"""What a detector's user keeps of it: the boxes that are seen, of each heap the best, with their classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.stages.validate._decisions import SEEN, ChangedDecisions
from modelwright.stages.validate._kinds import BOX, Stacked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

# What overlaps so much is one thing; what overlaps so little is another one than before.
_ONE_THING, _SAME = 0.45, 0.5
# A score that is found this much lower was near the border.
NEARLY = 0.8
_MOST = 300


@dataclass(frozen=True, eq=False)
class Seen:
    """Boxes (left, top, right, bottom) of one sample with their classes, the best first."""

    boxes: NDArray[Any]
    classes: NDArray[Any]


def changed_detections(
    tables: Sequence[tuple[NDArray[Any], NDArray[Any]]], layout: Stacked
) -> tuple[ChangedDecisions, ChangedDecisions]:
    """Of tables (columns, places): what is seen no more and what is seen now, of all that either sees; first without
    those that the other nearly sees."""
    return changed_between(
        [[(seen(table, layout, SEEN), seen(table, layout, SEEN * NEARLY)) for table in pair] for pair in tables]
    )


def changed_between(samples: Sequence[Sequence[tuple[Seen, Seen]]]) -> tuple[ChangedDecisions, ChangedDecisions]:
    """Of samples, each of two sides: what a side is sure of, and what it nearly sees."""
    clear = every = asked = 0
    for sides in samples:
        for (sure, _), (theirs, nearly) in (tuple(sides), tuple(sides)[::-1]):
            asked += len(sure.boxes)
            every += _missing(sure, theirs)
            clear += _missing(sure, nearly)
    return ChangedDecisions(clear, asked, "detections, clearly"), ChangedDecisions(every, asked, "detections")


def seen(table: NDArray[Any], layout: Stacked, at: float) -> Seen:
    """After non-maximum suppression."""
    scores = layout.scores(table)
    best, classes = scores.max(axis=0), scores.argmax(axis=0)
    order = np.argsort(-best)[: min(_MOST, int((best >= at).sum()))]
    boxes, classes = layout.corners(table[:BOX])[:, order].T, classes[order]
    kept: list[int] = []
    for index in range(len(order)):
        if not kept or overlaps(boxes[index], boxes[kept]).max() < _ONE_THING:
            kept.append(index)
    return Seen(boxes[kept], classes[kept])


def overlaps(one: NDArray[Any], many: NDArray[Any]) -> NDArray[Any]:
    """Intersection over union of one box with each of the others."""
    low, high = np.maximum(one[:2], many[:, :2]), np.minimum(one[2:], many[:, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=1)
    sizes = np.prod(many[:, 2:] - many[:, :2], axis=1) + np.prod(one[2:] - one[:2])
    found: NDArray[Any] = shared / np.maximum(sizes - shared, 1e-9)
    return found


def matches(ours: Seen, theirs: Seen) -> list[tuple[int, int]]:
    """Places of the same things in both; each of theirs stands for one."""
    left = np.ones(len(theirs.boxes), bool)
    found = []
    for place, (box, kind) in enumerate(zip(ours.boxes, ours.classes, strict=True)):
        fitting = overlaps(box, theirs.boxes) * (left & (theirs.classes == kind)) if left.any() else np.zeros(1)
        if fitting.max() >= _SAME:
            found.append((place, int(fitting.argmax())))
            left[found[-1][1]] = False
    return found


def _missing(ours: Seen, theirs: Seen) -> int:
    """Those of ours that are not among theirs."""
    return len(ours.boxes) - len(matches(ours, theirs))
