"""Samples of a reader, drawn once in a child and kept as files: the user's function runs there and nowhere else."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright._scratch import scratch
from modelwright.data._calibration import (
    CalibrationSource,
    DrawnCalibration,
    DrawnSample,
    ReaderCalibration,
    calibration_source,
    call_reader,
    samples,
    samples_digest,
)
from modelwright.graph import load
from modelwright.models import sizes_in
from modelwright.vocabulary import Data, OnProgress
from modelwright.worker import progress, run, task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

# Seconds between two samples.
_PATIENCE_S = 600.0


@contextlib.contextmanager
def drawn(
    source: CalibrationSource, count: int, place: Path, on_progress: OnProgress | None = None
) -> Iterator[CalibrationSource]:
    """The source as files for as long as this lasts; one that is no reader as it is."""
    if not isinstance(source, ReaderCalibration):
        yield source
        return
    with scratch("samples", place) as folder:
        yield draw(source, count, folder, on_progress)


def draw(
    source: CalibrationSource, count: int, folder: Path, on_progress: OnProgress | None = None
) -> CalibrationSource:
    """The same in a folder of the caller's."""
    if not isinstance(source, ReaderCalibration):
        return source
    call = draw_samples.call(source.path, str(folder), count)
    found = run(call, timeout=_PATIENCE_S, on_progress=on_progress).unwrap()
    return DrawnCalibration(str(folder), source.path, found)


def data_sizes(data: Data, model: Path) -> dict[str, int]:
    """The symbolic dimensions that the first sample shows, looked at in a child."""
    return run(read_sizes.call(calibration_source(data), str(model)), timeout=_PATIENCE_S).unwrap()


@task
def draw_samples(reference: str, folder: str, count: int) -> tuple[DrawnSample, ...]:
    """At most `count` samples of the reader, each array in a file."""
    found = []
    for index, sample in enumerate(itertools.islice(call_reader(reference), count)):
        found.append(DrawnSample(_kept(sample, Path(folder), index), samples_digest([sample])))
        progress(f"drawing sample {index + 1} of {count}", (index + 1) / count)
    return tuple(found)


@task
def read_sizes(source: CalibrationSource, model: str) -> dict[str, int]:
    graph = load(model)
    return sizes_in(next(iter(samples(source, graph, 1))), graph)


def _kept(sample: dict[str, NDArray[Any]], folder: Path, index: int) -> tuple[tuple[str, str, str], ...]:
    kept = []
    for position, (name, array) in enumerate(sample.items()):
        file = f"{index:06}-{position:03}.npy"
        np.save(folder / file, array, allow_pickle=False)
        kept.append((name, array.dtype.name, file))
    return tuple(kept)
