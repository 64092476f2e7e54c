"""Inputs for a graph that says too little about them: what it might take, to be tried until it bears one of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from modelwright.graph import Graph, outputs_of
from modelwright.models._guess import specs_from_graph
from modelwright.vocabulary import Fill, InputSpec, TensorSpec

Shape = tuple[int | str | None, ...] | None
# Guesses at most: a graph that bears none of them will hardly bear the next.
_MOST = 120
# A pair of inputs that both need something special is tried; three are not.
_TOGETHER = 2
_WHOLE = (Fill("integers", 1, 4), Fill("integers", 0, 2), Fill("arange"), Fill("zeros"), Fill("ones"))
_SIGNED = Fill("integers", -1, 0)
_FLOAT = (Fill("uniform", 1, 2), Fill("ones"), Fill("zeros"), Fill("arange", 1))
_BOOL = (Fill("zeros"),)


def guesses(graph: Graph) -> Iterator[InputSpec]:
    """The likeliest first. An input without a type, a shape or a size is an InputError."""
    shapes = [value.shape for value in outputs_of(graph)]
    options = [_options(spec, shapes) for spec in specs_from_graph(graph, unranged=_WHOLE[0])]
    for chosen in itertools.islice(_choices([len(one) for one in options]), _MOST):
        yield tuple(one[index] for one, index in zip(options, chosen, strict=True))


def _options(likely: TensorSpec, shapes: Sequence[Shape]) -> tuple[TensorSpec, ...]:
    others = _others(likely.dtype, likely.sizes, shapes)
    return (likely, *(replace(likely, fill=fill) for fill in others if fill != likely.fill))


def _others(dtype: str, sizes: tuple[int, ...], shapes: Sequence[Shape]) -> Iterator[Fill]:
    """What inputs of this type often are: numbers, indices, axes, sizes, or the shape that an output will have."""
    if dtype == "bool":
        yield from _BOOL
    elif dtype.startswith(("int", "uint")):
        yield from _WHOLE[1:]
        if dtype.startswith("int"):
            yield _SIGNED
        for shape in shapes:
            numbers = tuple(dim for dim in shape or () if isinstance(dim, int))
            if shape and sizes == (len(shape),) == (len(numbers),):
                yield Fill("given", values=numbers)
    elif dtype.startswith(("float", "bfloat")):
        yield from _FLOAT


def _choices(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Which option each input has: the same for all of them, then another one for one of them, then for two."""
    seen: set[tuple[int, ...]] = set()
    for chosen in itertools.chain(_alike(counts), _apart(counts)):
        if chosen not in seen:
            seen.add(chosen)
            yield chosen


def _alike(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for index in range(max(counts, default=1)):
        yield tuple(min(index, count - 1) for count in counts)


def _apart(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for number in range(1, _TOGETHER + 1):
        for places in itertools.combinations(range(len(counts)), number):
            for picks in itertools.product(*(range(1, counts[place]) for place in places)):
                chosen = dict(zip(places, picks, strict=True))
                yield tuple(chosen.get(place, 0) for place in range(len(counts)))
