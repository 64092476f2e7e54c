"""Realistic inputs for an ONNX file: as its export recorded them, and guessed where nothing is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modelwright.errors import InputError, UsageError, did_you_mean
from modelwright.graph import Graph, ValueSpec, summary
from modelwright.models._build_folder import recorded_inputs
from modelwright.models._embedding import index_bound
from modelwright.vocabulary import Fill, InputSpec, TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEQUENCE, IMAGE, PAST = 128, 224, 16
_SAMPLES, _FRAMES = 16_000, 3_000
# Names of symbolic dimensions, most specific first.
_DIM_NAMES: tuple[tuple[str, int], ...] = (
    (r"batch|^[nb]$", 1),
    (r"channel|^c$", 3),
    (r"height|width|^[hw]$|image_size", IMAGE),
    (r"past|cache|history", PAST),
    (r"frame", _FRAMES),
    (r"sample|audio", _SAMPLES),
    (r"seq|length|len|token|text|time|^[lts]$", SEQUENCE),
)
_AUDIO_INPUTS = {"input_values": _SAMPLES, "input_features": _FRAMES}
_INTEGERS = ("int", "uint")


class NoGuessError(InputError):
    """Nothing tells what could be made up for the model."""


def specs_from_graph(
    graph: Graph,
    *,
    sizes: Mapping[str, int] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    recorded: InputSpec | None = None,
    unranged: Fill | None = None,
) -> InputSpec:
    """A spec per graph input. `sizes` sets symbolic dimensions (an unnamed one is `input:axis`),
    `ranges` sets half-open value ranges by input name; both win over what the export recorded, and that over every
    guess. `recorded` is looked up beside the model unless given. Integers of an unknown range are an error, unless
    `unranged` says what they are to be."""
    signature = summary(graph).inputs
    ranges = dict(ranges or {})
    _refuse_unknown("input", ranges, [value.name for value in signature])
    known = _known(graph, recorded)
    dims = _Dimensions(signature, dict(sizes or {}), known)
    return tuple(
        _spec(graph, value, dims, ranges.get(value.name), known.get(value.name), unranged) for value in signature
    )


def fitted(specs: InputSpec, signature: Sequence[ValueSpec]) -> InputSpec:
    """The same inputs for a graph that has fixed some of their sizes since."""
    shapes = {value.name: value.shape for value in signature if value.shape is not None}
    return tuple(replace(spec, sizes=_fixed(spec, shapes.get(spec.name, ()))) for spec in specs)


def _fixed(spec: TensorSpec, shape: tuple[int | str | None, ...]) -> tuple[int, ...]:
    if len(shape) != len(spec.sizes):
        return spec.sizes
    return tuple(dim if isinstance(dim, int) else size for dim, size in zip(shape, spec.sizes, strict=True))


def symbolic_sizes(graph: Graph, known: Mapping[str, int] | None = None) -> dict[str, int]:
    """Each symbolic dimension of the inputs with its size: `known`, recorded, or what its name or place suggests."""
    signature = summary(graph).inputs
    dims = _Dimensions(signature, dict(known or {}), _known(graph, None))
    return {
        dim: size
        for value in signature
        for dim, size in zip(dims.declared(value), dims.resolved(value), strict=True)
        if isinstance(dim, str)
    }


def symbolic_dims(graph: Graph) -> frozenset[str]:
    """The dimensions of the inputs that are no numbers; one without a name is called after its place."""
    declared = (dim for value in summary(graph).inputs for dim in _Dimensions.declared(value))
    return frozenset(dim for dim in declared if isinstance(dim, str))


def sizes_in(sample: Mapping[str, NDArray[Any]], graph: Graph) -> dict[str, int]:
    """The symbolic dimensions that a real sample shows."""
    found: dict[str, int] = {}
    for value in summary(graph).inputs:
        declared, shape = _Dimensions.declared(value), sample[value.name].shape if value.name in sample else ()
        if len(declared) == len(shape):
            found |= {dim: size for dim, size in zip(declared, shape, strict=True) if isinstance(dim, str)}
    return found


def _known(graph: Graph, recorded: InputSpec | None) -> dict[str, TensorSpec]:
    return {spec.name: spec for spec in (recorded_inputs(graph.path) if recorded is None else recorded)}


def _spec(
    graph: Graph,
    value: ValueSpec,
    dims: _Dimensions,
    wanted: tuple[float, float] | None,
    known: TensorSpec | None,
    unranged: Fill | None,
) -> TensorSpec:
    if value.dtype is None or value.shape is None:
        raise NoGuessError(
            f"input {value.name} declares no {'type' if value.dtype is None else 'shape'}",
            cause="no values can be made up for it",
            fix="Give the inputs as an .npz file.",
        )
    resolved = dims.resolved(value)
    fill = _ranged(value, wanted) if wanted else known.fill if known else _fill(graph, value, resolved) or unranged
    if fill is None:
        raise NoGuessError(
            f"input {value.name} takes integers of an unknown range",
            cause="it indexes no table in the graph, and its name says nothing",
            fix="Give real inputs with `data`.",
        )
    return TensorSpec(value.name, value.dtype, dims.declared(value), resolved, fill)


def _ranged(value: ValueSpec, wanted: tuple[float, float]) -> Fill:
    low, high = wanted
    if not low < high:
        raise UsageError(
            f"the range of input {value.name} is empty",
            cause=f"ranges are half-open, [{low:g}, {high:g}) holds nothing",
            fix=f"To always use {low:g}, write {low:g}:{low + 1:g}.",
        )
    whole = str(value.dtype).startswith(_INTEGERS)
    return Fill("integers" if whole else "uniform", low, high)


def _fill(graph: Graph, value: ValueSpec, sizes: Sequence[int]) -> Fill | None:
    """By name first, then by the table an integer input indexes, then by type; None where nothing tells."""
    name, dtype = value.name.lower(), str(value.dtype)
    whole = dtype.startswith(_INTEGERS)
    if "mask" in name or dtype == "bool":
        return Fill("ones")
    if not whole:
        return Fill("normal")
    if re.search("token_type|segment", name):
        return Fill("zeros")
    bound = index_bound(graph, value.name)
    if "position" in name:
        return _positions(bound, sizes)
    if re.search("^bbox|boxes$", name) and sizes and sizes[-1] == 4:
        return Fill("boxes", 0, bound or 1000)
    if bound is not None:
        return Fill("tokens", 0, bound)
    if dtype in ("uint8", "int8") and len(sizes) >= 3:
        return Fill("integers", *((0, 256) if dtype == "uint8" else (-128, 128)))
    return None


def _positions(bound: int | None, sizes: Sequence[int]) -> Fill:
    """0, 1, 2… along the sequence; a single position (a decode step) is drawn from what the table allows."""
    if sizes and sizes[-1] > 1:
        return Fill("arange")
    return Fill("integers", 0, bound or PAST)


class _Dimensions:
    """Symbolic dimensions and the sizes chosen for them, the same for all inputs."""

    def __init__(
        self, signature: Sequence[ValueSpec], chosen: Mapping[str, int], known: Mapping[str, TensorSpec]
    ) -> None:
        names = [dim for value in signature for dim in self.declared(value) if isinstance(dim, str)]
        _refuse_unknown("dimension", chosen, names)
        self._chosen = {**self._recorded(signature, known), **chosen}

    def _recorded(self, signature: Sequence[ValueSpec], known: Mapping[str, TensorSpec]) -> dict[str, int]:
        """A free batch is left out: it is recorded as it was traced, with more than one row, not as it is used."""
        found = [(self.declared(value), known[value.name].sizes) for value in signature if value.name in known]
        return {
            dim: size
            for declared, sizes in found
            if len(declared) == len(sizes)
            for axis, (dim, size) in enumerate(zip(declared, sizes, strict=True))
            if isinstance(dim, str) and axis > 0 and size > 0
        }

    @staticmethod
    def declared(value: ValueSpec) -> tuple[int | str, ...]:
        shape = value.shape or ()
        return tuple(f"{value.name}:{axis}" if dim is None else dim for axis, dim in enumerate(shape))

    def resolved(self, value: ValueSpec) -> tuple[int, ...]:
        declared = self.declared(value)
        return tuple(
            dim if isinstance(dim, int) else self._size(value, axis, dim, len(declared))
            for axis, dim in enumerate(declared)
        )

    def _size(self, value: ValueSpec, axis: int, dim: str, rank: int) -> int:
        if dim in self._chosen:
            return self._chosen[dim]
        if dim != f"{value.name}:{axis}":
            size = self._sum(dim) or self._named(dim)
            if size is not None and not (size == SEQUENCE and value.name in _AUDIO_INPUTS):
                return size
        size = _by_place(value, axis, rank)
        if size is None:
            raise NoGuessError(
                f"dimension {axis} of input {value.name} has no size",
                cause=f"it is symbolic ({dim}) and nothing tells how large it usually is",
                fix=f"Give its size (`dims` {dim}=512, for example), or real inputs as an .npz file.",
            )
        return size

    def _sum(self, dim: str) -> int | None:
        """`past_sequence_length + sequence_length`, as exporters write it."""
        terms = [term.strip() for term in dim.split("+")]
        if len(terms) < 2:
            return None
        sizes = [int(term) if term.isdigit() else self._chosen.get(term, self._named(term)) for term in terms]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @staticmethod
    def _named(dim: str) -> int | None:
        return next((size for pattern, size in _DIM_NAMES if re.search(pattern, dim.lower())), None)


def _by_place(value: ValueSpec, axis: int, rank: int) -> int | None:
    """Where a dimension stands says what it is, for the usual layouts."""
    if axis == 0:
        return 1
    if value.name in _AUDIO_INPUTS and axis == rank - 1:
        return _AUDIO_INPUTS[value.name]
    whole = str(value.dtype).startswith(_INTEGERS)
    if whole and rank == 2:
        return SEQUENCE
    if not whole and rank == 4:
        return 3 if axis == 1 else IMAGE
    return None


def _refuse_unknown(what: str, given: Iterable[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(
                f"the model has no {what} {name}",
                cause=f"it has {', '.join(dict.fromkeys(known)) or 'none'}",
                fix=hint.capitalize() if hint else "Check the spelling.",
            )
