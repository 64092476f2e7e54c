"""What two models do not share. What is the same on both sides is left out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from modelwright._dataclass import dataclass
from modelwright.graph._stored_weights import StoredWeight
from modelwright.graph._summary import ModelSummary, OpCount, Opset
from modelwright.graph._types import ValueSpec

V = TypeVar("V")
T = TypeVar("T")


@dataclass(frozen=True)
class ModelChange(Generic[V]):
    """One named thing in both models; None where one of them does not have it."""

    name: str
    first: V | None
    second: V | None


@dataclass(frozen=True)
class ModelDifference:
    """Weights are told apart by name, type and shape; the fingerprints of two models tell whether contents differ."""

    inputs: tuple[ModelChange[ValueSpec], ...]
    outputs: tuple[ModelChange[ValueSpec], ...]
    ops: tuple[ModelChange[int], ...]
    opsets: tuple[ModelChange[int], ...]
    weights: tuple[ModelChange[StoredWeight], ...]
    same_weights: int


def difference(
    first: ModelSummary, second: ModelSummary, stored: tuple[Iterable[StoredWeight], Iterable[StoredWeight]]
) -> ModelDifference:
    mine, theirs = ({item.name: item for item in side} for side in stored)
    weights = _changed(mine, theirs, lambda item: (item.dtype, item.shape))
    both = [item for item in weights if item.first is not None and item.second is not None]
    return ModelDifference(
        inputs=_changed(_by_name(first.inputs), _by_name(second.inputs)),
        outputs=_changed(_by_name(first.outputs), _by_name(second.outputs)),
        ops=_ranked(_changed(_counts(first.ops), _counts(second.ops))),
        opsets=_changed(_versions(first.opsets), _versions(second.opsets)),
        weights=tuple(sorted(weights, key=lambda item: -max(_size(item.first), _size(item.second)))),
        same_weights=len(mine.keys() & theirs.keys()) - len(both),
    )


def _changed(
    first: Mapping[str, T], second: Mapping[str, T], key: Callable[[T], Hashable] | None = None
) -> tuple[ModelChange[T], ...]:
    found = (ModelChange(name, first.get(name), second.get(name)) for name in dict.fromkeys((*first, *second)))
    return tuple(item for item in found if not _same(item, key))


def _same(item: ModelChange[T], key: Callable[[T], Hashable] | None) -> bool:
    if item.first is None or item.second is None:
        return False
    return key(item.first) == key(item.second) if key else item.first == item.second


def _by_name(values: Iterable[ValueSpec]) -> dict[str, ValueSpec]:
    return {value.name: value for value in values}


def _versions(opsets: Iterable[Opset]) -> dict[str, int]:
    return {item.domain or "ai.onnx": item.version for item in opsets}


def _counts(ops: Iterable[OpCount]) -> dict[str, int]:
    return {f"{op.domain}::{op.op_type}" if op.domain else op.op_type: op.count for op in ops}


def _ranked(ops: tuple[ModelChange[int], ...]) -> tuple[ModelChange[int], ...]:
    return tuple(sorted(ops, key=lambda item: (-abs((item.second or 0) - (item.first or 0)), item.name)))


def _size(weight: StoredWeight | None) -> int:
    return (weight.size_bytes or 0) if weight is not None else 0
