"""How an output of numbers is judged: by what it is, with the bounds of the precision that is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.stages.validate._decisions import (
    SEEN,
    ChangedDecisions,
    best_classes,
    chances,
    neighbours,
    places,
    rare_classes,
    readings,
    things,
    unit,
)
from modelwright.stages.validate._detections import changed_detections
from modelwright.stages.validate._kinds import BOX, Stacked, are_shares, is_picture, slice_axis, stacked, within_one
from modelwright.stages.validate._listed import PickedRows, changed_rows, matched_rows
from modelwright.stages.validate._slices import FEWEST, decibels, off_level, worst_slice
from modelwright.stages.validate._types import (
    CLOSE,
    EQUAL,
    Gate,
    Measure,
    OutputKind,
    cosine_bound,
    is_quantized,
    top1_bound,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pairs = Sequence[tuple[NDArray[Any], NDArray[Any]]]
else:
    np = lazy("numpy")

# A slice that is destroyed has an error as large as itself, 0 dB; the worst slice of a good 8-bit build is above this.
_SLICE_DB = 3.0
# Where the export answers zero: no more than float32 leaves of numbers around one.
_ROUNDING = 1e-6
# Similarities of embeddings must agree more than the embeddings themselves: a ranking has small differences.
_NEIGHBOURS = {True: 0.88, False: 0.999}
_FEWEST_ROWS = 8
# Pictures that differ by more than that differ to the eye.
_PICTURES = {True: 25.0, False: 40.0}
# Symbols of a text: two in a hundred are about one line in four, and half of those were near-ties.
_EDITS = 0.02
# Of one row of scores for each sample: good 8-bit builds have 0.98 and more, a classifier with 0.94 lost 4.5 points.
_SCORES = 0.95
_BORDERS = 0.15
# Of what is likely: a transcriber of notes that changes 6 of 100 loses nothing, one that changes 20 a twelfth of them.
_CHANCES = 0.10


@dataclass(frozen=True)
class Judged:
    """One output over all samples: what both gave, what the model was fed, and what is claimed."""

    pairs: Pairs
    feeds: Sequence[Mapping[str, Any]]
    gate: Gate


def measures(kind: OutputKind, what: Judged, *, closely: bool = True) -> tuple[Measure, ...]:
    """All of an output at once, and where it is to be looked at `closely`, by what it is."""
    vectors = kind == "embeddings"
    pairs = list(zip(*_vectors_of(what), strict=True)) if vectors else what.pairs
    single = kind == "scores" and all(one.size == one.shape[-1] for one, _ in what.pairs if one.ndim)
    whole = _whole(pairs, what.gate, _SCORES if closely and single else 0.0, closely=closely)
    return (whole, *(_MEASURES[kind](what) if closely else ()))


def _whole(pairs: Pairs, gate: Gate, least: float, *, closely: bool) -> Measure:
    """The cosine over all samples, or of the worst where there are only a few that are made up."""
    bound = gate.min_cosine if gate.min_cosine is not None else max(least, cosine_bound(gate.precision))
    sums = [_sums(one, other) for one, other in pairs]
    cosine, off = _apart(np.sum(sums, axis=0)) if closely else min(map(_apart, sums))
    # So far apart are two vectors with this cosine whose difference has nothing of the first; a wrong size is farther.
    most = math.tan(math.acos(bound))
    words = f"cosine {cosine:.5f}, {gate.precision} needs {bound}"
    if cosine >= bound and off > most:
        words = f"{off:.1%} off though the cosine is {cosine:.5f}, {gate.precision} may be {most:.1%}"
    return Measure(CLOSE, cosine, bound, cosine >= bound and off <= most, words)


def _sums(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    first, second = one.astype(np.float64).ravel(), other.astype(np.float64).ravel()
    error = second - first
    return np.array([first @ second, first @ first, second @ second, error @ error, np.abs(error).max(initial=0.0)])


def _apart(sums: NDArray[Any]) -> tuple[float, float]:
    """Cosine and relative error. What is as near to nothing but zeros as rounding is to them is equal."""
    dot, first, second, noise, largest = map(float, sums)
    if noise == 0.0 or (first == 0.0 and largest <= _ROUNDING):
        return 1.0, 0.0
    if first == 0.0 or second == 0.0:
        return 0.0, math.inf
    return max(-1.0, min(1.0, dot / math.sqrt(first) / math.sqrt(second))), math.sqrt(noise / first)


def _slices(what: Judged) -> Iterator[Measure]:
    """The worst slice, where there are enough numbers in each to know its scale."""
    first = what.pairs[0][0]
    axis = slice_axis(first)
    shapes = {(one.ndim, None if axis is None else one.shape[axis : axis + 1]) for one, _ in what.pairs}
    if axis is None or len(shapes) > 1 or first.shape[axis] < 2:
        yield from _level(what, what.pairs)
    elif sum(one.size for one, _ in what.pairs) // first.shape[axis] >= FEWEST:
        yield _slice(what.pairs, axis, what.gate, "slices")


def _level(what: Judged, pairs: Pairs) -> Iterator[Measure]:
    """Numbers that are all of one kind, such as an age: that they follow the input, and not only their usual size."""
    if not is_quantized(what.gate.precision) or sum(one.size for one, _ in pairs) < FEWEST:
        return
    found, bound = decibels(off_level(pairs)), _slice_bound(what.gate)
    if found is not None:
        words = f"what changes with the input: {found:.1f} dB above its error, {what.gate.precision} needs {bound:.1f}"
        yield Measure("follows the input", found, bound, found >= bound, words, decibels=True)


def _slice(pairs: Pairs, axis: int, gate: Gate, called: str, *, together: bool = False) -> Measure:
    found, bound = worst_slice(pairs, axis, together=together), _slice_bound(gate)
    name = f"worst of {found.count} {called}"
    if found.sqnr_db is None:
        return Measure(name, None, bound, True, f"{name}: no difference", decibels=True)
    words = f"{name}, number {found.index}: {found.sqnr_db:.1f} dB above its error, {gate.precision} needs {bound:.1f}"
    return Measure(name, found.sqnr_db, bound, found.sqnr_db >= bound, words, decibels=True)


def _scores(what: Judged) -> Iterator[Measure]:
    wanted, got = ([_rows(pair[side]) for pair in what.pairs] for side in (0, 1))
    if len({rows.shape[1] for rows in wanted}) > 1:
        return
    read = readings(wanted, got) if max(map(len, wanted)) > 1 and wanted[0].shape[1] > 2 else None
    if read is not None:
        yield _changed("same reading", read, what.gate, _EDITS if is_quantized(what.gate.precision) else 0.0)
        return
    if max(map(len, wanted)) == 1 and not are_shares([one for one, _ in what.pairs]):
        yield from _slices(what)
    yield from _best(np.concatenate(wanted), np.concatenate(got), what.gate, _may_change(what.gate))


def _best(wanted: NDArray[Any], got: NDArray[Any], gate: Gate, rare_share: float) -> Iterator[Measure]:
    if wanted.shape[1] == 1 and not within_one(wanted):
        return
    clear, every = best_classes(wanted, got)
    yield _changed("same best class", clear, gate, _may_change(gate) / 2)
    rare = rare_classes(wanted, got)
    if rare is not None:
        yield _changed("same rare classes", rare, gate, rare_share)
    if is_quantized(gate.precision):
        yield _changed("same best class", every, gate, _may_change(gate))


def _maps(what: Judged) -> Iterator[Measure]:
    yield from _slices(what)
    pictures = [pair for pair in what.pairs if is_picture(pair[0])]
    if not pictures:
        return
    axis = slice_axis(pictures[0][0])
    assert axis is not None
    if len({one.shape[axis] for one, _ in pictures}) > 1:
        return
    wanted, got = (np.concatenate([_pixels(pair[side], axis) for pair in pictures]) for side in (0, 1))
    if wanted.shape[1] == 1:
        if within_one(wanted):
            yield _changed("same regions", places(wanted[:, 0], got[:, 0]), what.gate, _regions(what.gate))
        return
    yield from _best(wanted, got, what.gate, _regions(what.gate))


def _images(what: Judged) -> Iterator[Measure]:
    """Beside the export, as pictures are compared: of the largest value that there is."""
    yield from _slices(what)
    wanted = [one for one, _ in what.pairs]
    reach = max(float(one.max()) for one in wanted) - min(float(one.min()) for one in wanted)
    noise = [float(np.mean((other.astype(np.float64) - one) ** 2)) for one, other in what.pairs]
    found, bound = decibels(math.sqrt(sum(noise) / len(noise)) / max(reach, 1e-30)), _PICTURES[_quantized(what)]
    if found is not None:
        words = f"peak {found:.1f} dB above the error, {what.gate.precision} needs {bound:.1f}"
        yield Measure("same picture", found, bound, found >= bound, words, decibels=True)


def _quantized(what: Judged) -> bool:
    return what.gate.elsewhere or is_quantized(what.gate.precision)


def _regions(gate: Gate) -> float:
    """A region has borders, and those move first: a detector of text that moved 11 % of it finds the same lines."""
    return _BORDERS if is_quantized(gate.precision) and gate.min_top1 is None else _may_change(gate)


def _detections(what: Judged) -> Iterator[Measure]:
    """Boxes by column; scores by themselves, since they are small beside boxes; and what is seen in the end."""
    layout = stacked([one for one, _ in what.pairs])
    if layout is None:
        yield from _slices(what)
        return
    tables = [(layout.table(one), layout.table(other)) for one, other in what.pairs]
    yield _slice([(one[:BOX], other[:BOX]) for one, other in tables], 0, what.gate, "columns of boxes")
    yield _energy([(layout.scores(one), layout.scores(other)) for one, other in tables], what.gate)
    yield from _coefficients(tables, layout, what.gate)
    clear, every = changed_detections(tables, layout)
    yield _changed("same detections", clear, what.gate, _may_change(what.gate) / 2)
    if is_quantized(what.gate.precision):
        yield _changed("same detections", every, what.gate, _may_change(what.gate))


def listed(pairs: Sequence[tuple[PickedRows, PickedRows]], gate: Gate, *, closely: bool = True) -> tuple[Measure, ...]:
    """Of lists that the graph itself orders: what is in both, and how near it is; where a row stands says nothing.

    What is seen in made-up inputs is a near-tie throughout: then one side must only have to do with the other.
    """
    if not closely:
        found, _ = changed_rows(pairs)
        return (_changed("same detections", found, gate, 0.5),) if found.asked else ()
    both = [matched_rows(one, other) for one, other in pairs]
    boxes, scores = (
        [(getattr(a, part)[ours], getattr(b, part)[its]) for (a, b), (ours, its) in zip(pairs, both, strict=True)]
        for part in ("boxes", "scores")
    )
    count = sum(len(ours) for ours, _ in both)
    near = [_whole(boxes, gate, 0.0, closely=True)] if count else []
    near += [_slice(boxes, 1, gate, "columns of boxes")] if count >= FEWEST else []
    near += [_energy(scores, gate)] if count else []
    clear, every = changed_rows(pairs)
    seen = [_changed("same detections", clear, gate, _may_change(gate) / 2)]
    seen += [_changed("same detections", every, gate, _may_change(gate))] if is_quantized(gate.precision) else []
    return (*near, *seen)


def _coefficients(tables: Pairs, layout: Stacked, gate: Gate) -> Iterator[Measure]:
    """What is stacked behind the scores counts where something is seen: a mask is the sum of pictures, so much of each,
    and a wrong share of a picture that is hardly used shows no more than that of another."""
    places = [layout.scores(one).max(axis=0) >= SEEN for one, _ in tables]
    rest = [
        (one[layout.scored :, seen], other[layout.scored :, seen])
        for (one, other), seen in zip(tables, places, strict=True)
    ]
    if rest[0][0].shape[0] > 1 and sum(int(seen.sum()) for seen in places) >= FEWEST:
        yield _slice(rest, 0, gate, "coefficients", together=True)


def _chances(what: Judged) -> Iterator[Measure]:
    wanted, got = (np.concatenate([pair[side].ravel() for pair in what.pairs]) for side in (0, 1))
    share = _CHANCES if is_quantized(what.gate.precision) and what.gate.min_top1 is None else _may_change(what.gate)
    yield _changed("same chances", chances(wanted, got), what.gate, share)
    if not is_quantized(what.gate.precision):
        yield from _slices(what)


def _energy(pairs: Pairs, gate: Gate) -> Measure:
    signal = sum(float((one.astype(np.float64) ** 2).sum()) for one, _ in pairs)
    noise = sum(float(((other.astype(np.float64) - one) ** 2).sum()) for one, other in pairs)
    found, bound = decibels(math.sqrt(noise / max(signal, 1e-30))), bound_db(gate)
    if found is None:
        return Measure("scores", None, bound, True, "scores alone: no difference", decibels=True)
    words = f"scores alone: {found:.1f} dB above their error, {gate.precision} needs {bound:.1f}"
    return Measure("scores", found, bound, found >= bound, words, decibels=True)


def _embeddings(what: Judged) -> Iterator[Measure]:
    """A vector for each sample: of tokens the mean of those that the mask keeps."""
    wanted, got = map(np.concatenate, _vectors_of(what))
    if is_quantized(what.gate.precision) and all(one.ndim == 3 and one.shape[1] > 1 for one, _ in what.pairs):
        yield _first_tokens(what)
    if len(wanted) < _FEWEST_ROWS:
        yield from _level(what, [(wanted - wanted.mean(axis=0), got - wanted.mean(axis=0))])
        return
    value, bound = neighbours(wanted, got), _NEIGHBOURS[is_quantized(what.gate.precision)]
    words = f"similarities of {len(wanted)} samples correlate by {value:.4f}, {what.gate.precision} needs {bound}"
    yield Measure("same neighbours", value, bound, value >= bound, words)


def _first_tokens(what: Judged) -> Measure:
    """Many take the first token for the vector of a sample, and among the others it would not be seen."""
    first = [(unit(one[:, 0].astype(np.float64)), unit(other[:, 0].astype(np.float64))) for one, other in what.pairs]
    value = float(np.mean(np.concatenate([(one * other).sum(axis=1) for one, other in first])))
    bound = cosine_bound(what.gate.precision) if what.gate.min_cosine is None else what.gate.min_cosine
    words = f"cosine of first tokens {value:.4f}, {what.gate.precision} needs {bound}"
    return Measure("first token", value, bound, value >= bound, words)


def equality(pairs: Pairs, gate: Gate, *, closely: bool = True) -> Measure:
    """Of what is right or wrong (classes, masks, words), over all samples: one near-tie among few decides nothing."""
    wanted, got = (np.concatenate([np.ravel(pair[side]) for pair in pairs]) for side in (0, 1))
    if wanted.dtype.kind == "O":
        wanted, got = wanted.astype(str), got.astype(str)
    plain = ChangedDecisions(int((wanted != got).sum()), wanted.size, "values")
    found = things(wanted, got) if closely else plain
    share = _regions(gate) if found.asked < wanted.size and is_picture(pairs[0][0]) else _may_change(gate)
    # Indices of near-ties change places when another machine rounds; what has nothing to do with them is wrong there.
    return _changed(EQUAL, found, gate, 0.5 if gate.elsewhere else share)


def _vectors_of(what: Judged) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """Of the export and of the artifact, sample by sample."""
    both = list(zip(what.pairs, what.feeds, strict=True))
    return [_vectors(one, feed) for (one, _), feed in both], [_vectors(other, feed) for (_, other), feed in both]


def _vectors(values: NDArray[Any], feed: Mapping[str, Any]) -> NDArray[Any]:
    """Of length one."""
    values = values.astype(np.float64)
    if values.ndim != 3:
        return unit(values.reshape(len(values) if values.ndim > 1 else 1, -1))
    mask = np.asarray(feed.get("attention_mask", np.ones(values.shape[:2])))
    mask = mask if mask.shape == values.shape[:2] else np.ones(values.shape[:2])
    return unit((values * mask[..., None]).sum(axis=1))


def _may_change(gate: Gate) -> float:
    return 1.0 - (gate.min_top1 if gate.min_top1 is not None else top1_bound(gate.precision))


def _changed(name: str, found: ChangedDecisions, gate: Gate, share: float) -> Measure:
    """One changed decision never decides about a quantized artifact: it may be the only near-tie among few samples."""
    allowed = max(math.floor(share * found.asked), 1 if is_quantized(gate.precision) or gate.elsewhere else 0)
    value = 1.0 - found.changed / found.asked if found.asked else None
    words = f"{name}: {found.changed} of {found.asked} {found.of} changed, {gate.precision} may change {allowed}"
    return Measure(name, value, 1.0 - share, found.changed <= allowed, words)


def bound_db(gate: Gate) -> float:
    """The cosine that is asked for, as a ratio: two vectors of one length that are so far apart have that cosine."""
    cosine = gate.min_cosine if gate.min_cosine is not None else cosine_bound(gate.precision)
    return -10.0 * math.log10(2.0 * (1.0 - cosine))


def _slice_bound(gate: Gate) -> float:
    return _SLICE_DB if gate.elsewhere or is_quantized(gate.precision) else bound_db(gate)


def _rows(values: NDArray[Any]) -> NDArray[Any]:
    return values.reshape(-1, values.shape[-1] if values.ndim else 1)


def _pixels(values: NDArray[Any], axis: int) -> NDArray[Any]:
    return np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])


_MEASURES: Mapping[OutputKind, Callable[[Judged], Iterator[Measure]]] = {
    "scores": _scores,
    "chances": _chances,
    "boxes": _slices,
    "detections": _detections,
    "embeddings": _embeddings,
    "states": _slices,
    "maps": _maps,
    "images": _images,
    "other": _slices,
}
