"""Rows and sums of the report, from what the runs gathered."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from modelwright.diagnosis._match_view import DEQUANTIZE, QUANTIZE, View, label
from modelwright.diagnosis._match_weights import WeightPair
from modelwright.diagnosis._stream import Streamed, Track
from modelwright.diagnosis._types import (
    INPUT,
    Activation,
    DecibelSpread,
    MatchKind,
    NoiseShare,
    OutputScore,
    WeightScore,
)
from modelwright.metrics import compare_parts
from modelwright.stages.quantize import WORKERS

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray

# Elements of a weight that are compared at a time.
_PART = 1 << 20
_NOT_QUANTIZED = "not quantized here"
_COMPUTED_SCALE = "its scale is computed while the model runs"


def activation_rows(wanted: View, tracks: Sequence[Track]) -> tuple[Activation, ...]:
    """In graph order, each with its share of all noise that was added."""
    added = {id(track): track.introduced.noise_to_signal for track in tracks}
    total = sum(number for number in added.values() if number)
    return tuple(
        _activation(wanted, track, order, _share(added[id(track)], total)) for order, track in enumerate(tracks)
    )


def output_rows(ends: Sequence[tuple[str, str, MatchKind]], seen: Streamed) -> tuple[OutputScore, ...]:
    rows = []
    for name, other, kind in ends:
        found, real = seen.outputs[name].aggregate(), seen.executed[name].aggregate()
        rows.append(
            OutputScore(
                output_name=name,
                quant_name=other,
                match_kind=kind,
                cumulative_sqnr_db=found.sqnr_db.pooled if not found.failed else None,
                cumulative_mean_db=found.sqnr_db.mean,
                cumulative_worst_db=found.sqnr_db.worst,
                cumulative_reason=found.problem or (found.sqnr_db.reason if found.sqnr_db.pooled is None else None),
                executed_sqnr_db=real.sqnr_db.pooled if not real.failed else None,
                executed_reason=real.problem or (real.sqnr_db.reason if real.sqnr_db.pooled is None else None),
                cosine=real.cosine.pooled,
                max_abs=real.max_abs.pooled,
                top1=real.top1.pooled if name in seen.classes else None,
                samples=real.samples,
                failed=max(real.failed, found.failed),
            )
        )
    return tuple(rows)


def weight_rows(wanted: View, pairs: Iterable[WeightPair]) -> tuple[WeightScore, ...]:
    """One weight in memory at a time."""
    return tuple(_weight(wanted, pair) for pair in pairs)


def spread(numbers: Iterable[float | None]) -> DecibelSpread:
    known = [number for number in numbers if number is not None]
    if not known:
        return DecibelSpread(0, None, None, None, None)
    return DecibelSpread(len(known), statistics.fmean(known), statistics.pstdev(known), min(known), max(known))


def shares(rows: Sequence[Activation], key: Callable[[Activation], str]) -> tuple[NoiseShare, ...]:
    """The largest group first."""
    groups: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.origin_share is not None:
            groups[key(row)].append(row.origin_share)
    found = [NoiseShare(name, sum(parts), len(parts)) for name, parts in groups.items()]
    return tuple(sorted(found, key=lambda item: (-item.share, item.name)))


def module_of(name: str) -> str:
    """The module a node belongs to, as exporters write it: everything before the last part of its name."""
    parts = [part for part in name.split("/") if part]
    return "/".join(parts[:-1])


def _share(added: float | None, total: float) -> float | None:
    if added is None:
        return None
    return added / total if total > 0 else 0.0


def _activation(wanted: View, track: Track, order: int, share: float | None) -> Activation:
    pair, seen = track.pair, track.cumulative
    node = _worker(wanted, track)
    pooled = None if seen.failed else seen.pooled
    noise = track.local.moments.noise
    return Activation(
        tensor_name=pair.tensor,
        order=order,
        node=label(node) if node is not None else INPUT,
        op_type=node.op_type if node is not None else INPUT,
        module=module_of(label(node)) if node is not None else "",
        nodes=tuple(label(wanted.nodes[index]) for index in track.region),
        quant_tensor=pair.quant,
        match_kind=pair.kind,
        absorbed=pair.absorbed,
        dtype=pair.grid.dtype if pair.grid is not None else None,
        local_sqnr_db=track.local.sqnr_db,
        local_reason=_local_reason(track),
        cumulative_sqnr_db=seen.sqnr_db,
        cumulative_mean_db=seen.mean_db,
        cumulative_worst_db=seen.worst_db,
        cumulative_reason=seen.reason,
        introduced_sqnr_db=track.introduced.sqnr_db,
        introduced_reason=track.introduced.reason if track.introduced.samples else "not measured",
        origin_share=share,
        clip_fraction=track.clipped / track.local.moments.count if track.local.moments.count else None,
        clip_noise_share=min(1.0, track.clip_noise / noise) if noise else None,
        cosine=pooled.cosine.value if pooled else None,
        max_abs=pooled.max_abs.value if pooled else None,
        relative_l2=pooled.relative_l2.value if pooled else None,
    )


def _worker(wanted: View, track: Track) -> onnx.NodeProto | None:
    """The node that stands for the tensor: the one with the weights, where others were folded into it."""
    maker = wanted.maker(track.pair.tensor)
    inside = [wanted.nodes[index] for index in track.region]
    real = [node for node in inside if node.op_type not in (QUANTIZE, DEQUANTIZE)]
    heavy = [node for node in real if node.op_type in WORKERS]
    return heavy[-1] if heavy else real[-1] if real and maker not in real else maker


def _local_reason(track: Track) -> str | None:
    if track.local.samples:
        return track.local.reason
    if track.pair.grid is not None:
        return f"{track.pair.grid.dtype} is no integer type"
    return _COMPUTED_SCALE if track.pair.site else _NOT_QUANTIZED


def _parts(values: NDArray[Any], pair: WeightPair) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """A large weight in parts: what is computed with is there several times over, in double precision."""
    if values.size <= _PART or values.shape != pair.shape:
        yield values, pair.read(slice(None))
        return
    count = max(1, _PART * values.shape[pair.axis] // values.size)
    for begin in range(0, values.shape[pair.axis], count):
        part = slice(begin, begin + count)
        yield values[(*(slice(None) for _ in range(pair.axis)), part)], pair.read(part)


def _weight(wanted: View, pair: WeightPair) -> WeightScore:
    values = wanted.values(pair.weight)
    found = compare_parts(_parts(values, pair))
    return WeightScore(
        weight_name=pair.weight,
        quant_name=pair.quant,
        node=pair.node,
        dtype=pair.dtype,
        granularity=pair.granularity,
        elements=values.size,
        weight_sqnr_db=found.sqnr_db.value,
        weight_reason=found.sqnr_db.reason,
        max_abs=found.max_abs.value,
    )
