"""The artifact computed in two ways, each compared with the export: as onnxruntime executes it, and as written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.graph import load, summary
from modelwright.metrics import Accumulator, Aggregate
from modelwright.stages.validate._types import Fidelity, Gate, Kernels, OutputParity, Way
from modelwright.targets import (
    BoundSession,
    SessionSpec,
    open_as_meant,
    open_as_written,
    open_exact,
    open_session,
    parse_target,
    products_saturate,
    read_cpu,
)
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Outputs = Mapping[str, NDArray[Any]]
else:
    np = lazy("numpy")

_SCORES = re.compile("logit|score|prob|class|label", re.IGNORECASE)
# As a user will run it, but without threads that spin between two operators.
_CALM = SessionSpec(config={"session.intra_op.allow_spinning": "0"})
# Less than this is rounding: the two ways add up in another order.
_MUCH_DB = 3.0


@dataclass(frozen=True)
class Ways:
    """`outputs` are those of the way that decides."""

    outputs: tuple[OutputParity, ...]
    decided_by: Way
    as_executed: Fidelity
    as_written: Fidelity
    kernels: Kernels | None = None
    note: str | None = None


NOT_TRIED = Ways((), "as executed", Fidelity(None, None, "not run"), Fidelity(None, None, "not run"))


def both_ways(candidate: str, reference: str, feeds: Sequence[Mapping[str, Any]], gate: Gate) -> Ways:
    """One way only where nothing is quantized: then the kernels compute what the graph says."""
    progress("running the export", 0.1)
    wanted = _answers(open_as_written(reference), feeds)
    progress("running the artifact", 0.4)
    executed = _parity(wanted, _answers(open_session(candidate, parse_target("cpu"), _CALM), feeds))
    if not summary(load(candidate)).quantized:
        return Ways(executed, "as executed", fidelity(executed), Fidelity(None, None, "nothing is quantized"))
    progress("running the artifact as it is written", 0.7)
    written = _parity(wanted, _answers(open_as_meant(candidate), feeds))
    kernels = Kernels(read_cpu().features, products_saturate())
    # A model that came quantized is compared with itself, so its kernels are not what the stages did to it.
    inherited = gate.precision == "fp32"
    by: Way = "as written" if inherited or (gate.exact_products and kernels.saturate) else "as executed"
    note = None
    if _much_worse(fidelity(executed), fidelity(written)):
        exact = fidelity(_parity(wanted, _answers(open_exact(candidate), feeds)))
        note = _note(fidelity(executed), fidelity(written), _much_worse(fidelity(executed), exact))
    outputs = written if by == "as written" else executed
    return Ways(outputs, by, fidelity(executed), fidelity(written), kernels, note)


def fidelity(outputs: tuple[OutputParity, ...]) -> Fidelity:
    """The worst of all outputs."""
    broken = next((item for item in outputs if item.cosine is None), None)
    if broken is not None or not outputs:
        return Fidelity(None, None, broken.reason if broken is not None else "no outputs")
    cosine = min(item.cosine for item in outputs if item.cosine is not None)
    return Fidelity(cosine, min((item.sqnr_db for item in outputs if item.sqnr_db is not None), default=None))


def _much_worse(one: Fidelity, other: Fidelity) -> bool:
    if one.sqnr_db is None or other.cosine is None:
        return False
    return other.sqnr_db is None or other.sqnr_db - one.sqnr_db >= _MUCH_DB


def _note(executed: Fidelity, written: Fidelity, saturated: bool) -> str:
    """`saturated`: the same model with exact kernels does not lose it."""
    promised = f"{written.sqnr_db:.1f} dB" if written.sqnr_db is not None else "no loss"
    cause = (
        "8-bit products saturate on this CPU; 7-bit weights (reduce_range) would not"
        if saturated
        else "onnxruntime's fused kernels compute something else than the graph says"
    )
    return f"{executed.sqnr_db:.1f} dB as executed where the graph as written has {promised}: {cause}"


def _parity(wanted: Sequence[Outputs], got: Sequence[Outputs]) -> tuple[OutputParity, ...]:
    gathered: dict[str, Accumulator] = {name: Accumulator() for name in wanted[0]}
    for one, other in zip(wanted, got, strict=True):
        for name, accumulator in gathered.items():
            if name in other:
                accumulator.add(one[name], other[name])
    scores = {name for name in gathered if _are_scores(name, [answer[name] for answer in wanted])}
    return tuple(_output(name, found.aggregate(), name in scores) for name, found in gathered.items())


def _are_scores(name: str, answers: Sequence[NDArray[Any]]) -> bool:
    """By name, or because every row is a distribution. The largest number of an embedding or a state means nothing."""
    if _SCORES.search(name):
        return True
    if any(answer.dtype.kind != "f" or answer.ndim == 0 or answer.shape[-1] < 2 for answer in answers):
        return False
    sums = np.concatenate([answer.reshape(-1, answer.shape[-1]).sum(axis=1) for answer in answers])
    return bool(np.allclose(sums, 1.0, atol=1e-3)) and min(float(answer.min()) for answer in answers) >= 0.0


def _answers(session: BoundSession, feeds: Sequence[Mapping[str, Any]]) -> list[Outputs]:
    """Closes the session, so that two large models are never in memory together."""
    with session:
        return [session.run(feed) for feed in feeds]


def _output(name: str, found: Aggregate, scores: bool) -> OutputParity:
    return OutputParity(
        output=name,
        cosine=found.cosine.worst if not found.failed else None,
        max_abs=found.max_abs.worst if not found.failed else None,
        sqnr_db=found.sqnr_db.worst,
        top1=found.top1.mean if scores else None,
        identical=found.identical == found.samples > 0,
        reason=found.problem or (found.cosine.reason if found.cosine.worst is None else None),
    )
