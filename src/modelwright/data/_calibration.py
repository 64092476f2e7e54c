"""Where calibration samples come from, and reading them one at a time."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._json import digest
from modelwright._lazy import lazy
from modelwright.data._function import UserFunction
from modelwright.data._generate import generate, made_up_bytes
from modelwright.data._given import check_inputs, read_row
from modelwright.data._npz import native
from modelwright.data._npz_rows import NpzRows
from modelwright.errors import InputError
from modelwright.graph import Graph, ValueSpec, summary
from modelwright.models import file_digest, fitted, specs_from_graph
from modelwright.vocabulary import Data, InputSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

Sample = Mapping[str, "NDArray[Any]"]


@dataclass(frozen=True)
class RandomCalibration:
    """Seeded made-up samples; without specs they are guessed from the graph. Never a stand-in for real data."""

    seed: int = 0
    specs: InputSpec = ()
    kind: str = "random"


@dataclass(frozen=True)
class NpzCalibration:
    """One `.npz` file. The first axis counts samples: `(N, *input shape)`, or the input's own batch axis."""

    path: str
    kind: str = "npz"


@dataclass(frozen=True)
class FolderCalibration:
    """A folder of `.npz` files, one sample each, read in the order of their names."""

    path: str
    kind: str = "folder"


@dataclass(frozen=True)
class ReaderCalibration:
    """`file.py:function`; each call of the function gives the same samples as dicts of arrays."""

    path: str
    kind: str = "reader"


@dataclass(frozen=True)
class DrawnSample:
    """One sample as files: name, type and file of each array."""

    arrays: tuple[tuple[str, str, str], ...]
    digest: str


@dataclass(frozen=True)
class DrawnCalibration:
    """What the reader `path` gave, kept in `folder`."""

    folder: str
    path: str
    samples: tuple[DrawnSample, ...]
    kind: str = "reader"


CalibrationSource = RandomCalibration | NpzCalibration | FolderCalibration | ReaderCalibration | DrawnCalibration


def calibration_source(data: Data) -> CalibrationSource:
    """`random`, `folder/`, `file.npz` or `file.py:function`, as a user writes it."""
    text = data.source
    if data.random:
        return RandomCalibration(data.seed)
    if data.function:
        return ReaderCalibration(text)
    path = Path(text)
    if path.is_dir():
        return FolderCalibration(text)
    if path.suffix == ".npz":
        return NpzCalibration(text)
    raise InputError(
        f"{text} is not calibration data",
        cause="it is neither a folder, nor an .npz file, nor file.py:function",
        fix="Give a folder of .npz files, one .npz file, file.py:function, or the word random.",
    )


def identity(source: CalibrationSource, count: int) -> str:
    """SHA-256 of what the source holds; of a reader, the first `count` samples that were drawn from it."""
    assert not isinstance(source, ReaderCalibration), "the samples of a reader are drawn first, in a child"
    if isinstance(source, RandomCalibration):
        return digest(source)
    if isinstance(source, DrawnCalibration):
        return digest([source.kind, [sample.digest for sample in source.samples[:count]]])
    found = _folder_files(source.path) if isinstance(source, FolderCalibration) else (Path(source.path),)
    return digest([source.kind, [(path.name, file_digest(path)) for path in found]])


def data_bytes(source: CalibrationSource) -> int | None:
    """What the samples take, on disk or made up; None when the user's own code gives them, which may take anything."""
    if isinstance(source, ReaderCalibration):
        return None
    if isinstance(source, RandomCalibration):
        return made_up_bytes(source.specs)
    if isinstance(source, DrawnCalibration):
        found = tuple(Path(source.folder).iterdir())
    else:
        found = _folder_files(source.path) if isinstance(source, FolderCalibration) else (Path(source.path),)
    return sum(path.stat().st_size for path in found if path.is_file())


@dataclass(frozen=True)
class Samples:
    """At most `count` samples that fit the model's inputs. Iterating again gives the same ones again."""

    source: CalibrationSource
    signature: tuple[ValueSpec, ...]
    specs: InputSpec
    count: int

    def __iter__(self) -> Iterator[dict[str, NDArray[Any]]]:
        """One sample at a time. None at all is an error."""
        given = 0
        for sample in itertools.islice(self._draw(), self.count):
            given += 1
            yield sample
        if not given:
            raise InputError(
                "there is no calibration sample",
                cause=f"the {self.source.kind} source gave none",
                fix="Give at least one sample; a few dozen from real use is a good number.",
            )

    def _draw(self) -> Iterator[dict[str, NDArray[Any]]]:
        for origin, sample in rows(self.source, self.signature, self.specs):
            check_inputs(sample, self.signature, origin=origin)
            yield sample


def rows(
    source: CalibrationSource, signature: Sequence[ValueSpec], specs: InputSpec
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """Everything the source holds, row by row and unchecked, each with what to call it in an error."""
    if isinstance(source, RandomCalibration):
        for index in itertools.count():
            yield "the made-up sample", generate(specs, source.seed, index)
    elif isinstance(source, FolderCalibration):
        for path in _folder_files(source.path):
            yield path.name, read_row(path, signature)
    else:
        for index, sample in enumerate(_numbered(source, signature)):
            yield f"sample {index} of {Path(source.path).name}", sample


def _numbered(
    source: NpzCalibration | ReaderCalibration | DrawnCalibration, signature: Sequence[ValueSpec]
) -> Iterable[dict[str, NDArray[Any]]]:
    if isinstance(source, NpzCalibration):
        return NpzRows(source.path, signature)
    if isinstance(source, ReaderCalibration):
        return call_reader(source.path)
    return (
        {name: _array(Path(source.folder, file), dtype) for name, dtype, file in one.arrays} for one in source.samples
    )


def _array(path: Path, dtype: str) -> NDArray[Any]:
    """numpy does not write down the types that others add to it, such as bfloat16."""
    array: NDArray[Any] = np.load(path, allow_pickle=False)
    return array if array.dtype.name == dtype else array.view(dtype)


def samples(source: CalibrationSource, graph: Graph, count: int) -> Samples:
    """What the source holds for this model; the graph is read now, the data later."""
    signature = tuple(summary(graph).inputs)
    specs: InputSpec = ()
    if isinstance(source, RandomCalibration):
        specs = fitted(source.specs, signature) if source.specs else specs_from_graph(graph)
    return Samples(source, signature, specs, count)


def samples_digest(drawn: Iterable[Sample]) -> str:
    """SHA-256 over names, types, shapes and values, in order."""
    total = SampleHash()
    for sample in drawn:
        total.add(sample)
    return total.hexdigest()


class SampleHash:
    """The running form of `samples_digest`."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, sample: Sample) -> None:
        for name in sorted(sample):
            array = np.ascontiguousarray(sample[name])
            self._hash.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
            self._hash.update(array.data)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def _folder_files(folder: str) -> tuple[Path, ...]:
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"{folder} is not a folder", cause="no such folder", fix="Check the path.")
    found = tuple(sorted(path.glob("*.npz")))
    if not found:
        raise InputError(
            f"{folder} holds no calibration sample",
            cause="there is no .npz file in it",
            fix="Write each sample with numpy.savez(path, name=array, ...), one array per model input.",
        )
    return found


def call_reader(reference: str) -> Iterator[dict[str, NDArray[Any]]]:
    """What the user's function gives. Only for code that runs in a child."""
    reader = UserFunction(
        reference,
        "the calibration reader",
        "The function takes no arguments and yields dicts: input name -> numpy array.",
    )
    function = reader.load()
    with reader.running():
        given = iter(function())
    while True:
        with reader.running():
            sample = next(given, None)
            if sample is None:
                return
            if not isinstance(sample, Mapping):
                raise reader.failed(f"it gave a {type(sample).__name__}, not a dict of arrays")
            arrays = {str(name): native(np.asarray(value)) for name, value in sample.items()}
            if strange := [name for name, array in arrays.items() if array.dtype.hasobject]:
                raise reader.failed(f"{strange[0]} is no array of numbers but of Python objects")
        yield arrays
