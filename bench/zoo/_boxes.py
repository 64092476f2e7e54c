"""Boxes (left, top, right, bottom): how well two sets of them agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Box = Sequence[float]


def overlap(one: NDArray[np.float64], many: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intersection over union of one box with each of the others."""
    low, high = np.maximum(one[:2], many[:, :2]), np.minimum(one[2:], many[:, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=1)
    sizes = np.prod(many[:, 2:] - many[:, :2], axis=1) + np.prod(one[2:] - one[:2])
    return np.asarray(shared / np.maximum(sizes - shared, 1e-9))


def f1(found: Sequence[Box], wanted: Sequence[Box], at: float = 0.5) -> float:
    """Each wanted box is found once, by the first that overlaps it enough; nothing in nothing is right."""
    left = [np.asarray(box, float) for box in wanted]
    hits = 0
    for box in found:
        ious = overlap(np.asarray(box, float), np.stack(left)) if left else np.zeros(0)
        if len(ious) and ious.max() >= at:
            hits += 1
            left.pop(int(ious.argmax()))
    total = len(found) + len(wanted)
    return 2 * hits / total if total else 1.0


def suppressed(boxes: NDArray[np.float64], scores: NDArray[np.float64], at: float = 0.45) -> list[int]:
    """Non-maximum suppression: rows that stay, best first."""
    order, kept = list(np.argsort(-scores)), []
    while order:
        best = order.pop(0)
        kept.append(int(best))
        if order:
            rest = np.asarray(order)
            order = list(rest[overlap(boxes[best], boxes[rest]) < at])
    return kept
