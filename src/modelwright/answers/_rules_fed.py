"""Why a model does not take what it is fed: names, axes, sizes, types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.answers._gather import Complaint, Gathered
from modelwright.answers._rule import CauseRule, Lab, Shown
from modelwright.answers._types import TriedCure
from modelwright.graph import ValueSpec

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")


def _wants(found: Gathered) -> dict[str, ValueSpec]:
    return {} if found.model is None else {value.name: value for value in found.model.inputs}


def _fed(found: Gathered) -> bool:
    return found.refused is not None and found.arrays is not None and found.said is None


def _missing(found: Gathered) -> Shown | None:
    if not _fed(found) or found.arrays is None:
        return None
    absent = [name for name in _wants(found) if name not in found.arrays]
    if not absent:
        return None
    has = ", ".join(found.arrays) or "nothing"
    return Shown((f"the data holds {has}",), tuple(absent), {"input": ", ".join(absent), "has": has})


def _renamed(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    """Where one array is over and one input is missing, they may be meant for each other."""
    absent = [name for name in _wants(found) if name not in (found.arrays or {})]
    spare = [name for name in found.arrays or {} if name not in _wants(found)]
    if len(absent) == len(spare) == 1:
        yield from _with_arrays(found, lab, f"Call {spare[0]} {absent[0]}", {spare[0]: (absent[0], None, None)})


def _misshapen(found: Gathered) -> list[tuple[str, tuple[int, ...], tuple[int | str | None, ...]]]:
    """Inputs whose rows have other sizes than the model declares behind the batch."""
    wrong = []
    for name, value in _wants(found).items():
        row, shape = (found.arrays or {}).get(name), tuple(value.shape or ())
        if row is not None and not any(_fits(row, shape[cut:]) for cut in (0, 1)):
            wrong.append((name, row, shape))
    return wrong


def _fits(row: tuple[int, ...], shape: tuple[int | str | None, ...]) -> bool:
    return len(row) == len(shape) and all(
        not isinstance(size, int) or size == has for has, size in zip(row, shape, strict=True)
    )


def _order(row: tuple[int, ...], shape: tuple[int | str | None, ...]) -> tuple[int, ...] | None:
    """The order of the axes in which it would fit."""
    wanted = shape[1:] if len(shape) == len(row) + 1 else shape
    orders = permutations(range(len(row)))
    return next((order for order in orders if _fits(tuple(row[axis] for axis in order), wanted)), None)


def _layout(found: Gathered) -> Shown | None:
    wrong = _misshapen(found) if _fed(found) else []
    if not wrong or any(_order(row, shape) is None for _, row, shape in wrong):
        return None
    name, row, shape = wrong[0]
    facts = (f"{name} is {list(row)} in the data, and the model takes {list(shape)}",)
    return Shown(facts, (name,), {"input": name, "has": str(list(row)), "wants": str(list(shape))})


def _turned(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    turns = {name: (name, _order(row, shape), None) for name, row, shape in _misshapen(found)}
    order = next(iter(turns.values()))[1]
    yield from _with_arrays(found, lab, f"Put the axes in the order {order}", turns)


def _size(found: Gathered) -> Shown | None:
    wrong = _misshapen(found) if _fed(found) else []
    if not wrong:
        return None
    name, row, shape = wrong[0]
    facts = (f"{name} is {list(row)} in the data, and the model takes {list(shape)}",)
    return Shown(facts, (name,), {"input": name, "has": str(list(row)), "wants": str(list(shape))})


def _type(found: Gathered) -> Shown | None:
    if not _fed(found) or found.refused is None or "takes" not in found.refused.words or _misshapen(found):
        return None
    name = next((name for name in _wants(found) if found.refused.problem.startswith(f"{name} is ")), None)
    return None if name is None else Shown((found.refused.problem,), (name,), {"why": found.refused.problem})


def _cast(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    # How a number is written as a text is nobody's guess.
    casts = {name: (name, None, value.dtype) for name, value in _wants(found).items() if value.dtype != "string"}
    if len(casts) == len(_wants(found)):
        yield from _with_arrays(found, lab, "Write the numbers in the type that the model takes", casts)


Edit = tuple[str, "tuple[int, ...] | None", "str | None"]


def _with_arrays(found: Gathered, lab: Lab, title: str, edits: Mapping[str, Edit]) -> Iterator[TriedCure]:
    """The data with arrays renamed, turned or cast, where it is one file of arrays."""
    source, data = Path(found.complaint.inputs.data.source), found.complaint.inputs.data
    if source.suffix != ".npz":
        return
    with np.load(source, allow_pickle=False) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    for name, (new, order, dtype) in edits.items():
        array = kept.pop(name)
        array = array if order is None else array.transpose(0, *(axis + 1 for axis in order))
        kept[new] = array if dtype is None else array.astype(dtype)
    path = lab.file("changed.npz")
    np.savez(path, **kept)
    inputs = replace(found.complaint.inputs, data=replace(data, source=str(path)))
    tried: Complaint = replace(found.complaint, inputs=inputs)
    refused = found.refused
    yield lab.runs(title, "in the data", "refused" if refused is None else refused.cause, tried)


RULES = (
    CauseRule(
        "missing-input",
        "fails",
        "the data has nothing for {input}: it holds {has}",
        _missing,
        _renamed,
        remedy="give every input under its own name",
    ),
    CauseRule(
        "wrong-layout",
        "fails",
        "{input} is {has} in the data and {wants} in the model: the axes are in another order",
        _layout,
        _turned,
    ),
    CauseRule(
        "wrong-size",
        "fails",
        "{input} is {has} in the data, and the model takes {wants}",
        _size,
        remedy="resize the data, or export the model with this size",
    ),
    CauseRule("wrong-type", "fails", "{why}", _type, _cast),
)
