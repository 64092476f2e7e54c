"""Realistic inputs for an ONNX file: as its export recorded them, and guessed where nothing is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from modelwright.errors import InputError, UsageError, did_you_mean
from modelwright.graph import Graph, ValueSpec, inputs_of
from modelwright.models._build_folder import recorded_inputs
from modelwright.models._embedding import index_bound
from modelwright.models._size_hints import SizeHints, metadata_hints, sized
from modelwright.vocabulary import GUESS, Fill, InputSpec, Sized, TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEQUENCE, IMAGE, PAST = 128, 224, 16
Role = Literal["batch", "channels", "height", "width", "past", "frames", "samples", "sequence"]
# What a dimension usually is, where nothing says it.
_USUAL: Mapping[Role, int] = {
    "batch": 1,
    "channels": 3,
    "height": IMAGE,
    "width": IMAGE,
    "past": PAST,
    "frames": 3_000,
    "samples": 16_000,
    "sequence": SEQUENCE,
}
# Names of symbolic dimensions, most specific first.
_DIM_NAMES: tuple[tuple[str, Role], ...] = (
    (r"batch|^[nb]$", "batch"),
    (r"channel|^c$", "channels"),
    (r"height|^h$|image_size", "height"),
    (r"width|^w$", "width"),
    (r"past|cache|history", "past"),
    (r"frame", "frames"),
    (r"sample|audio", "samples"),
    (r"seq|length|len|token|text|time|^[lts]$", "sequence"),
)
_AUDIO_INPUTS: Mapping[str, Role] = {"input_values": "samples", "input_features": "frames"}
_COLOURS = (1, 3, 4)
# Not `hidden_states`, which are those of tokens.
_STATES = r"^([hc]_?[0nx]?|(hidden|cell|h|c)?_?state|hidden|cell|state_?[hc])(_in)?$"
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
    signature = inputs_of(graph)
    ranges = dict(ranges or {})
    _refuse_unknown("input", ranges, [value.name for value in signature])
    known = _known(graph, recorded)
    dims = _Dimensions(graph, sized(sizes or {}, "as asked"), known)
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


def fixed_sizes(graph: Graph, others: Iterable[Graph]) -> dict[str, int]:
    """The symbolic dimensions of `graph` that another form of the same model has fixed; the first to say it counts."""
    found: dict[str, int] = {}
    for other in others:
        shapes = {value.name: value.shape or () for value in inputs_of(other)}
        for value in inputs_of(graph):
            declared, fixed = _Dimensions.declared(value), shapes.get(value.name, ())
            for dim, size in zip(declared, fixed, strict=False) if len(declared) == len(fixed) else ():
                if isinstance(dim, str) and isinstance(size, int):
                    found.setdefault(dim, size)
    return found


def with_sizes(signature: Sequence[ValueSpec], sizes: Mapping[str, int]) -> tuple[ValueSpec, ...]:
    """The same inputs with these symbolic dimensions fixed."""
    return tuple(
        value
        if value.shape is None
        else replace(
            value,
            shape=tuple(
                sizes.get(named, dim) if isinstance(named, str) else dim
                for named, dim in zip(_Dimensions.declared(value), value.shape, strict=True)
            ),
        )
        for value in signature
    )


def symbolic_sizes(graph: Graph) -> dict[str, int]:
    """Each symbolic dimension of the inputs with its size: recorded, told by the file, or what its name suggests."""
    return {item.name: item.size for item in sized_dims(graph)}


def sized_dims(
    graph: Graph,
    said: Mapping[str, int] | None = None,
    seen: Mapping[str, int] | None = None,
    processor: SizeHints | None = None,
) -> tuple[Sized, ...]:
    """Each symbolic dimension of the inputs with its size: as was said, as the data shows it, as the processor makes
    it, as it was recorded or the file tells; then a guess."""
    chosen = {**sized(seen or {}, "the data"), **sized(said or {}, "as asked")}
    dims = _Dimensions(graph, chosen, _known(graph, None), processor)
    found = {}
    for value in inputs_of(graph):
        declared = dims.declared(value)
        for axis, dim in enumerate(declared):
            if isinstance(dim, str):
                found[dim] = dims.size(value, axis, dim)
    return tuple(found.values())


def symbolic_dims(graph: Graph) -> frozenset[str]:
    """The dimensions of the inputs that are no numbers; one without a name is called after its place."""
    declared = (dim for value in inputs_of(graph) for dim in _Dimensions.declared(value))
    return frozenset(dim for dim in declared if isinstance(dim, str))


def sizes_in(sample: Mapping[str, NDArray[Any]], graph: Graph) -> dict[str, int]:
    """The symbolic dimensions that a real sample shows."""
    found: dict[str, int] = {}
    for value in inputs_of(graph):
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
    guessed = _fill(graph, value, resolved) or _length_fill(graph, value, dims)
    fill = _ranged(value, wanted) if wanted else known.fill if known else guessed or unranged
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


def _length_fill(graph: Graph, value: ValueSpec, dims: _Dimensions) -> Fill | None:
    """`input_lengths` and the like: as long as the input before it is, along the axis that has no fixed size."""
    if not re.search(r"(^|_)len(gth)?s?$", value.name.lower()) or len(value.shape or ()) > 1:
        return None
    before = [item for item in inputs_of(graph) if len(item.shape or ()) > 1]
    for item in before:
        free = [axis for axis, dim in enumerate(item.shape or ()) if axis and not isinstance(dim, int)]
        size = dims.resolved(item)[free[0] if free else 1]
        return Fill("integers", size, size + 1)
    return None


def _positions(bound: int | None, sizes: Sequence[int]) -> Fill:
    """0, 1, 2… along the sequence; a single position (a decode step) is drawn from what the table allows."""
    if sizes and sizes[-1] > 1:
        return Fill("arange")
    return Fill("integers", 0, bound or PAST)


class _Dimensions:
    """Symbolic dimensions and the sizes chosen for them, the same for all inputs."""

    def __init__(
        self,
        graph: Graph,
        chosen: Mapping[str, Sized],
        known: Mapping[str, TensorSpec],
        processor: SizeHints | None = None,
    ) -> None:
        signature = inputs_of(graph)
        names = [dim for value in signature for dim in self.declared(value) if isinstance(dim, str)]
        _refuse_unknown("dimension", chosen, names)
        self._signature = signature
        self._hints = [hints for hints in (processor, metadata_hints(graph)) if hints is not None]
        self._chosen = {**self._recorded(signature, known), **chosen}

    def _recorded(self, signature: Sequence[ValueSpec], known: Mapping[str, TensorSpec]) -> dict[str, Sized]:
        """A free batch is left out: it is recorded as it was traced, with more than one row, not as it is used."""
        found = [(self.declared(value), known[value.name].sizes) for value in signature if value.name in known]
        sizes = {
            dim: size
            for declared, sizes in found
            if len(declared) == len(sizes)
            for axis, (dim, size) in enumerate(zip(declared, sizes, strict=True))
            if isinstance(dim, str) and axis > 0 and size > 0
        }
        return sized(sizes, "its export")

    @staticmethod
    def declared(value: ValueSpec) -> tuple[int | str, ...]:
        shape = value.shape or ()
        return tuple(f"{value.name}:{axis}" if dim is None else dim for axis, dim in enumerate(shape))

    def resolved(self, value: ValueSpec) -> tuple[int, ...]:
        return tuple(
            dim if isinstance(dim, int) else self.size(value, axis, dim).size
            for axis, dim in enumerate(self.declared(value))
        )

    def size(self, value: ValueSpec, axis: int, dim: str) -> Sized:
        if dim in self._chosen:
            return self._chosen[dim]
        total, role = self._sum(dim), _role(value, axis, dim)
        if total is not None:
            return Sized(dim, total, GUESS)
        if role is None:
            raise self._no_guess()
        return self._told(dim, role) or Sized(dim, _USUAL[role], "one sample" if role == "batch" else GUESS)

    def _no_guess(self) -> NoGuessError:
        """For all of them at once."""
        every = [(value, *item) for value in self._signature for item in enumerate(self.declared(value))]
        unsized = dict.fromkeys(
            dim
            for value, axis, dim in every
            if isinstance(dim, str)
            and dim not in self._chosen
            and self._sum(dim) is None
            and _role(value, axis, dim) is None
        )
        first, several = next(iter(unsized)), len(unsized) > 1
        return NoGuessError(
            f"{len(unsized)} dimensions have no size" if several else f"dimension {first} has no size",
            cause=f"{' and '.join(unsized) if several else 'it'} can be of any size, and nothing tells which is usual",
            fix=f"Give the size{' of each' if several else ''} (`dims` {first}=512, for example), or real `data`.",
        )

    def _told(self, dim: str, role: Role) -> Sized | None:
        for hints in self._hints:
            height, width = hints.image or (None, None)
            size = {"height": height, "width": width, "sequence": hints.text}.get(role)
            if size is not None:
                return Sized(dim, size, hints.origin)
        return None

    def _sum(self, dim: str) -> int | None:
        """`past_sequence_length + sequence_length`, as exporters write it."""
        terms = [term.strip() for term in dim.split("+")]
        sizes = [int(term) if term.isdigit() else self._term(term) for term in terms]
        return None if len(terms) < 2 or None in sizes else sum(size or 0 for size in sizes)

    def _term(self, name: str) -> int | None:
        role = _named(name)
        if name in self._chosen:
            return self._chosen[name].size
        return None if role is None else _USUAL[role]


def _named(dim: str) -> Role | None:
    return next((role for pattern, role in _DIM_NAMES if re.search(pattern, dim.lower())), None)


def _role(value: ValueSpec, axis: int, dim: str) -> Role | None:
    """By its name; sounds are longer than texts. Then by its place, for the usual layouts."""
    named = _named(dim) if dim != f"{value.name}:{axis}" else None
    if named is not None and not (named == "sequence" and value.name in _AUDIO_INPUTS):
        return named
    shape, whole = value.shape or (), str(value.dtype).startswith(_INTEGERS)
    if axis == 0:
        return "batch"
    if value.name in _AUDIO_INPUTS and axis == len(shape) - 1:
        return _AUDIO_INPUTS[value.name]
    if whole and len(shape) == 2:
        return "sequence"
    if axis == 1 and _is_state(value.name, shape):
        return "batch"
    if not whole and len(shape) == 4:
        last = shape[3] in _COLOURS and shape[1] not in _COLOURS
        places: tuple[Role, ...] = ("height", "width", "channels") if last else ("channels", "height", "width")
        return places[axis - 1]
    return None


def _is_state(name: str, shape: tuple[int | str | None, ...]) -> bool:
    """What a recurrent network hands on: layers, samples, values."""
    fixed = len(shape) == 3 and isinstance(shape[0], int) and isinstance(shape[2], int)
    return fixed and re.search(_STATES, name, re.IGNORECASE) is not None


def _refuse_unknown(what: str, given: Iterable[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(
                f"the model has no {what} {name}",
                cause=f"it has {', '.join(dict.fromkeys(known)) or 'none'}",
                fix=hint.capitalize() if hint else "Check the spelling.",
            )
