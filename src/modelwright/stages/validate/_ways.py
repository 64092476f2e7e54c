"""The artifact computed in two ways, each compared with the export: as onnxruntime executes it, and as written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError, WrightError
from modelwright.graph import holds_quantized, model_bytes, shared
from modelwright.metrics import leaves
from modelwright.stages.validate._listed import picked_outputs
from modelwright.stages.validate._outputs import Asked, Outputs, parity
from modelwright.stages.validate._types import CLOSE, LARGE_BYTES, Fidelity, Kernels, OutputParity, Way
from modelwright.targets import (
    BoundSession,
    in_blocks,
    open_as_meant,
    open_as_written,
    open_exact,
    open_in_place,
    open_lean,
    products_saturate,
    read_cpu,
)
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime as ort
else:
    np = lazy("numpy")
    ort = lazy("onnxruntime")

# Less than this is rounding: the two ways add up in another order.
_MUCH_DB = 3.0
# A hundredth of the signal: whatever the kernels do, nobody sees it.
_FINE_DB = 40.0
_DRAWING = ("Random", "Bernoulli", "Multinomial", "Dropout")
# Of the largest number: two runs of one session differ by less, unless something was drawn.
_REPEATED = 1e-3
# Of the weights that all runs together read, and of the answers that are kept; a few samples there are always.
_READ_BYTES, _KEPT_BYTES, _FEWEST = 2 << 30, 512 << 20, 4


class UnfedError(ExecutionError):
    """The export itself does not run on the inputs: nothing is known about the artifact."""


@dataclass(frozen=True)
class Ways:
    """`outputs` are those of the way that decides; `samples` is how many were compared. Where the export is not
    `repeatable`, what differs says nothing."""

    outputs: tuple[OutputParity, ...]
    decided_by: Way
    as_executed: Fidelity
    as_written: Fidelity
    kernels: Kernels | None = None
    note: str | None = None
    samples: int = 0
    engine: str | None = None
    repeatable: bool = True


NOT_TRIED = Ways((), "as executed", Fidelity(None, None, "not run"), Fidelity(None, None, "not run"))


def both_ways(candidate: str, reference: str, asked: Asked) -> Ways:
    """Where they differ, whether the export itself answers twice the same."""
    found = _compared(candidate, reference, asked)
    # Another shape, or NaN where the export has numbers, is wrong whatever is drawn.
    broken = any(item.reason is not None for item in found.outputs)
    wrong = not broken and any(not measure.passed for item in found.outputs for measure in item.measures)
    return replace(found, repeatable=_is_repeatable(reference, asked.feeds[0])) if wrong else found


def _is_repeatable(reference: str, feed: Mapping[str, Any]) -> bool:
    """A model that draws random numbers (Dropout in training, RandomNormal) goes on drawing in the same session."""
    if not _may_draw(reference):
        return True
    first, again = _answers(open_as_written(reference), [feed, feed])
    return all(_is_same(value, again[name]) for name, value in first.items())


def _may_draw(reference: str) -> bool:
    """By its operators; of those that ONNX does not know anything may be true."""
    nodes = (node for body in shared(reference).bodies for node in body.nodes)
    kinds = {(node.domain, node.op_type) for node in nodes}
    return any(domain not in ("", "ai.onnx") or kind.startswith(_DRAWING) for domain, kind in kinds)


def _is_same(one: Any, other: Any) -> bool:
    """But for last bits, which threads may add up in another order."""
    if one.shape != other.shape or one.dtype.kind != "f" or not one.size:
        return bool(np.array_equal(one, other))
    finite = np.isfinite(one)
    near = _REPEATED * float(np.abs(one[finite]).max(initial=0.0))
    return bool(np.array_equal(finite, np.isfinite(other)) and (np.abs(one[finite] - other[finite]) <= near).all())


def _compared(candidate: str, reference: str, asked: Asked) -> Ways:
    """One way only where nothing is quantized: then the kernels compute what the graph says."""
    progress("running the export", 0.1)
    wanted = _wanted(reference, asked.feeds)
    asked = replace(asked, feeds=asked.feeds[: len(wanted)], picked=picked_outputs(shared(reference)))
    feeds, gate, count = asked.feeds, asked.gate, len(wanted)
    progress("running the artifact", 0.4)
    quantized = holds_quantized(shared(candidate))
    large = max(map(model_bytes, (candidate, reference))) >= LARGE_BYTES and not in_blocks(candidate)
    session = (open_lean if large else open_in_place)(candidate)
    executed = parity(wanted, _answers(session, feeds), asked)
    if not quantized:
        alone = Fidelity(None, None, "nothing is quantized")
        return Ways(executed, "as executed", fidelity(executed), alone, samples=count, engine=_engine())
    progress("running the artifact as it is written", 0.7)
    written = parity(wanted, _answers(open_as_meant(candidate, lean=large), feeds), asked)
    kernels = Kernels(read_cpu().features, products_saturate())
    # A model that came quantized is compared with itself, so its kernels are not what the stages did to it.
    by: Way = "as written" if gate.inherited or (gate.exact_products and kernels.saturate) else "as executed"
    note = None
    if _much_worse(fidelity(executed), fidelity(written)):
        exact = fidelity(parity(wanted, _answers(open_exact(candidate, lean=large), feeds), asked))
        note = _note(fidelity(executed), fidelity(written), _much_worse(fidelity(executed), exact))
    outputs = written if by == "as written" else executed
    return Ways(outputs, by, fidelity(executed), fidelity(written), kernels, note, count, _engine())


def unchanged(candidate: str, reference: str) -> bool:
    """Nothing was made: it is the very file that it would be compared with. Integer kernels are looked at even so."""
    return Path(candidate).samefile(reference) and not holds_quantized(shared(candidate))


def affordable(samples: int, candidate: str, reference: str) -> int:
    """Fewer for large models: what the gate costs is to be small beside what made the artifact. Few of what was not
    changed: they show what onnxruntime's own fusions make of it."""
    if unchanged(candidate, reference):
        return min(samples, _FEWEST)
    return min(samples, max(_FEWEST, _READ_BYTES // max(map(model_bytes, (candidate, reference)))))


def _engine() -> str:
    return f"onnxruntime {ort.__version__}"


def fidelity(outputs: tuple[OutputParity, ...]) -> Fidelity:
    """The worst of all outputs."""
    broken = next((item for item in outputs if item.reason is not None), None)
    if broken is not None or not outputs:
        return Fidelity(None, None, broken.reason if broken is not None else "no outputs")
    close = (measure.value for item in outputs for measure in item.measures if measure.name == CLOSE)
    cosine = min((value for value in close if value is not None), default=None)
    if cosine is None:
        return Fidelity(None, None, "no output has a cosine")
    return Fidelity(cosine, min((item.sqnr_db for item in outputs if item.sqnr_db is not None), default=None))


def _much_worse(one: Fidelity, other: Fidelity) -> bool:
    if one.sqnr_db is None or one.sqnr_db >= _FINE_DB or other.cosine is None:
        return False
    return other.sqnr_db is None or other.sqnr_db - one.sqnr_db >= _MUCH_DB


def _note(executed: Fidelity, written: Fidelity, saturated: bool) -> str:
    """`saturated`: the same model with exact kernels does not lose it."""
    promised = f"{written.sqnr_db:.1f} dB" if written.sqnr_db is not None else "no loss"
    cause = (
        "8-bit products saturate on this CPU; weights made for it (reduce_range) would not"
        if saturated
        else "onnxruntime's fused kernels compute something else than the graph says"
    )
    return f"{executed.sqnr_db:.1f} dB as executed where the graph as written has {promised}: {cause}"


def _wanted(reference: str, feeds: Sequence[Mapping[str, Any]]) -> list[Outputs]:
    session = open_as_written(reference)
    try:
        return _answers(session, feeds, _KEPT_BYTES)
    except WrightError as error:
        raise UnfedError(error.problem, cause=error.cause, fix=error.fix) from error


def _answers(session: BoundSession, feeds: Sequence[Mapping[str, Any]], at_most: float = math.inf) -> list[Outputs]:
    """Closes the session, so that two large models are never in memory together. Stops at so many bytes."""
    found: list[Outputs] = []
    with session:
        for feed in feeds:
            found.append(dict(leaves(session.run(feed))))
            kept = sum(value.nbytes for value in found[0].values()) * len(found)
            if kept > at_most and len(found) >= _FEWEST:
                break
    return found
