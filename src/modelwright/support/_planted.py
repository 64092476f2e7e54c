"""Defects that a reviewer plants before believing its own judge: each must be found, and what is sound must pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright.errors import ExecutionError
from modelwright.stages.validate import OutputParity
from modelwright.support._gate import BASE, WITH, GateRun, judge_gate
from modelwright.support._levels import (
    LevelJudgement,
    OutputSeen,
    OwedSeen,
    ParitySeen,
    PortableSeen,
    RunsSeen,
    SpeedSeen,
    StructureSeen,
    TaskSeen,
    judge_level,
)
from modelwright.support._words import Level

Judge = Callable[[Level, Mapping[str, Any]], LevelJudgement]
_CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class Planted:
    """`measured` is what `level` would be judged by; it must not pass."""

    defect: str
    level: Level
    measured: Any


def _output(cosine: float | None = 1.0, max_abs: float | None = 0.0, reason: str | None = None) -> OutputSeen:
    return OutputSeen(OutputParity("logits", "scores", cosine, max_abs, None, None, False, reason), 1.0)


_SOUND: Mapping[Level, Any] = {
    "L0": StructureSeen(opset=(18, 18), precision=("fp32", "fp32"), vocabulary=(99, 99), labels=(3, 3)),
    "L1": RunsSeen(wanted=_CPU, bound=_CPU, inputs=24, asked=24),
    "L2": ParitySeen(samples=24, outputs=(_output(),), reference="torch"),
    "L3": TaskSeen(verdict="pass", metric="accuracy", candidate=0.9, reference=0.9),
    "L4": SpeedSeen(timing_valid=True, sessions=5, p50_ms=1.0, p99_ms=1.5),
    "L5": PortableSeen(agree={"cpu fp32": True}, opened="another runtime", moved_agrees=True, cpu="pass"),
}


def _defect(says: str, level: Level, **changes: Any) -> Planted:
    return Planted(says, level, replace(_SOUND[level], **changes))


DEFECTS = (
    _defect("fp16 in the name, fp32 in the weights", "L0", precision=("fp16", "fp32")),
    _defect("head weights that no checkpoint has", "L0", new_weights=("classifier.weight",)),
    _defect("an input that was left out and matters", "L0", owed=(OwedSeen("bbox", True, None),)),
    _defect("a data file outside the build", "L0", outside=("../weights.bin",)),
    _defect("a file of another build beside it", "L0", strangers=("model.onnx.data",)),
    _defect("encoder outputs that were swapped", "L0", links=("encoder.0 feeds decoder.1 of another shape",)),
    _defect("a graph that the checker refuses", "L0", checker="no such operator"),
    _defect("another EP computed", "L1", wanted="QNNExecutionProvider"),
    _defect("NaN in an answer", "L1", not_finite=("logits",)),
    _defect("the same answer for every input", "L1", constant=("logits",)),
    _defect("a crash after the answers", "L1", exit=-11),
    _defect("NaN in the comparison", "L2", outputs=(_output(None, None, "not finite"),)),
    _defect("an answer that is turned round", "L2", outputs=(_output(-1.0, 2.0),)),
    _defect("one output that is far off beside one that is not", "L2", outputs=(_output(), _output(0.9, 0.5))),
    _defect("a reference that had loaded the family", "L2", foreign=("families.mine",)),
    _defect("too few samples", "L2", samples=1),
    _defect("texts that differ", "L2", writes=True, steps=8, texts=(2, 3)),
    _defect("an evaluation that says fail", "L3", verdict="fail"),
    _defect("an evaluation that decides nothing", "L3", verdict="inconclusive"),
    _defect("times of a simulator", "L4", timing_valid=False),
    _defect("a tail that is three times the median", "L4", p99_ms=3.0),
    _defect("slower than claimed", "L4", limit_ms=0.5),
    _defect("faster without a race", "L4", faster=True),
    _defect("artifacts that disagree", "L5", agree={"cpu fp32": False}),
    _defect("a folder that answers otherwise once it is moved", "L5", moved_agrees=False),
)


def hunt(judge: Judge = judge_level) -> int:
    """How many planted defects were found; raises where the judge here lets one through, or refuses what is sound."""
    missed = [*_missed(judge), *_gate_missed()]
    if missed:
        raise ExecutionError(
            f"nothing is reviewed: the judge here is blind to {len(missed)} planted defects",
            cause=f"for example: {missed[0]}",
            fix="review with a modelwright that nobody changed",
        )
    return len(DEFECTS) + len(_GATE)


def _missed(judge: Judge) -> Iterator[str]:
    for level, sound in _SOUND.items():
        if judge(level, plain(sound)).word != "pass":
            yield f"{level} of something sound is not called pass"
    for one in DEFECTS:
        if judge(one.level, plain(one.measured)).word == "pass":
            yield f"{one.defect} ({one.level})"


def _runs(arm: str, works: int, graph: str = "a", content: str = "a") -> list[GateRun]:
    return [GateRun(arm, seed, seed < works, graphs={"model": graph}, contents={"model": content}) for seed in range(5)]


_GATE: tuple[tuple[str, list[GateRun], str], ...] = (
    ("a recipe that is what the tool does anyway", [*_runs(BASE, 5), *_runs(WITH, 5)], "no-delta"),
    ("a base that works by chance", [*_runs(BASE, 2), *_runs(WITH, 5)], "flaky"),
    ("a contribution that fails for a seed", [*_runs(BASE, 0), *_runs(WITH, 4)], "flaky"),
    ("nothing builds", [*_runs(BASE, 0), *_runs(WITH, 0)], "blocked"),
)


def _gate_missed() -> Iterator[str]:
    for defect, runs, word in _GATE:
        if judge_gate(runs, (), contributed=True).word != word:
            yield f"{defect} (gate)"
    inert = judge_gate([*_runs(BASE, 5), *_runs(WITH, 5)], ("export.attention",), contributed=True)
    if inert.word != "inert":
        yield "a field that changes nothing (gate)"
