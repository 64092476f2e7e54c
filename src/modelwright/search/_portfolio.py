"""Several devices: one recipe for all of them, one for each, or a front; what can be carried where."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.search._fallback import FallbackStep
from modelwright.search._types import TuneResult, TuneRow
from modelwright.search._variant import BASELINE

Carried = Literal["portable", "ep-portable", "device-locked"]
_ARTIFACT = ("+", "-", "precision=", "opset=")
_AS_BASELINE = ("baseline", "noop")
_MEASURED = ("improved", "regressed", "equivalent", "no gain", "not decided", "inconclusive")
_UNTIMED = ("not measured", "duplicate")


@dataclass(frozen=True)
class PortfolioRow:
    """One recipe on every target, beside the baseline there: `effects` are None where no time was measured. `why` says
    where it is out; `front`: no other that every target takes is at least as good everywhere and better somewhere."""

    label: str
    effects: tuple[float | None, ...]
    worst: float | None
    why: str | None
    front: bool = False


@dataclass(frozen=True)
class CarriedArtifact:
    """Where the champion of a target can go: anywhere, to devices of the same EP, or nowhere else."""

    target: str
    champion: str
    word: Carried
    reason: str


@dataclass(frozen=True)
class Portfolio:
    """`one` is the recipe with the best worst case of those that every target takes; None where there is none, and
    `reason` says why. What each target would choose by itself is in its own result."""

    model: str
    targets: tuple[str, ...]
    one: str | None
    worst: float | None
    reason: str
    rows: tuple[PortfolioRow, ...]
    artifacts: tuple[CarriedArtifact, ...]
    chain: tuple[FallbackStep, ...] = ()

    def with_chain(self, chain: tuple[FallbackStep, ...]) -> Portfolio:
        return replace(self, chain=chain)


def portfolio(results: Sequence[TuneResult]) -> Portfolio:
    """From a search for each target. Effects are those of the screenings, which only choose."""
    targets = tuple(result.target for result in results)
    artifacts = tuple(map(_carried, results))
    different = _different(results)
    if different is not None:
        return Portfolio(results[0].model, targets, None, None, different, (), artifacts)
    rows = _fronted([_row(label, results) for label in _labels(results)])
    one, reason = _one(rows, results)
    worst = next((row.worst for row in rows if row.label == one), None)
    return Portfolio(results[0].model, targets, one, worst, reason, tuple(rows), artifacts)


def _different(results: Sequence[TuneResult]) -> str | None:
    """One recipe is one only where all begin with the same."""
    precisions = dict.fromkeys(result.precision for result in results)
    if len(precisions) == 1:
        return None
    each = ", ".join(f"{result.precision} for {result.target}" for result in results)
    return f"there is no one recipe: the baselines are {each}; `precision` makes them one"


def _labels(results: Sequence[TuneResult]) -> list[str]:
    """Those that are about the artifact alone: a setting of a session belongs to its device."""
    found = dict.fromkeys(row.label for result in results for row in result.rows)
    return [label for label in found if label == BASELINE or all(one.startswith(_ARTIFACT) for one in label.split(" "))]


def _row(label: str, results: Sequence[TuneResult]) -> PortfolioRow:
    found = [next((row for row in result.rows if row.label == label), None) for result in results]
    out = [_out(row, result) for row, result in zip(found, results, strict=True)]
    effects = tuple(_effect(row, result) for row, result in zip(found, results, strict=True))
    known = [effect for effect in effects if effect is not None]
    return PortfolioRow(label, effects, min(known, default=None), next((why for why in out if why is not None), None))


def _timed(result: TuneResult) -> bool:
    return result.timed and result.limits.objective == "latency"


def _out(row: TuneRow | None, result: TuneResult) -> str | None:
    """Why a target does not take it; a limit that is broken is no matter of degree."""
    if row is None:
        return f"not tried for {result.target}"
    if row.word in (*_AS_BASELINE, *_MEASURED) or (row.word in _UNTIMED and not _timed(result)):
        return None
    return f"{row.word} for {result.target}{f': {row.reason}' if row.reason else ''}"


def _effect(row: TuneRow | None, result: TuneResult) -> float | None:
    if row is None or not _timed(result):
        return None
    return 0.0 if row.word in _AS_BASELINE else row.effect


def _fronted(rows: list[PortfolioRow]) -> list[PortfolioRow]:
    taken = [row for row in rows if row.why is None]
    return [
        PortfolioRow(
            row.label,
            row.effects,
            row.worst,
            row.why,
            front=row.why is None and not any(_beats(other, row) for other in taken),
        )
        for row in rows
    ]


def _beats(one: PortfolioRow, other: PortfolioRow) -> bool:
    pairs = [
        (mine, theirs)
        for mine, theirs in zip(one.effects, other.effects, strict=True)
        if mine is not None and theirs is not None
    ]
    return all(mine >= theirs for mine, theirs in pairs) and any(mine > theirs for mine, theirs in pairs)


def _one(rows: Sequence[PortfolioRow], results: Sequence[TuneResult]) -> tuple[str | None, str]:
    """The best worst case, where it is worth having; else the baseline."""
    if not any(map(_timed, results)):
        return None, "nothing was timed, so nobody can say which recipe is best for all"
    taken = [row for row in rows if row.why is None and row.worst is not None]
    best = max(taken, key=lambda row: row.worst or 0.0, default=None)
    enough = max(result.limits.min_effect for result in results)
    if best is None or best.label == BASELINE or (best.worst or 0.0) < enough:
        better = "takes less energy" if results[0].limits.objective == "energy" else "is faster"
        return BASELINE, f"the baseline: no other recipe that every target takes {better} on all of them"
    untimed = [result.target for result in results if not _timed(result)]
    beside = f"; {', '.join(untimed)} takes it, and was not timed" if untimed else ""
    return best.label, f"{best.label} is {best.worst:+.1%} at worst, by screenings, which only choose{beside}"


def _carried(result: TuneResult) -> CarriedArtifact:
    options = [name for name in result.settings if name.startswith("opt.")]
    word, reason = portability(result.operators, result.target, options)
    return CarriedArtifact(result.target, result.champion, word, reason)


def portability(operators: Collection[str], target: str, options: Sequence[str] = ()) -> tuple[Carried, str]:
    """Where an artifact can go, by its operators (those outside standard ONNX with their domain) and the options of an
    EP that it was chosen with."""
    own = [name for name in operators if "." in name]
    if any(name.rpartition(".")[2] == "EPContext" for name in operators):
        return "device-locked", f"it is compiled for {target}"
    if own:
        return "ep-portable", f"it has {', '.join(own[:3])}, which is not standard ONNX: an EP has to know it"
    if options:
        return "ep-portable", f"the file is standard ONNX; {', '.join(options)} are options of this EP"
    return "portable", "standard ONNX, nothing compiled"
