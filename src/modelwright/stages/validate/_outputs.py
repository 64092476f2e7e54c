"""The outputs of the artifact beside those of the export, each by what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.metrics import Accumulator, masked
from modelwright.stages.validate._kinds import kind_of, tells_nothing, within_one
from modelwright.stages.validate._listed import Lists, PickedRows, find_lists, matched_rows, row_axis
from modelwright.stages.validate._measures import Judged, equality, listed, measures
from modelwright.stages.validate._types import CLOSE, NOTHING_ROUNDED, Gate, OutputParity, is_quantized

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pairs = Sequence[tuple[NDArray[Any], NDArray[Any]]]
else:
    np = lazy("numpy")

Outputs = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """What the models were fed, and what is claimed. `random`: the inputs are made up. `picked` are outputs whose rows
    the graph picks and orders itself."""

    feeds: Sequence[Mapping[str, Any]]
    gate: Gate
    random: bool
    picked: frozenset[str] = frozenset()

    @property
    def closely(self) -> bool:
        """Made-up inputs give near-ties, dead channels and saturated ones: only that nothing was rounded they can show
        closely."""
        return not (self.random and is_quantized(self.gate.precision))

    @property
    def rounded(self) -> bool:
        return self.gate.precision != NOTHING_ROUNDED

    @property
    def may_tell_nothing(self) -> bool:
        """What was rounded on purpose is excused by made-up inputs only, which nobody chose to be seen."""
        return self.random or not self.rounded


def parity(wanted: Sequence[Outputs], got: Sequence[Outputs], asked: Asked) -> tuple[OutputParity, ...]:
    """Every tensor of every answer. What the export really gave counts, not what its graph declares."""
    names = dict.fromkeys(name for answers in (*wanted, *got) for name in answers)
    picked = {name for name in asked.picked if asked.gate.outputs.get(name, "detections") == "detections"}
    known = {} if asked.closely else {"at": 0.0}
    lists = find_lists((*wanted, *got), picked, **known) if picked else None
    if lists is None:
        return tuple(_compared(name, wanted, got, asked) for name in names)
    pairs = [(lists.rows(one), lists.rows(other)) for one, other in zip(wanted, got, strict=True)]
    wanted, got = _in_one_order(wanted, got, pairs, picked.difference(lists.names))
    return tuple(
        _listed(name, lists, pairs, asked) if name in lists.names else _compared(name, wanted, got, asked)
        for name in names
    )


def _in_one_order(
    wanted: Sequence[Outputs], got: Sequence[Outputs], pairs: Sequence[tuple[PickedRows, PickedRows]], beside: set[str]
) -> tuple[list[Outputs], list[Outputs]]:
    """What is told beside a list (masks, keypoints), row by row: that of the things which are in both."""
    ours, theirs = ([dict(answer) for answer in side] for side in (wanted, got))
    for name in beside:
        values: list[tuple[Any, Any]] = [
            (one.get(name), other.get(name)) for one, other in zip(wanted, got, strict=True)
        ]
        if not all(_has_rows(pair, rows) for pair, rows in zip(values, pairs, strict=True)):
            continue
        for place, ((one, other), rows) in enumerate(zip(values, pairs, strict=True)):
            mine, its = matched_rows(*rows)
            ours[place][name] = np.take(one, mine, axis=row_axis(one))
            theirs[place][name] = np.take(other, its, axis=row_axis(other))
    return list(ours), list(theirs)


def _has_rows(values: tuple[Any, Any], rows: tuple[PickedRows, PickedRows]) -> bool:
    return all(
        value is not None and value.ndim > row_axis(value) and value.shape[row_axis(value)] == len(side.scores)
        for value, side in zip(values, rows, strict=True)
    )


def _listed(name: str, lists: Lists, pairs: Sequence[tuple[PickedRows, PickedRows]], asked: Asked) -> OutputParity:
    """The first of the outputs of a list speaks for all of them."""
    seen = listed(pairs, asked.gate, closely=asked.closely) if name == lists.names[0] else ()
    near = next((measure.value for measure in seen if measure.name == CLOSE), None)
    same = all(np.array_equal(getattr(one, part), getattr(other, part)) for one, other in pairs for part in vars(one))
    sums = Accumulator()
    for one, other in pairs:
        ours, theirs = matched_rows(one, other)
        if len(ours):
            sums.add(one.boxes[ours], other.boxes[theirs])
    noise = sums.aggregate().sqnr_db.worst if near is not None else None
    return OutputParity(name, "detections", near, None, noise, None, identical=same, reason=None, measures=seen)


def _compared(name: str, wanted: Sequence[Outputs], got: Sequence[Outputs], asked: Asked) -> OutputParity:
    if any((name in one) != (name in other) for one, other in zip(wanted, got, strict=True)):
        return _unlike(name, "one of both does not give it")
    given = [place for place, one in enumerate(wanted) if name in one]
    problem = next(filter(None, (_unlikeness(wanted[place][name], got[place][name]) for place in given)), None)
    if problem is not None:
        return _unlike(name, problem)
    full = [place for place in given if wanted[place][name].size]
    pairs = [(wanted[place][name], got[place][name]) for place in full]
    if full and all(_are_numbers(one) for one, _ in pairs):
        return _numbers(name, pairs, [asked.feeds[place] for place in full], asked)
    return _things(name, pairs, asked)


def _unlikeness(one: NDArray[Any], other: NDArray[Any]) -> str | None:
    if one.shape != other.shape:
        return f"shapes differ: {list(one.shape)} and {list(other.shape)}"
    return f"{other.dtype} instead of {one.dtype}" if _are_numbers(one) != _are_numbers(other) else None


def _are_numbers(values: NDArray[Any]) -> bool:
    """Near is good enough; so it is for integers that stand for quantized numbers. Not for classes, masks and words."""
    return values.dtype.kind == "f" or values.dtype.name in ("bfloat16", "int8", "uint8")


def _numbers(name: str, pairs: Pairs, feeds: Sequence[Mapping[str, Any]], asked: Asked) -> OutputParity:
    sums = Accumulator()
    for one, other in pairs:
        sums.add(_plain(one), _plain(other))
    found = sums.aggregate()
    problem = found.problem
    judged = [_without_masks(_plain(one), _plain(other)) for one, other in pairs] if problem is None else []
    kind = asked.gate.outputs.get(name) or kind_of(name, [one for one, _ in judged or pairs], asked.gate.task)
    seen = measures(kind, Judged(judged, feeds, asked.gate), closely=asked.closely) if judged else ()
    return OutputParity(
        output=name,
        kind=kind,
        cosine=found.cosine.worst if problem is None else None,
        max_abs=found.max_abs.worst if problem is None else None,
        sqnr_db=found.sqnr_db.worst,
        equal=None,
        identical=found.identical == found.samples > 0,
        reason=problem,
        measures=seen,
        finite=any(bool(np.isfinite(_plain(one)).any()) for one, _ in pairs),
        within_one=bool(judged) and all(float(one.min()) >= 0.0 and within_one(one) for one, _ in judged),
        nothing=asked.may_tell_nothing and tells_nothing(judged, rounded=asked.rounded),
    )


def _without_masks(one: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """What both write as a mask, infinity or NaN becomes the smallest number there is: never the best class."""
    hidden = masked(one, other)
    if not hidden.any():
        return one, other
    rest = one[~hidden]
    least = min(float(rest.min()), 0.0) if rest.size else 0.0
    return np.where(hidden, least, one), np.where(hidden, least, other)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    return values if values.dtype.kind == "f" else values.astype("f4")


def _things(name: str, pairs: Pairs, asked: Asked) -> OutputParity:
    """Over all samples; where there is nothing, nothing differs."""
    seen = (equality(pairs, asked.gate, closely=asked.closely),) if pairs else ()
    same = sum(int(np.sum(one == other)) for one, other in pairs)
    equal = same / sum(one.size for one, _ in pairs) if pairs else 1.0
    return OutputParity(name, None, None, None, None, equal, equal == 1.0, None, seen)


def _unlike(name: str, problem: str) -> OutputParity:
    return OutputParity(name, None, None, None, None, None, identical=False, reason=problem)
