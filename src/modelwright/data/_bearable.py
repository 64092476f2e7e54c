"""Made-up samples for a model that says too little about its inputs: guesses, tried on it until it bears one."""

from __future__ import annotations

import time
from dataclasses import replace

from modelwright.data._generate import generate
from modelwright.data._source import DataSource
from modelwright.errors import WrightError
from modelwright.graph import Graph
from modelwright.models import NoGuessError, guesses
from modelwright.targets import BoundSession, open_as_written
from modelwright.vocabulary import InputSpec
from modelwright.worker import progress

_ENOUGH_S = 60.0


def bearable(source: DataSource, model: str, graph: Graph, count: int) -> DataSource:
    """The source with specs of which the model ran `count` samples. `graph` says what its inputs are. In a child."""
    tried = tuple(guesses(graph))
    silent, until = None, time.monotonic() + _ENOUGH_S
    with open_as_written(model) as session:
        for number, specs in enumerate(tried):
            progress(f"guess {number + 1} of the inputs")
            answered = _answered(session, specs, source.data.seed, count)
            if answered:
                return replace(source, specs=specs)
            silent = specs if answered is not None and silent is None else silent
            if time.monotonic() > until:
                break
    if silent is None:
        raise NoGuessError(
            "no inputs can be made up for the model",
            cause=f"it runs with none of {len(tried)} guesses",
            fix="Give real inputs with `data`.",
        )
    return replace(source, specs=silent)


def _answered(session: BoundSession, specs: InputSpec, seed: int, count: int) -> bool | None:
    """Whether any answer holds a value; None where the model does not run."""
    try:
        answers = [session.run(generate(specs, seed, index)) for index in range(count)]
    except WrightError:
        return None
    return any(getattr(value, "size", 1) for answer in answers for value in answer.values())
