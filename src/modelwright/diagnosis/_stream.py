"""Both models side by side, tensor by tensor, in chunks that fit the memory budget. Runs in a child."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import Sample, Samples
from modelwright.diagnosis._match import Pair
from modelwright.diagnosis._match_view import View
from modelwright.diagnosis._stream_model import FED, SHADOW, Shadow, shadow_of, shown, sized
from modelwright.diagnosis._stream_sums import LocalNoise, NoiseTally, local_noise
from modelwright.graph import model_bytes, stored_bytes
from modelwright.metrics import LENGTH, Accumulator, blocked_compare, leaves
from modelwright.stages.validate import LARGE_BYTES, are_classes
from modelwright.targets import (
    BoundSession,
    SessionFacts,
    SessionSpec,
    Target,
    in_blocks,
    open_lean,
    open_session,
    parse_target,
)
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

FLOATS = ("float32", "float16", "float64")
# The graph as it is written, computed in floats: no integer kernels, only what is constant is folded. Packed weights
# would double memory.
AS_WRITTEN = SessionSpec(
    graph_optimization="basic", config={"session.disable_prepacking": "1", "session.disable_quant_qdq": "1"}
)
# Of a large model nothing is folded either: that would keep a float form of every stored weight.
AS_WRITTEN_LARGE = replace(AS_WRITTEN, graph_optimization="disabled", frugal=True)
# Nor of a long one: each pass over a graph sorts it anew, with a cost that grows with the square of the nodes that
# wait for no other. Stored weights and what is run again wait for none.
AS_WRITTEN_LONG = replace(
    AS_WRITTEN, graph_optimization="disabled", config={**(AS_WRITTEN.config or {}), "enable_mem_pattern": "0"}
)
LONG_NODES = 2_000
# Measured on 1.1 and 1.4 GB: the tool and its worker.
_TOOL_BYTES = 105_000_000
_BYTES = {"float16": 2, "float32": 4, "float64": 8}


@dataclass(frozen=True, eq=False)
class StreamJob:
    """What to run: the float model on the CPU, the other one on `target`, and how much memory tensors may take."""

    wanted: View
    got: View
    target: Target
    feed: Samples
    outputs: tuple[tuple[str, str], ...]
    budget: int
    origin: bool
    half: bool

    @property
    def large(self) -> bool:
        return max(model_bytes(side.graph.path) for side in (self.wanted, self.got)) >= LARGE_BYTES

    @property
    def copies(self) -> int:
        """Of each tensor: both models', and what the float nodes make of the other's."""
        return 3 if self.origin else 2

    @property
    def as_written(self) -> SessionSpec:
        if self.large:
            return AS_WRITTEN_LARGE
        return AS_WRITTEN_LONG if max(len(side.nodes) for side in (self.wanted, self.got)) >= LONG_NODES else AS_WRITTEN


@dataclass(eq=False)
class Track:
    """What is gathered about one pair."""

    pair: Pair
    cumulative: NoiseTally = field(default_factory=NoiseTally)
    local: NoiseTally = field(default_factory=NoiseTally)
    introduced: NoiseTally = field(default_factory=NoiseTally)
    region: tuple[int, ...] = ()
    clipped: int = 0
    clip_noise: float = 0.0

    def add_local(self, found: LocalNoise) -> None:
        self.local.add(found.scores)
        self.clipped += found.clipped
        self.clip_noise += found.clip_noise


@dataclass(eq=False)
class Streamed:
    """Everything the runs gave. `executed` are the outputs of the other model as onnxruntime really runs it; of those
    in `classes` the best one is the answer."""

    tracks: list[Track]
    outputs: dict[str, Accumulator]
    executed: dict[str, Accumulator]
    classes: set[str] = field(default_factory=set)
    facts: SessionFacts | None = None
    chunks: int = 0
    samples: int = 0
    planned_bytes: int | None = None


@dataclass(frozen=True)
class Sizes:
    """Type and number of bytes of each tensor, on the first sample."""

    types: Mapping[str, str]
    bytes: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Tensors that are looked at together. `partner` also names what the shadow nodes are fed."""

    tracks: tuple[Track, ...]
    shadow: Shadow
    partner: Mapping[str, str]
    with_outputs: bool


@dataclass(frozen=True, eq=False)
class _Sessions:
    wanted: BoundSession
    got: BoundSession
    executed: BoundSession | None


def stream(job: StreamJob, pairs: Sequence[Pair], each: Callable[[Streamed], None]) -> Streamed:
    """Compare every pair that holds floats; memory does not depend on the number of samples.

    `each` sees what there is after every sample.
    """
    progress("measuring tensor sizes")
    sizes = _sizes(job, [pair.tensor for pair in pairs])
    tracks = [Track(pair) for pair in pairs if sizes.types.get(pair.tensor) in FLOATS]
    chunks = _cut(job, tracks, sizes)
    names = [name for name, _ in job.outputs]
    found = Streamed(tracks, {name: Accumulator() for name in names}, {name: Accumulator() for name in names})
    found.chunks, found.planned_bytes = len(chunks), _planned(job, chunks, sizes)
    if found.planned_bytes is not None:
        progress(f"comparing {len(tracks)} tensors: at most about {found.planned_bytes / 2**20:,.0f} MiB of memory")
    for number, chunk in enumerate(chunks):
        for _ in _run(job, chunk, sizes, found, number):
            each(found)
    return found


def _planned(job: StreamJob, chunks: Sequence[_Chunk], sizes: Sizes) -> int | None:
    """Of a large model, whose weights stay in files: the float form of one of them, and the tensors of a chunk."""
    if not job.large or job.target != parse_target("cpu"):
        return None
    stored = (stored_bytes(tensor.data_type, tensor.dims) or 0 for tensor in job.wanted.stored.values())
    held = (sum(sizes.bytes[track.pair.tensor] for track in chunk.tracks) for chunk in chunks)
    return _TOOL_BYTES + max(stored, default=0) + job.copies * max(held, default=0)


def _sizes(job: StreamJob, tensors: list[str]) -> Sizes:
    inputs = next(iter(job.feed))
    made = [name for name in tensors if name in job.wanted.makers]
    cpu = parse_target("cpu")
    # Only opened: outputs are kept until a run is over.
    with open_session(shown(job.wanted, made), cpu, job.as_written) as session:
        types = {spec.name: spec.dtype for spec in (*session.inputs, *session.outputs)}
    # Nothing else is compared on the way, and sequences and maps have no Size.
    made = [name for name in made if types.get(name) in FLOATS]
    elements = _elements(job, made, inputs) if made else {}
    elements |= {name: inputs[name].size for name in tensors if name in inputs}
    return Sizes(types, {name: count * _BYTES.get(types.get(name, ""), 4) for name, count in elements.items()})


def _elements(job: StreamJob, tensors: Sequence[str], inputs: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    with open_session(sized(job.wanted, tensors), parse_target("cpu"), job.as_written) as session:
        counts = session.run(inputs)
    return {name: int(counts[f"{name}::size"]) for name in tensors}


def _cut(job: StreamJob, tracks: Sequence[Track], sizes: Sizes) -> list[_Chunk]:
    """Neighbours in graph order; a tensor larger than the budget gets a chunk of its own."""
    groups: list[list[Track]] = [[]]
    used = 0
    for track in tracks:
        size = job.copies * sizes.bytes[track.pair.tensor]
        if groups[-1] and used + size > job.budget:
            groups.append([])
            used = 0
        groups[-1].append(track)
        used += size
    everyone = {track.pair.tensor: track.pair.quant for track in tracks}
    return [_chunk(job, group, everyone, first=number == 0) for number, group in enumerate(groups)]


def _chunk(job: StreamJob, tracks: list[Track], everyone: Mapping[str, str], *, first: bool) -> _Chunk:
    made = [track.pair.tensor for track in tracks if track.pair.tensor in job.wanted.makers]
    shadow = shadow_of(job.wanted, made, frozenset(everyone)) if job.origin else Shadow((), {})
    for track in tracks:
        track.region = shadow.nodes.get(track.pair.tensor, ())
    needed = (*(track.pair.tensor for track in tracks), *shadow.fed)
    return _Chunk(tuple(tracks), shadow, {name: everyone[name] for name in needed}, first)


def _run(job: StreamJob, chunk: _Chunk, sizes: Sizes, found: Streamed, number: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        sessions = _open(job, chunk, sizes, stack)
        found.facts = found.facts or sessions.got.facts
        for index, sample in enumerate(job.feed.labelled()):
            _compare_sample(job, chunk, sessions, sample, (sizes, found))
            found.samples += chunk.with_outputs
            yield
            share = (number + (index + 1) / job.feed.count) / found.chunks
            progress(f"comparing: chunk {number + 1} of {found.chunks}, sample {index + 1}", share)


def _open(job: StreamJob, chunk: _Chunk, sizes: Sizes, stack: contextlib.ExitStack) -> _Sessions:
    cpu = parse_target("cpu")
    ends = job.outputs if chunk.with_outputs else ()
    theirs = list(dict.fromkeys([*chunk.partner.values(), *(name for _, name in ends)]))
    ours = [*(track.pair.tensor for track in chunk.tracks), *(name for name, _ in ends)]
    shadow = chunk.shadow if chunk.shadow.nodes else None
    spec = job.as_written if job.target == cpu else SessionSpec()
    got = stack.enter_context(open_session(shown(job.got, theirs), job.target, spec))
    wanted = stack.enter_context(open_session(shown(job.wanted, ours, shadow, sizes.types), cpu, job.as_written))
    executed = _executed(job) if chunk.with_outputs else None
    return _Sessions(wanted, got, stack.enter_context(executed) if executed is not None else None)


def _executed(job: StreamJob) -> BoundSession:
    """As a user runs it; a large model without a second copy of its weights."""
    path = str(job.got.graph.path)
    lean = job.large and job.target == parse_target("cpu") and not in_blocks(path)
    return open_lean(path) if lean else open_session(path, job.target)


def _compare_sample(
    job: StreamJob, chunk: _Chunk, sessions: _Sessions, sample: Sample, into: tuple[Sizes, Streamed]
) -> None:
    sizes, found = into
    inputs = sample.inputs
    other_inputs = _as_declared(inputs, {spec.name: spec.dtype for spec in sessions.got.inputs})
    theirs = sessions.got.run(other_inputs)
    fed = {FED + name: theirs[chunk.partner[name]].astype(sizes.types[name], copy=False) for name in chunk.shadow.fed}
    ours = {**sessions.wanted.run({**inputs, **fed}), **inputs}
    del fed
    if sessions.executed is not None:
        real = sessions.executed.run(other_inputs)
        for name, other in job.outputs:
            answer = _whole(ours[name])
            found.outputs[name].add(answer, _whole(theirs[other]))
            found.executed[name].add(answer, _whole(real[other]))
            if found.samples == 0 and _chooses(name, answer, sample.label):
                found.classes.add(name)
    for track in chunk.tracks:
        _compare_track(track, ours, theirs, job)


def _whole(answer: Any) -> NDArray[Any]:
    """Of a sequence or a map all values in a row: another length is another shape, and no value itself."""
    if not isinstance(answer, list | dict):
        return np.asarray(answer)
    parts = [np.ravel(part) for name, part in leaves({"": answer}) if not name.endswith(LENGTH)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _chooses(name: str, answer: NDArray[Any], label: int | None) -> bool:
    """Is one class of a row the answer? By what it is, or because the data has a label that it could be."""
    labelled = label is not None and answer.ndim == 2 and 0 <= label < answer.shape[-1]
    return answer.size > 0 and answer.dtype.kind == "f" and (labelled or are_classes(name, [answer]))


def _compare_track(
    track: Track, ours: dict[str, NDArray[Any]], theirs: dict[str, NDArray[Any]], job: StreamJob
) -> None:
    name = track.pair.tensor
    wanted, got = ours[name], theirs[track.pair.quant]
    scored = blocked_compare(wanted, got)
    track.cumulative.add(scored)
    if track.pair.grid is not None and track.pair.grid.limits is not None:
        track.add_local(local_noise(wanted, track.pair.grid))
    elif job.half and got.dtype.name == "float16":
        track.local.add(blocked_compare(wanted, wanted.astype(got.dtype)))
    if job.origin:
        again = ours.pop(SHADOW + name, None)
        track.introduced.add(scored if again is None else blocked_compare(again, got))


def _as_declared(inputs: Mapping[str, NDArray[Any]], types: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Floats in the type the other model declares (a float16 model may take float16)."""
    return {
        name: array.astype(types[name])
        if array.dtype.kind == "f" and types.get(name, "").startswith("float")
        else array
        for name, array in inputs.items()
        if name in types
    }
