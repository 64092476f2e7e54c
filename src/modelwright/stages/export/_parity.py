"""The written graph against PyTorch, on inputs it was not traced with."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.data import generate
from modelwright.stages.export._part import Part, tensors_from
from modelwright.stages.export._values import Parity
from modelwright.targets import open_as_written
from modelwright.vocabulary import InputSpec

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    torch = lazy("torch")

SAMPLES = 2
COSINE, TOLERANCE = 0.99999, 1e-3
Arrays = Mapping[str, "NDArray[Any]"]


class Mismatch(Exception):
    """The graph does not do what PyTorch does; the message says where."""


def references(part: Part, seed: int) -> list[tuple[Arrays, Arrays]]:
    """Samples with PyTorch's answers. Index 0 is the traced sample, so these start at 1."""
    pairs: list[tuple[Arrays, Arrays]] = []
    for index in range(1, SAMPLES + 1):
        inputs = generate(_other_sizes(part.inputs, index), seed, index)
        answer = {name: tensor.numpy() for name, tensor in part.answer(tensors_from(inputs)).items()}
        pairs.append((inputs, answer))
    return pairs


def compare(path: Path, pairs: list[tuple[Arrays, Arrays]]) -> Parity:
    """The worst output of all samples, or `Mismatch`."""
    worst: Parity | None = None
    with open_as_written(path) as session:
        for inputs, answer in pairs:
            for name, array in session.run(inputs).items():
                found = _measure(name, array, answer[name])
                if worst is None or _badness(found) > _badness(worst):
                    worst = found
    assert worst is not None
    if worst.cosine < COSINE or worst.max_abs > worst.bound:
        raise Mismatch(
            f"{worst.output} differs from PyTorch: cosine {worst.cosine:.7f}, max-abs {worst.max_abs:.3g}"
            f" (allowed {worst.bound:.3g})"
        )
    return dataclasses.replace(worst, spread=_spread([answer for _, answer in pairs]), samples=len(pairs))


def _spread(answers: list[Arrays]) -> float:
    """Free axes have other sizes in other samples; there the overlap is compared."""
    first, *others = answers
    return min(max(_difference(first[name], other[name]) for other in others) for name in first)


def _difference(one: NDArray[Any], other: NDArray[Any]) -> float:
    overlap = tuple(slice(0, min(sizes)) for sizes in zip(one.shape, other.shape, strict=True))
    return float(np.abs(one[overlap].astype(np.float64) - other[overlap].astype(np.float64)).max(initial=0.0))


def _measure(name: str, array: NDArray[Any], answer: NDArray[Any]) -> Parity:
    if array.shape != answer.shape or array.dtype != answer.dtype:
        raise Mismatch(f"{name} is {array.dtype}{list(array.shape)}, PyTorch's is {answer.dtype}{list(answer.shape)}")
    ours, theirs = array.astype(np.float64).ravel(), answer.astype(np.float64).ravel()
    if not np.isfinite(theirs).all():
        raise Mismatch(f"{name} is not finite in PyTorch itself")
    if not np.isfinite(ours).all():
        raise Mismatch(f"{name} is not finite")
    bound = TOLERANCE * max(1.0, float(np.abs(theirs).max(initial=0.0)))
    return Parity(
        name, _cosine(ours, theirs), float(np.abs(ours - theirs).max(initial=0.0)), bound, spread=0.0, samples=0
    )


def _cosine(ours: NDArray[Any], theirs: NDArray[Any]) -> float:
    norms = float(np.linalg.norm(ours)) * float(np.linalg.norm(theirs))
    if norms == 0.0:
        return 1.0 if np.array_equal(ours, theirs) else 0.0
    return float(np.dot(ours, theirs)) / norms


def _badness(parity: Parity) -> float:
    return max(parity.max_abs / parity.bound, (1.0 - parity.cosine) / (1.0 - COSINE))


def _other_sizes(specs: InputSpec, index: int) -> InputSpec:
    """Free axes get sizes that the trace did not see."""
    return tuple(
        dataclasses.replace(
            spec,
            sizes=tuple(_other(dim, size, index) for dim, size in zip(spec.shape, spec.sizes, strict=True)),
        )
        for spec in specs
    )


def _other(dim: int | str, size: int, index: int) -> int:
    if isinstance(dim, int):
        return size
    return size + index if dim == "batch" else max(1, math.ceil(size / (index + 1)))
