"""Why nodes do not run where they should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from modelwright.answers._gather import Gathered
from modelwright.answers._rule import CauseRule, Lab, Shown
from modelwright.answers._types import TriedCure
from modelwright.pipeline import Suggestion
from modelwright.stages.optimize import passes
from modelwright.targets import LeftNode

_QUANTIZED = {"com.microsoft.MatMulNBits", "com.microsoft.QLinearConv"}
_SHOWN = 8
_KINDS = 4
_SHUT = "it does not open"


def _left(found: Gathered) -> tuple[LeftNode, ...]:
    placed = None if found.analysis is None else found.analysis.placement
    if placed is None or placed.status != "placed" or (found.model is not None and found.model.ep_context):
        return ()  # the border of a compiled model is the CPU's by design
    return placed.unsupported


def _suggested(found: Gathered, fits: Callable[[Suggestion], bool]) -> tuple[Suggestion, ...]:
    return () if found.analysis is None else tuple(item for item in found.analysis.suggestions if fits(item))


def _unfuses(item: Suggestion) -> bool:
    return "unfuse" in item.how


def _fixes_dims(item: Suggestion) -> bool:
    return "dynamic dimensions" in item.title


def _any(item: Suggestion) -> bool:
    return True


def _as_cures(found: Gathered, fits: Callable[[Suggestion], bool]) -> Iterator[TriedCure]:
    """They were tried when the target was asked."""
    for item in _suggested(found, fits):
        after = f"{item.left_after} of {item.nodes_after} nodes left, {_partitions(item.partitions_after)}"
        before = f"{item.left_before} nodes left, {_partitions(item.partitions_before)}"
        yield TriedCure(item.title, item.how, _SHUT if _failed(found) else before, after, item.left_after == 0)


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


def _in_vain(found: Gathered) -> Iterator[TriedCure]:
    """What was tried and moves nothing."""
    helps = {item.title for item in _suggested(found, _any)}
    for one in () if found.analysis is None else found.analysis.tried:
        if one.title not in helps:
            yield TriedCure(one.title, one.how, f"{len(_left(found))} nodes left", one.result, False)


def _all_tried(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    yield from _as_cures(found, _any)
    yield from _in_vain(found)


def _fused(found: Gathered) -> Shown | None:
    """What an optimization for the CPU makes, and no exporter."""
    made = {name for one in passes() if one.group != "quantization" for name in one.produces} - _QUANTIZED
    fused = [node for node in _left(found) if node.domain and f"{node.domain}.{node.op_type}" in made]
    return _nodes(found, fused) if fused else None


def _dynamic(found: Gathered) -> Shown | None:
    if found.model is None or not found.model.dynamic or not (_left(found) or _failed(found)):
        return None
    if not _suggested(found, _fixes_dims):
        return None
    if _failed(found):
        assert found.analysis is not None
        reason = str(found.analysis.placement.reason)
        return Shown((reason,), (), {"target": str(found.complaint.target), "what": _SHUT})
    shown = _nodes(found, _left(found))
    return replace(shown, named={**shown.named, "what": f"{shown.named['ops']} are left"})


def _failed(found: Gathered) -> bool:
    return found.analysis is not None and found.analysis.placement.status == "failed"


def _no_fp16(found: Gathered) -> Shown | None:
    soc = found.complaint.target.soc
    if not _failed(found) or soc is None or soc.fp16 or found.analysis is None:
        return None
    words = str(found.analysis.placement.reason)
    return Shown((words,), _part(found), {"chip": soc.title})


def _on_part(found: Gathered) -> Shown | None:
    if not _failed(found) or found.analysis is None or found.complaint.target.ep == "cpu" or not _part(found):
        return None
    reason = str(found.analysis.placement.reason)
    return Shown((reason,), _part(found), {"target": str(found.complaint.target), "ops": ", ".join(_part(found)[:3])})


def _part(found: Gathered) -> tuple[str, ...]:
    part = None if found.analysis is None else found.analysis.part
    return () if part is None else part.operators


def _remaining(found: Gathered) -> Shown | None:
    return _nodes(found, _left(found)) if _left(found) else None


def _nodes(found: Gathered, nodes: tuple[LeftNode, ...] | list[LeftNode]) -> Shown:
    by_type: dict[str, int] = {}
    for node in nodes:
        by_type[node.op_type] = by_type.get(node.op_type, 0) + 1
    most = sorted(by_type.items(), key=lambda item: -item[1])
    ops = ", ".join(f"{count} {op_type}" for op_type, count in most[:_KINDS])
    ops += f" and {len(most) - _KINDS} more kinds" if len(most) > _KINDS else ""
    reasons = dict.fromkeys(node.why.reason for node in nodes if node.why is not None)
    facts = tuple(list(reasons)[:3]) or ("the EP does not say why",)
    where = tuple(f"{node.op_type} {node.name}" for node in nodes[:_SHOWN])
    return Shown(facts, where, {"ops": ops, "target": str(found.complaint.target)})


def _cures(fits: Callable[[Suggestion], bool]) -> Callable[[Gathered, Lab], Iterator[TriedCure]]:
    return lambda found, lab: _as_cures(found, fits)


RULES = (
    CauseRule(
        "chip-without-fp16",
        "fails",
        "{chip} computes no float operators, and the model has some",
        _no_fp16,
        _cures(_any),
        cites=("docs/targets.md",),
        remedy="quantize it, or name another chip",
    ),
    CauseRule(
        "fused-operators",
        "slow",
        "{ops} were fused for the CPU, and {target} has no such operators",
        _fused,
        _cures(_unfuses),
        cites=("qnn-fused-conv", "qnn-fused-gemm", "qnn-skip-layer-norm"),
        remedy="build for {target} from the model as it was exported, before it was optimized for the CPU",
    ),
    CauseRule(
        "dynamic-sizes",
        "slow",
        "{target} needs fixed sizes, and the model has dynamic ones: {what}",
        _dynamic,
        _cures(_fixes_dims),
        cites=("https://github.com/openvinotoolkit/openvino/issues/24619",),
    ),
    CauseRule(
        "ep-fails-on-part",
        "fails",
        "{target} fails on {ops}, also alone",
        _on_part,
        _cures(_any),
        remedy="keep it in another precision, or out of the target",
    ),
    CauseRule(
        "nodes-left",
        "slow",
        "{target} does not take {ops}: they run on the CPU",
        _remaining,
        _all_tried,
        remedy="no change that was tried moves them; replace the operators, or accept the copies",
    ),
)
