"""Reading onnxruntime's profile: events, grouped by run, one after the other, never the whole file at once.

Runs in a child, foreign interpreters included, so: standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.measure.traces._types import TraceReason
from modelwright.targets import TraceProblem

# onnxruntime drops events beyond this many, with a line in its log as the only sign.
MOST_EVENTS = 1_000_000
# Only these run other nodes. Anything else that seems to contain a call merely shares its µs.
PARENTS = frozenset({"If", "Loop", "Scan", "BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"})
_SUFFIX = "_kernel_time"
_TYPES = {"float": "float32", "double": "float64"}


@dataclass(frozen=True)
class Kernel:
    """A node of the graph that ran, as the profile names it. Two may share a name inside two subgraphs."""

    name: str
    op_type: str
    provider: str
    index: int | None


@dataclass(frozen=True)
class KernelShapes:
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    activation_bytes: int | None
    parameter_bytes: int | None
    output_bytes: int | None


@dataclass(frozen=True)
class KernelCall:
    """One execution of a kernel: which kernel (by number), start and duration in µs, and its thread."""

    kernel: int
    start: int
    duration: int
    thread: int


@dataclass(frozen=True)
class Run:
    """One `model_run` and the calls inside it, by start."""

    start: int
    duration: int
    calls: tuple[KernelCall, ...]


@dataclass(frozen=True)
class Profile:
    """Everything a trace needs from the file. `shapes` are those of each kernel's last call."""

    kernels: tuple[Kernel, ...]
    shapes: tuple[KernelShapes, ...]
    runs: tuple[Run, ...]


def read_profile(path: Path) -> Profile:
    """Raise `TraceProblem` when the file is missing, damaged or cut off at onnxruntime's limit."""
    reader = _Reader()
    count = 0
    try:
        with path.open(encoding="utf-8") as file:
            for event in _events(file):
                reader.add(event)
                count += 1
    except FileNotFoundError:
        raise TraceProblem(TraceReason.PROFILE_MISSING, "onnxruntime wrote no profile") from None
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise TraceProblem(TraceReason.PROFILE_DAMAGED, f"the profile cannot be read: {error}") from None
    if count >= MOST_EVENTS:
        words = f"onnxruntime stops recording after {MOST_EVENTS:,} events; trace fewer runs"
        raise TraceProblem(TraceReason.TRUNCATED, words)
    return reader.profile()


def _events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """onnxruntime writes one event per line between two brackets."""
    last = ""
    for line in lines:
        last = line.strip() or last
        text = last.rstrip(",")
        if line.strip() and text not in ("[", "]"):
            yield json.loads(text)
    if last != "]":
        raise ValueError("it ends in the middle")


class _Reader:
    def __init__(self) -> None:
        self._kernels: dict[Kernel, int] = {}
        self._shapes: dict[int, KernelShapes] = {}
        self._calls: list[KernelCall] = []
        self._runs: list[tuple[int, int]] = []

    def add(self, event: Mapping[str, Any]) -> None:
        name = str(event["name"])
        if event["cat"] == "Session" and name == "model_run":
            self._runs.append((int(event["ts"]), int(event["dur"])))
        elif event["cat"] == "Node" and name.endswith(_SUFFIX):
            args = event["args"]
            index = args.get("node_index")
            kernel = Kernel(
                name.removesuffix(_SUFFIX),
                str(args["op_name"]),
                str(args["provider"]),
                None if index is None else int(index),
            )
            number = self._kernels.setdefault(kernel, len(self._kernels))
            self._shapes[number] = _shapes(args)
            self._calls.append(KernelCall(number, int(event["ts"]), int(event["dur"]), int(event["tid"])))

    def profile(self) -> Profile:
        kernels = tuple(self._kernels)

        def outer_first(call: KernelCall) -> tuple[int, bool, int]:
            return call.start, kernels[call.kernel].op_type not in PARENTS, -call.duration

        runs, calls = sorted(self._runs), sorted(self._calls, key=outer_first)
        shapes = tuple(self._shapes[number] for number in range(len(self._kernels)))
        return Profile(kernels, shapes, tuple(_contained(runs, calls)))


def _contained(runs: list[tuple[int, int]], calls: list[KernelCall]) -> Iterator[Run]:
    position = 0
    for start, duration in runs:
        while position < len(calls) and calls[position].start < start:
            position += 1
        first = position
        while position < len(calls) and calls[position].start <= start + duration:
            position += 1
        yield Run(start, duration, tuple(calls[first:position]))


def _shapes(args: Mapping[str, Any]) -> KernelShapes:
    return KernelShapes(
        _tensors(args.get("input_type_shape")),
        _tensors(args.get("output_type_shape")),
        _whole(args.get("activation_size")),
        _whole(args.get("parameter_size")),
        _whole(args.get("output_size")),
    )


def _tensors(entries: Any) -> tuple[str, ...]:
    """`[{"float":[1,3]}]` → `("float32[1,3]",)`."""
    return tuple(
        f"{_TYPES.get(dtype, dtype)}[{','.join(map(str, shape))}]"
        for entry in entries or ()
        for dtype, shape in entry.items()
    )


def _whole(text: Any) -> int | None:
    return int(text) if text is not None else None
