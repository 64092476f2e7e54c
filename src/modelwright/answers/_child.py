"""What is looked at in a child: one run, the weights, what a compiled context was made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.targets import SessionSpec, open_session, parse_target
from modelwright.worker import task

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

_FLOATS = (1, 10, 11)
_COMPATIBILITY = "ep_compatibility_info."
_DENORMAL_SHARE = 0.01
_UNEVEN = 16.0


@dataclass(frozen=True)
class RunOutcome:
    """A run that ended. `not_finite` are the outputs that hold NaN or infinity, `fed_not_finite` those inputs."""

    not_finite: tuple[str, ...]
    outputs: int
    create_s: float
    threads: int
    nodes_per_ep: Mapping[str, int]
    fed_not_finite: tuple[str, ...] = ()


@dataclass(frozen=True)
class WeightFacts:
    """Names with how many numbers of each are NaN or infinite, masks left out; with the share that is denormal, above
    1 %; and with how much larger the largest channel is than the middle one, above 16 times."""

    not_finite: tuple[tuple[str, int], ...]
    denormal: tuple[tuple[str, float], ...]
    uneven: tuple[tuple[str, float], ...] = ()


@task
def run_once(model: str, target: str, spec: SessionSpec, feeds: dict[str, Any]) -> RunOutcome:
    with open_session(model, parse_target(target), spec) as session:
        answers = session.run(feeds)
        facts = session.facts
        bad, fed = (tuple(name for name, value in some.items() if not _finite(value)) for some in (answers, feeds))
        return RunOutcome(bad, len(answers), facts.create_s, facts.threads, dict(facts.nodes_per_ep), fed)


def _finite(value: Any) -> bool:
    array = np.asarray(value)
    return array.dtype.kind != "f" or bool(np.isfinite(array.astype(np.float64)).all())


@task
def read_weights(model: str) -> WeightFacts:
    not_finite, denormal, uneven = [], [], []
    for name, array in _floats(onnx.load(model)):
        wrong = _wrong(array)
        if wrong:
            not_finite.append((name, wrong))
        tiny = np.finfo(array.dtype).tiny
        share = float(((array != 0) & (np.abs(array) < tiny)).mean()) if array.size else 0.0
        if share > _DENORMAL_SHARE:
            denormal.append((name, share))
        ratio = _unevenness(array)
        if ratio > _UNEVEN:
            uneven.append((name, ratio))
    return WeightFacts(tuple(not_finite), tuple(denormal), tuple(uneven))


def _wrong(array: NDArray[Any]) -> int:
    """How many are NaN or infinite, but for a mask: that holds infinity, and nothing else but zeros."""
    infinite = np.isinf(array)
    mask = bool((infinite | (array == 0)).all())
    return 0 if mask else int(np.isnan(array).sum() + infinite.sum())


def _unevenness(array: NDArray[Any]) -> float:
    """Of the channels of a matrix or a filter: its largest number beside that of the middle channel."""
    if array.ndim < 2 or array.size == 0 or not np.isfinite(array).all():
        return 1.0
    axes = (0,) if array.ndim > 2 else (0, 1)
    sizes = [np.abs(np.moveaxis(array, axis, 0)).reshape(array.shape[axis], -1).max(1) for axis in axes]
    middle = [float(np.median(size)) for size in sizes]
    return max((float(size.max()) / mid for size, mid in zip(sizes, middle, strict=True) if mid > 0), default=1.0)


def _floats(model: onnx.ModelProto) -> Iterator[tuple[str, NDArray[Any]]]:
    for tensor in model.graph.initializer:
        if tensor.data_type in _FLOATS:
            yield tensor.name, onnx.numpy_helper.to_array(tensor)
    for node in model.graph.node:
        for item in node.attribute:
            if node.op_type == "Constant" and item.name == "value" and item.t.data_type in _FLOATS:
                yield node.output[0], onnx.numpy_helper.to_array(item.t)


@task
def read_context_chip(model: str) -> dict[str, str] | None:
    """QNN writes `v2:6:2.51.0:5.51.0:75:57:0:0` beside its contexts: backend, versions, architecture, chip."""
    found = {item.key: item.value for item in onnx.load(model, load_external_data=False).metadata_props}
    said = next((value for key, value in found.items() if key.startswith(_COMPATIBILITY + "QNN")), None)
    parts = (said or "").split(":")
    return {"sdk": parts[2], "htp_arch": parts[4], "soc_model": parts[5]} if len(parts) >= 6 else None
