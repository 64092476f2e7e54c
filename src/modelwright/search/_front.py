"""What one search leaves to choose from: who is better in one thing and not known to be worse in all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from modelwright._dataclass import dataclass
from modelwright.search._limits import TuneLimits
from modelwright.search._types import TuneFront, TuneRow
from modelwright.search._variant import BASELINE

_TIMED = (
    "baseline",
    "improved",
    "regressed",
    "equivalent",
    "no gain",
    "not decided",
    "inconclusive",
    "mixed",
    "invalid",
)
# What is faster and slower at once, or was spoilt, has no place on one axis of time.
_NO_TIMES = ("mixed", "invalid")
_PRECISION = "precision="
LATENCY, ENERGY = "latency", "energy"


@dataclass(frozen=True)
class _Beside:
    """One beside another in one thing, as far as it is proven."""

    no_worse: bool
    better: bool


_Axis = Callable[[TuneRow, TuneRow], _Beside]


def front_of(rows: Sequence[TuneRow], champion: str, limits: TuneLimits, *, timed: bool) -> TuneFront:
    """Only what was measured or read counts: a variant is on the front when it is proven better than the baseline in
    one thing, and no other is proven no worse in everything and better in something.

    Of those that nothing tells apart the champion stands for all, or the one that looked best.
    """
    words = _TIMED if any(row.effect is not None for row in rows) else (*_TIMED, "not measured")
    taking = [row for row in rows if row.word in words]
    axes = _axes(taking, limits, timed=timed)
    if len(taking) < 2:
        return TuneFront(tuple(axes), (), "no variant is left beside the baseline")
    if len(axes) < 2:
        return TuneFront(tuple(axes), (), f"only {' and '.join(axes) or 'nothing'} was looked at")
    base = next(row for row in taking if row.label == BASELINE)
    worth = [row for row in taking if row is base or any(axis(row, base).better for axis in axes.values())]
    best = [row for row in worth if not any(_beats(other, row, axes) for other in worth)]
    best.sort(key=lambda row: (row.label != champion, -(row.effect or 0.0)))
    kept: list[TuneRow] = []
    for row in best:
        if not any(_alike(row, other, axes) for other in kept):
            kept.append(row)
    labels = tuple(row.label for row in kept)
    alone = f"nothing is proven better than {labels[0]} in any of {', '.join(axes)}" if len(labels) == 1 else None
    return TuneFront(tuple(axes), labels, alone)


def _axes(rows: Sequence[TuneRow], limits: TuneLimits, *, timed: bool) -> Mapping[str, _Axis]:
    """What is known of everybody who takes part; times (or energy) and losses of whoever has them."""
    min_effect = limits.min_effect
    found: dict[str, _Axis] = {}
    if any(row.low is not None for row in rows):
        found[_raced(limits)] = lambda one, other: _faster(one, other, min_effect)
    if all(row.size is not None for row in rows):
        found["size"] = lambda one, other: _less(one.size, other.size, min_effect)
    if all(row.peak_bytes is not None for row in rows):
        found["memory"] = lambda one, other: _less(one.peak_bytes, other.peak_bytes, min_effect)
    if not timed and all(row.left_nodes is not None for row in rows):
        found["nodes left to the CPU"] = lambda one, other: _less(one.left_nodes, other.left_nodes, 0.0)
    if any(_precision(row) for row in rows):
        found["accuracy"] = _truer
    return found


def _raced(limits: TuneLimits) -> str:
    return ENERGY if limits.objective == ENERGY else LATENCY


def _faster(one: TuneRow, other: TuneRow, min_effect: float) -> _Beside:
    """By their intervals beside the baseline, which is apart from itself by nothing."""
    low, high = _bounds(one)[0], _bounds(other)[1]
    if low is None or high is None:
        return _Beside(one is other, better=False)
    return _Beside(low >= high - min_effect, better=low > high)


def _bounds(row: TuneRow) -> tuple[float | None, float | None]:
    if row.label == BASELINE:
        return 0.0, 0.0
    return (None, None) if row.word in _NO_TIMES else (row.low, row.high)


def _less(one: float | None, other: float | None, min_effect: float) -> _Beside:
    if one is None or other is None:
        return _Beside(no_worse=False, better=False)
    return _Beside(one <= other * (1 + min_effect), better=one < other * (1 - min_effect))


def _truer(one: TuneRow, other: TuneRow) -> _Beside:
    """Within a precision all answer alike. Another one has lost what was measured; what was not is not known."""
    mine, theirs = _precision(one), _precision(other)
    if mine == theirs:
        return _Beside(no_worse=True, better=False)
    if mine is None:
        return _Beside(no_worse=True, better=other.lost is not None and other.lost > 0)
    if theirs is None or one.lost is None or other.lost is None:
        return _Beside(no_worse=False, better=False)
    return _Beside(one.lost <= other.lost, better=False)


def _precision(row: TuneRow) -> str | None:
    return next((word for word in row.label.split(" ") if word.startswith(_PRECISION)), None)


def _beats(one: TuneRow, other: TuneRow, axes: Mapping[str, _Axis]) -> bool:
    found = [axis(one, other) for axis in axes.values()]
    return one is not other and all(each.no_worse for each in found) and any(each.better for each in found)


def _alike(one: TuneRow, other: TuneRow, axes: Mapping[str, _Axis]) -> bool:
    """Nobody is proven better in anything, and but for their times they are the same."""
    there, back = ([axis(*pair) for axis in axes.values()] for pair in ((one, other), (other, one)))
    apart = any(each.better for each in (*there, *back))
    rest = [
        each
        for name in axes
        if name not in (LATENCY, ENERGY)
        for each in (axes[name](one, other), axes[name](other, one))
    ]
    return not apart and all(each.no_worse for each in rest)
