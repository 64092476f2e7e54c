"""From where a search stands to its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from modelwright.judge import Finding, Verdict, VerdictKind
from modelwright.measure import sentence
from modelwright.pipeline import Recipe, toml_text
from modelwright.search._contender import Contender
from modelwright.search._energy import energy_sentence, of_energy
from modelwright.search._events import SearchDone
from modelwright.search._front import front_of
from modelwright.search._machine import TuneSearch
from modelwright.search._types import TUNE_PROTOCOL, TuneResult, TuneRow
from modelwright.search._variant import BASELINE, AxisChange
from modelwright.search._workshop import written

_GIVEN_UP = "given up after a few units"


def tune_result(
    search: TuneSearch, done: SearchDone, *, recipe: Recipe, pinned: tuple[AxisChange, ...] = (), **known: Any
) -> TuneResult:
    """`known` are fields of the result that the search itself does not know."""
    tried = search.baseline.tried
    timed = tried is None or tried.timed
    champion = search.contenders[done.champion]
    session = written(champion.variant, "model.onnx", pinned)
    settings = str(session).partition("@")[2]
    rows = [_row(search, one) for one in search.contenders.values()]
    return TuneResult(
        status="complete",
        champion=done.champion,
        reason=done.reason,
        finding=_worded(search),
        sentence=_sentence(search, done, timed),
        timed=timed,
        rows=tuple(sorted(rows, key=_order)),
        front=front_of(rows, done.champion, search.limits, timed=timed),
        fits=_fits(search, champion),
        latency=search.latency(done.champion),
        needed_s=done.needed_s,
        combined=search.combining.said,
        timeline=search.timeline,
        settings=dict(item.split("=", 1) for item in settings.split(",") if item),
        recipe=toml_text(recipe),
        limits=search.limits,
        protocol=TUNE_PROTOCOL,
        seed=search.seed,
        units=search.units,
        spent_s=search.spent_s,
        **known,
    )


def _fits(search: TuneSearch, champion: Contender) -> bool | None:
    most = search.limits.max_memory
    peak = champion.tried.peak_bytes if champion.tried is not None else None
    return None if most is None or peak is None else peak <= most


def _sentence(search: TuneSearch, done: SearchDone, timed: bool) -> str:
    """Only what fresh units say is said of the champion."""
    found = search.finding
    if not timed or found is None or done.champion == BASELINE:
        return f"the baseline stays: {done.reason}" if done.champion == BASELINE else done.reason
    said = energy_sentence if search.limits.objective == "energy" else sentence
    return f"{said(done.champion, BASELINE, found, search.confirmed_s)}; on a fresh build and fresh units"


def _row(search: TuneSearch, one: Contender) -> TuneRow:
    row = _told(search, one)
    return row if one.tried is None else replace(row, peak_bytes=one.tried.peak_bytes, lost=one.tried.lost)


def _told(search: TuneSearch, one: Contender) -> TuneRow:
    size, left = one.made.size if one.made else None, one.tried.left_nodes if one.tried else None
    if one is search.baseline:
        return TuneRow(one.label, "baseline", "", size=size, left_nodes=left)
    if one.same_as is not None:
        word = VerdictKind.NOOP if one.same_as == BASELINE else VerdictKind.DUPLICATE
        return TuneRow(one.label, word.value, f"the same as {one.same_as}", size=size, left_nodes=left)
    if one.dropped is not None:
        return TuneRow(one.label, one.dropped.why, one.dropped.reason, size=size, left_nodes=left)
    confirmed = search.race is not None and search.race.arms == (one.label,)
    verdict = _first(search.finding) if confirmed else one.verdict
    if verdict is None:
        return TuneRow(one.label, "not measured", "", size=size, left_nodes=left)
    verdict = of_energy(verdict) if search.limits.objective == "energy" else verdict
    said, reason = (verdict.kind.value, verdict.reason) if confirmed else _screened(verdict, one.label in search.alive)
    return TuneRow(one.label, said, reason, verdict.effect, verdict.low, verdict.high, verdict.units, size, left)


def _screened(verdict: Verdict, alive: bool) -> tuple[str, str]:
    """Who was given up early has no verdict, and the judge's reason would be about units that nobody wanted."""
    if verdict.kind in (VerdictKind.IMPROVED, VerdictKind.REGRESSED, VerdictKind.EQUIVALENT):
        return verdict.kind.value, verdict.reason
    return ("not decided", verdict.reason) if alive else ("no gain", _GIVEN_UP)


def _worded(search: TuneSearch) -> Finding | None:
    found = search.finding
    if found is None or search.limits.objective != "energy":
        return found
    return replace(found, by=tuple(map(of_energy, found.by)))


def _first(found: Finding | None) -> Verdict | None:
    return None if found is None else found.by[0]


def _order(row: TuneRow) -> tuple[int, float]:
    """The baseline, then what was measured by its effect, then the rest."""
    if row.label == BASELINE:
        return (0, 0.0)
    return (1, -row.effect) if row.effect is not None else (2, 0.0)
