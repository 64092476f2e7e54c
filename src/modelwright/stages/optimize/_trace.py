"""Which of the onnxruntime passes that shared one session did something, and what.

onnxruntime says which ones may have. Where that leaves several, they are switched on one after the other on a copy
without the big weights, and the graphs compared. Runs of passes that change nothing are found by halving, so most of
them never get a session of their own. All of them start from one graph, because a pass may find something to do in its
own result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.stages.optimize._inventory import Snapshot, effect
from modelwright.stages.optimize._ort import OrtRequest, optimize_bytes
from modelwright.stages.optimize._said import may_have_fired
from modelwright.stages.optimize._types import PassEffect
from modelwright.stages.optimize._without_weights import WeightlessModel, fold_movement, read_thin

Probe = Callable[[WeightlessModel, Sequence[str]], WeightlessModel]

FOLDING = "constant_folding"


@dataclass(frozen=True)
class Trace:
    """The effect of adding each pass to those before it, and the graph with all of them."""

    effects: tuple[PassEffect, ...]
    final: Snapshot


def probe_without_weights(scratch: Path, request: OrtRequest) -> Probe:
    """Sessions on copies without the big weights."""
    output = scratch / "probe.onnx"

    def probe(start: WeightlessModel, names: Sequence[str]) -> WeightlessModel:
        optimize_bytes(start.data, start.folder, output, request.only(names))
        return read_thin(output, scratch)

    return probe


def full_probe(model: bytes, folder: Path, scratch: Path, request: OrtRequest) -> Probe:
    """Sessions on the model itself: slower, and right also where the values of big weights matter."""
    output = scratch / "probe.onnx"

    def probe(start: WeightlessModel, names: Sequence[str]) -> WeightlessModel:
        optimize_bytes(model, folder, output, request.only(names), beside=True)
        return read_thin(output, start.folder)

    return probe


class Start:
    """What loading with onnxruntime makes of a model, before any pass. `found` is known without asking; `model` is
    asked for by `load` when sessions have to begin with it, and then decides."""

    def __init__(self, found: Snapshot, load: Callable[[], WeightlessModel]) -> None:
        self._found = found
        self._load = load

    @functools.cached_property
    def model(self) -> WeightlessModel:
        made = self._load()
        self._found = made.found
        return made

    @property
    def found(self) -> Snapshot:
        return self._found


def trace_of_log(names: Sequence[str], start: Start, final: Snapshot, log: str, probe: Probe) -> Trace:
    """`final` is what all passes made of the model, as far as operators go; sessions are only asked what `log` leaves
    open. The answer's own `final` has other operators where the log did not tell all."""
    several = may_have_fired(names, log)
    if not several:
        found = Trace((), start.found)
    elif len(several) == 1 and final.ops != start.found.ops:
        found = Trace((effect(several[0], start.found, final, fired=True),), final)
    else:
        found = trace(several, start.model, probe)
    return Trace(tuple(_with_idle(names, found.effects, start.found)), found.final)


def _with_idle(names: Sequence[str], effects: Sequence[PassEffect], base: Snapshot) -> Iterator[PassEffect]:
    """The effects of all: a pass that did nothing leaves what the one before it left."""
    known, nodes = {item.name: item for item in effects}, base.nodes
    for name in names:
        item = known.get(name) or PassEffect(name, False, nodes, nodes, (), None, None)
        nodes = item.nodes_after
        yield item


def trace(names: Sequence[str], base: WeightlessModel, probe: Probe) -> Trace:
    """`base` is what onnxruntime makes of the model with no pass at all."""
    # Constant folding comes first in the table and moves the most bytes: all other sessions start behind it.
    first = probe(fold_movement(base) if names[0] == FOLDING else base, names[:1])

    def found(chosen: Sequence[str]) -> Snapshot:
        return probe(first, chosen).found

    known = {1: found(names[:1]), len(names): found(names)}
    _halve(names, found, known, 1, len(names))
    head = effect(names[0], base.found, first.found, fired=base.found != first.found)
    rest = (_step(names, known, index) for index in range(1, len(names)))
    final = known[len(names)]
    return Trace(_late((head, *rest), found, final), final)


def _halve(
    names: Sequence[str], found: Callable[[Sequence[str]], Snapshot], known: dict[int, Snapshot], low: int, high: int
) -> None:
    if high - low < 2 or known[low] == known[high]:
        return
    middle = (low + high) // 2
    known[middle] = found(names[:middle])
    _halve(names, found, known, low, middle)
    _halve(names, found, known, middle, high)


def _step(names: Sequence[str], known: dict[int, Snapshot], index: int) -> PassEffect:
    # What was never probed lies between two equal graphs, so the one before it stands for it.
    before = known[max(key for key in known if key <= index)]
    after = known[max(key for key in known if key <= index + 1)]
    return effect(names[index], before, after, fired=before != after)


def _late(
    effects: tuple[PassEffect, ...], found: Callable[[Sequence[str]], Snapshot], final: Snapshot
) -> tuple[PassEffect, ...]:
    """A pass that changed nothing when it was added may still work on what a later one leaves behind."""
    names = [item.name for item in effects]
    fired = [item.name for item in effects if item.fired]
    if len(fired) in (0, len(names)) or found(fired) == final:
        return effects

    def without(name: str) -> PassEffect:
        rest = found([other for other in names if other != name])
        return effect(name, rest, final, fired=rest != final)

    return tuple(item if item.fired else without(item.name) for item in effects)
