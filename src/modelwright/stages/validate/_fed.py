"""What both models are fed: the user's samples, what their inputs suggest, or what the export bears."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.data import DataSource, bearable, samples
from modelwright.graph import Graph, ValueSpec, inputs_of
from modelwright.models import NoGuessError
from modelwright.stages.validate._outputs import Asked
from modelwright.stages.validate._types import Gate
from modelwright.stages.validate._ways import UnfedError, Ways, both_ways


@dataclass(frozen=True)
class Feeds:
    """`first` is empty where nothing suggests what could be made up; then, or where the export does not bear them,
    others are sought from `made_up`. `held_out` of them are rows that calibration did not use."""

    first: tuple[Mapping[str, Any], ...] = ()
    made_up: DataSource | None = None
    held_out: int = 0


def feeds_for(data: DataSource, graph: Graph, count: int, calibrated: int) -> Feeds:
    """Real data that does not fit the model, and inputs that are too large to be made up, are an InputError."""
    if not data.random:
        found = samples(data, graph, count, after=calibrated)
        return Feeds(tuple(found), held_out=found.held_out if calibrated else 0)
    try:
        return Feeds(tuple(samples(data, graph, count)), data)
    except NoGuessError:
        return Feeds((), data)


def compared(candidate: str, reference: str, graph: Graph, params: Gate, feeds: Feeds) -> Ways:
    """What both answer. A NoGuessError where no inputs could be made up."""
    random, refused = feeds.made_up is not None, None
    try:
        if feeds.first:
            return both_ways(candidate, reference, Asked(feeds.first, params, random))
    except UnfedError as error:
        if feeds.made_up is None:
            raise
        refused = error
    assert feeds.made_up is not None, "real data is never empty"
    try:
        found = bearable(feeds.made_up, reference, graph, params.samples)
    except NoGuessError:
        # Floats can hold anything: a model of fixed sizes that runs with none of them is broken, whatever a user would
        # give. Where a size is free, another one may be what it takes.
        if refused is not None and all(value.dtype == "float32" and _fixed(value) for value in inputs_of(graph)):
            raise refused from None
        raise
    others = tuple(samples(found, graph, params.samples))
    return both_ways(candidate, reference, Asked(others, params, random))


def _fixed(value: ValueSpec) -> bool:
    return value.shape is not None and all(isinstance(size, int) for size in value.shape)
