"""The levels above parity, each by the verb of the library that answers it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from modelwright._dataclass import dataclass
from modelwright._installed import installed
from modelwright._scratch import scratch
from modelwright.errors import ExecutionError, InputError, UsageError, WrightError
from modelwright.evidence import busy_words
from modelwright.models import HfSource
from modelwright.pipeline import judged_rows
from modelwright.stages.validate import Gate, cosine_bound, is_quantized
from modelwright.support._answers import compare_answers, run_elsewhere, run_in_another
from modelwright.support._case import CasePart, told
from modelwright.support._climb import Climb
from modelwright.support._levels import SESSIONS, Hindrance, PortableSeen, SpeedSeen, TaskSeen
from modelwright.support._words import RowWord
from modelwright.worker import ChildError, Runtime, find_runtime, run, runtime_names

if TYPE_CHECKING:
    from modelwright.evaluation import EvalResult
    from modelwright.measure import CompareResult, PerfResult

_SECONDS = 1.0
_ELSEWHERE_S, _MOVED = 600.0, 2
_NO_SCORE = "no task and no metric says how rows are scored"
_NO_DATA = "no labelled data is claimed, and none comes with the model"


class Verbs(Protocol):
    """The verbs of the library that a level asks. Each keeps its answer as a record."""

    def evaluate(self, model: Path, reference: str, **said: Any) -> EvalResult: ...
    def perf(self, model: Path, target: str, **said: Any) -> PerfResult: ...
    def compare(self, base: Path, other: Path, target: str) -> CompareResult: ...


@dataclass(frozen=True)
class LevelFound:
    """What was measured, and the ids of the records that were kept."""

    seen: Any
    records: tuple[str, ...] = ()


def _ids(*found: Any) -> tuple[str, ...]:
    return tuple(one.record_id for one in found if getattr(one, "record_id", None) is not None)


def task_level(climb: Climb, verbs: Verbs) -> LevelFound:
    """L3: on all rows but those that found ranges."""
    claim, source = climb.claim, climb.source
    if claim.data is None or claim.data.asked.random:
        return LevelFound(TaskSeen(hindrance=Hindrance("data", _NO_DATA)))
    reference = str(source.folder or source.name) if isinstance(source, HfSource) else source.path
    _, after = judged_rows(climb.built.recipe)
    said: dict[str, Any] = {"data": claim.data.asked, "after": after, "target": climb.built.asked.case.target}
    said |= {"max_drop": claim.tolerances.max_drop, "metric": climb.built.asked.given.metric}
    said |= {"task": None if claim.metric is not None else claim.source.task or getattr(source, "task", None)}
    if said["task"] is None and claim.metric is None:
        return LevelFound(TaskSeen(hindrance=Hindrance("harness", _NO_SCORE)))
    try:
        found = verbs.evaluate(climb.built.folder, reference, **said)
    except WrightError as error:
        return LevelFound(TaskSeen(**_hindered(error)))
    values = found.values
    return LevelFound(
        TaskSeen(
            verdict=None if found.verdict is None else found.verdict.value,
            metric=None if found.metric is None else found.metric.name,
            max_drop=found.max_drop,
            candidate=None if values is None else values.candidate,
            reference=None if values is None else values.reference,
            samples=found.data.selected,
            data=found.data.digest,
            reasons=found.reasons,
        ),
        _ids(found),
    )


def _hindered(error: WrightError) -> dict[str, Any]:
    if isinstance(error, ChildError):
        late = error.kind in ("timeout", "stalled")
        return {"hindrance": Hindrance("timeout", told(error))} if late else {"failure": told(error)}
    if isinstance(error, UsageError):
        return {"hindrance": Hindrance("harness", told(error))}
    return {"hindrance": Hindrance("data", told(error))} if isinstance(error, InputError) else {"failure": told(error)}


def speed_level(climb: Climb, part: CasePart, verbs: Verbs, base: Path | None) -> LevelFound:
    """L4. `base` is the same part of the build without the contribution, where faster is claimed."""
    claim, target = climb.claim, climb.built.asked.case.target
    limit, faster = claim.tolerances.max_p50_ms, claim.tolerances.faster
    seen = SpeedSeen(limit_ms=limit, faster=faster)
    simulated = climb.runs(part).simulated
    if simulated:
        # Timing it would take long and say nothing.
        said = "a simulator computes it here: its times say nothing about the chip"
        return LevelFound(replace(seen, timing_valid=False, hindrance=Hindrance("host", said)))
    try:
        found = verbs.perf(part.artifact, target, sessions=SESSIONS, duration_s=_SECONDS, inputs=part.inputs)
    except WrightError as error:
        return LevelFound(replace(seen, **_hindered(error)))
    times = found.latency
    seen = replace(
        seen,
        timing_valid=found.timing_valid,
        sessions=len([one for one in found.sessions if one.samples_ns]),
        p50_ms=None if times is None else times.p50_ms,
        p99_ms=None if times is None else times.p99_ms,
        busy=busy_words(found.environment.foreign_load.value, found.environment.host.cpu.usable),
    )
    if not faster or base is None:
        return LevelFound(seen, _ids(found))
    try:
        race = verbs.compare(base, part.artifact, target)
    except WrightError as error:
        return LevelFound(replace(seen, **_hindered(error)), _ids(found))
    words = [arm.verdict.kind.value for arm in race.arms if arm.verdict is not None]
    return LevelFound(replace(seen, compared=words[0] if words else None), _ids(found, race))


def portable_level(climb: Climb, others: Mapping[str, Climb], cpu: RowWord | None) -> LevelFound:
    """L5: beside every other artifact of the claim, and somewhere else."""
    seen = PortableSeen(cpu=cpu)
    try:
        agree = {name: same for name, other in others.items() if (same := _agrees(climb, other)) is not None}
    except WrightError as error:
        return LevelFound(replace(seen, failure=told(error)))
    seen = replace(seen, agree=agree)
    try:
        opened, same = _elsewhere(climb)
    except WrightError as error:
        why = error.cause if isinstance(error, ChildError) else told(error)
        return LevelFound(replace(seen, refused=f"the other runtime does not take it: {why}"))
    return LevelFound(replace(seen, opened=opened, moved_agrees=same))


def _agrees(one: Climb, other: Climb) -> bool | None:
    """On the same inputs; None where they were not fed the same."""
    for mine, theirs in zip(one.built.parts, other.built.parts, strict=False):
        ours, others = one.runs(mine), other.runs(theirs)
        if ours.fed is None or ours.fed != others.fed or not min(ours.inputs, others.inputs):
            return None
        precision = min((one.precision, other.precision), key=cosine_bound)
        count = min(ours.inputs, others.inputs)
        with scratch("agree") as folder:
            _lay_out(Path(folder), (one.place, mine.name), (other.place, theirs.name), count)
            gate = Gate(precision=precision, elsewhere=True, task=one.task)
            outputs = run(
                compare_answers.call(str(folder), "model", count, gate, not ours.real), timeout=_ELSEWHERE_S
            ).unwrap()
        bound = cosine_bound(precision)
        if any(out.parity.reason is not None or (out.parity.cosine or 1.0) < bound for out in outputs):
            return False
    return True


def _lay_out(folder: Path, mine: tuple[Path, str], theirs: tuple[Path, str], count: int) -> None:
    for number in range(count):
        shutil.copyfile(mine[0] / f"{mine[1]}-f{number}.npz", folder / f"model-f{number}.npz")
        shutil.copyfile(mine[0] / f"{mine[1]}-g{number}.npz", folder / f"model-g{number}.npz")
        shutil.copyfile(theirs[0] / f"{theirs[1]}-g{number}.npz", folder / f"model-w{number}.npz")


def _another_runtime() -> Runtime | None:
    """One of this machine that has another onnxruntime; None where nobody has made one that is whole."""
    for name in runtime_names():
        with contextlib.suppress(ExecutionError):
            found = find_runtime(name)
            if found.version("onnxruntime") not in (None, installed("onnxruntime")):
                return found
    return None


def _elsewhere(climb: Climb) -> tuple[str, bool]:
    """The folder moved, each part opened by another runtime, a few samples compared with what the target gave."""
    engine, same, other = "", True, _another_runtime()
    with scratch("moved") as place:
        folder = climb.moved(Path(place, "moved"))
        for part in climb.built.parts:
            count = min(_MOVED, climb.runs(part).inputs)
            for number in range(count):
                for kind in "fg":
                    name = f"{part.name}-{kind}{number}.npz"
                    shutil.copyfile(climb.place / name, Path(place, name))
            model = str(climb.moved_model(folder, part))
            asked = run_elsewhere if other is None else run_in_another
            call = asked.call(str(place), part.name, model, count)
            engine = run(call, runtime=other, timeout=_ELSEWHERE_S).unwrap()
            gate = Gate(precision=climb.precision, elsewhere=True, task=climb.task)
            random = not climb.runs(part).real
            outputs = run(
                compare_answers.call(str(place), part.name, count, gate, random), timeout=_ELSEWHERE_S
            ).unwrap()
            bound = min(cosine_bound(climb.precision), 0.999 if not is_quantized(climb.precision) else 1.0)
            same = same and all(one.parity.reason is None and (one.parity.cosine or 1.0) >= bound for one in outputs)
    return engine, same
