"""What is known about a complaint before anything is concluded: read, placed, run once, compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from modelwright import diagnosis, measure, pipeline
from modelwright._dataclass import dataclass
from modelwright.answers._child import RunOutcome, WeightFacts, read_context_chip, read_weights, run_once
from modelwright.answers._log import LogCause, read_lines
from modelwright.answers._made import quantize_again
from modelwright.answers._types import LookedAt, Symptom
from modelwright.data import data_shapes
from modelwright.diagnosis import DebugReport
from modelwright.errors import InputError, WrightError
from modelwright.graph import DamagedFileError, ExternalDataError, ModelSummary, load, model_bytes, summary
from modelwright.measure import InputChoice
from modelwright.metrics import IDENTICAL
from modelwright.models import BuildVerdict, NoGuessError, recorded_verdict
from modelwright.pipeline import Analysis
from modelwright.store import Store
from modelwright.targets import GraphOptimization, InputsRefusedError, RunFailedError, SessionSpec, Target
from modelwright.vocabulary import OnProgress, Progress, silent
from modelwright.worker import run

RUN_S = 300.0
BAD_DB = 20.0
AGREEMENT, GATE = "agreement", "the build's own gate"
_SCANNED = 1 << 30
_SAMPLES = 4


@dataclass(frozen=True)
class SessionSettings:
    """How the session is opened by whoever complains; what is not said is as by default."""

    threads: int | None = None
    level: GraphOptimization = "all"
    config: Mapping[str, str] = field(default_factory=dict)
    provider_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def spec(self) -> SessionSpec:
        return SessionSpec(
            threads=self.threads,
            config=dict(self.config),
            provider_options=dict(self.provider_options),
            graph_optimization=self.level,
            allow_unused=True,
        )


@dataclass(frozen=True)
class Complaint:
    """A model on a target, as somebody uses it. `reference` is the float model that it should agree with; `budget_s` is
    what a race may take."""

    model: Path
    target: Target
    symptom: Symptom | None = None
    reference: Path | None = None
    inputs: InputChoice = field(default_factory=InputChoice)
    session: SessionSettings = field(default_factory=SessionSettings)
    budget_s: float = 40.0


@dataclass(frozen=True)
class Refused:
    """Why something was not done, in the words of who refused it; `about` where the kind of error says what it is."""

    problem: str
    cause: str
    fix: str
    about: Literal["external-data", "file-damaged", "no-guess", "inputs"] | None = None

    @property
    def words(self) -> str:
        return f"{self.problem}: {self.cause}"


@dataclass(frozen=True)
class Gathered:
    """Facts; what could not be had is None. `unfed` is why no inputs could be made up for it; `chip` what a compiled
    context says it was made for; `arrays` what a row of the data holds; `judged` what the build that it lies in said of
    itself; `uncompared` why it could not be compared with its reference; `again` the debug report of the same
    quantization made again on this data; `uneven` are weights of the reference with how much larger their largest
    channel is than the middle one."""

    complaint: Complaint
    model: ModelSummary | None = None
    unreadable: Refused | None = None
    analysis: Analysis | None = None
    run: RunOutcome | None = None
    refused: Refused | None = None
    unfed: Refused | None = None
    said: LogCause | None = None
    weights: WeightFacts | None = None
    chip: Mapping[str, str] | None = None
    arrays: Mapping[str, tuple[int, ...]] | None = None
    judged: BuildVerdict | None = None
    debug: DebugReport | None = None
    uncompared: Refused | None = None
    again: DebugReport | None = None
    uneven: Mapping[str, float] = field(default_factory=dict)
    looked_at: tuple[LookedAt, ...] = ()

    @property
    def fails(self) -> bool:
        return self.refused is not None or self.unreadable is not None

    @property
    def doubtful_inputs(self) -> bool:
        """Was it refused what was made up here? That says nothing about the model."""
        return self.refused is not None and self.refused.about == "inputs" and self.complaint.inputs.data.random

    @property
    def runs(self) -> bool:
        return self.run is not None


def gather(complaint: Complaint, store: Store, on_progress: OnProgress | None = None) -> Gathered:
    """Each look only where the one before it left something to see."""
    tell = on_progress or silent
    tell(Progress("reading the model"))
    found = _read(complaint)
    if found.unreadable is not None:
        return found
    found = _judged(found)
    tell(Progress(f"asking {complaint.target} which nodes it takes"))
    found = _placed(found, store, on_progress)
    tell(Progress("running it once"))
    found = _ran(found)
    found = _weighed(found)
    if complaint.reference is not None and found.runs:
        tell(Progress("comparing it with its reference"))
        found = _compared(found, store)
    return found


def noted(found: Gathered, what: str, said: str, ok: bool | None) -> Gathered:
    return replace(found, looked_at=(*found.looked_at, LookedAt(what, said, ok)))


def _read(complaint: Complaint) -> Gathered:
    found = Gathered(complaint)
    try:
        model = summary(load(complaint.model))
    except InputError as error:
        refused = Refused(error.problem, error.cause, error.fix, _kind(error))
        return noted(replace(found, unreadable=refused), "the file", refused.words, False)
    chip = run(read_context_chip.call(str(complaint.model)), timeout=RUN_S).unwrap() if model.ep_context else None
    opsets = ", ".join(f"{item.domain or 'ai.onnx'} {item.version}" for item in model.opsets)
    said = f"{model.node_count} nodes, {opsets}, IR {model.ir_version}, {model.precision.label or 'unknown precision'}"
    return noted(replace(found, model=model, chip=chip), "the file", said, True)


def _kind(error: InputError) -> Literal["external-data", "file-damaged"] | None:
    if isinstance(error, ExternalDataError):
        return "external-data"
    return "file-damaged" if isinstance(error, DamagedFileError) else None


def _judged(found: Gathered) -> Gathered:
    judged = recorded_verdict(found.complaint.model)
    if judged is None:
        return found
    words = {True: "passed", None: "it could not judge"}
    said = words.get(judged.passed) or "; ".join(judged.wrong) or "not passed"
    return noted(replace(found, judged=judged), GATE, said, judged.passed)


def _placed(found: Gathered, store: Store, on_progress: OnProgress | None) -> Gathered:
    complaint = found.complaint
    assert found.model is not None
    suggest = complaint.target.ep != "cpu" and not found.model.ep_context
    try:
        analysis = pipeline.analyze(
            complaint.model, complaint.target, suggest=suggest, store=store, on_progress=on_progress
        )
    except WrightError as error:
        return noted(found, "placement", f"{error.problem}: {error.cause}", None)
    placed = analysis.placement
    whole = not placed.unsupported or bool(found.model.ep_context)
    ok = {"placed": whole, "failed": False, "unknown": None}[placed.status]
    words = placed.reason or f"{len(placed.unsupported)} of {placed.running} nodes are left to another EP"
    return noted(replace(found, analysis=analysis), "placement", words, ok)


def _ran(found: Gathered) -> Gathered:
    complaint = found.complaint
    if found.analysis is not None and found.analysis.placement.status == "unknown":
        return noted(found, "one run", "not tried: the target cannot be asked here", None)
    outcome = attempt(complaint)
    if isinstance(outcome, Refused) and outcome.about == "no-guess":
        return noted(replace(found, unfed=outcome), "one run", outcome.words, None)
    if isinstance(outcome, Refused):
        said = next(iter(read_lines([outcome.cause]).causes), None)
        refused = replace(found, refused=outcome, said=said, arrays=_arrays(complaint))
        return noted(refused, "one run", outcome.words, None if refused.doubtful_inputs else False)
    found = replace(found, run=outcome)
    if not outcome.not_finite:
        return noted(found, "one run", "every answer is a number", True)
    made_up = complaint.inputs.data.random
    words = f"NaN or infinity in {', '.join(outcome.not_finite)}{', from made-up inputs' if made_up else ''}"
    return noted(found, "one run", words, None if made_up else False)


def attempt(complaint: Complaint) -> RunOutcome | Refused:
    """One run in a child, as the complaint has it."""
    try:
        subject = measure.make_subject(complaint.model, complaint.inputs)
    except WrightError as error:
        return Refused(error.problem, error.cause, error.fix, "no-guess" if isinstance(error, NoGuessError) else None)
    call = run_once.call(str(complaint.model), str(complaint.target), complaint.session.spec, dict(subject.feeds))
    result = run(call, timeout=RUN_S)
    if result.value is not None:
        return result.value
    assert result.failure is not None
    own = result.failure.error
    if own is not None:
        return Refused(own.problem, own.cause, own.fix, _fed_wrongly(own, complaint.target))
    return Refused(f"the process ended ({result.failure.kind})", result.failure.message, result.failure.advice)


def _fed_wrongly(error: WrightError, target: Target) -> Literal["inputs"] | None:
    """What opened and does not run: on the CPU what it is fed may be at fault, on another EP the EP as well."""
    own = isinstance(error, RunFailedError) and target.ep == "cpu"
    return "inputs" if own or isinstance(error, InputsRefusedError) else None


def _arrays(complaint: Complaint) -> Mapping[str, tuple[int, ...]] | None:
    if complaint.inputs.data.random:
        return None
    try:
        return data_shapes(complaint.inputs.data, 1)
    except WrightError:
        return None


def _weighed(found: Gathered) -> Gathered:
    if model_bytes(found.complaint.model) > _SCANNED:
        return noted(found, "weights", "not read: above 1 GiB", None)
    result = run(read_weights.call(str(found.complaint.model)), timeout=RUN_S)
    facts = result.value
    if facts is None:
        return noted(found, "weights", "could not be read", None)
    bad = [f"{name} has {count} that are no numbers" for name, count in facts.not_finite]
    return noted(replace(found, weights=facts), "weights", "; ".join(bad) or "all are numbers", not bad)


def _compared(found: Gathered, store: Store) -> Gathered:
    complaint = found.complaint
    assert complaint.reference is not None
    try:
        report = compared(complaint, complaint.model)
    except WrightError as error:
        refused = Refused(error.problem, error.cause, error.fix)
        return noted(replace(found, uncompared=refused), AGREEMENT, refused.words, None)
    found = noted(replace(found, debug=report), AGREEMENT, agreement_words(report), _agreed(found, report))
    if agrees(report) is False and model_bytes(complaint.reference) <= _SCANNED:
        facts = run(read_weights.call(str(complaint.reference)), timeout=RUN_S).value
        found = replace(found, uneven={} if facts is None else dict(facts.uneven))
    if agrees(report) is False and report.mode == "static" and not complaint.inputs.data.random:
        made = quantize_again(complaint, found.model, store)
        found = replace(found, again=None if made is None else compared(complaint, made))
    return found


def _agreed(found: Gathered, report: DebugReport) -> bool | None:
    """What lacks an output of its reference cannot take its place, however close the others are."""
    if report.missing_outputs or agrees(report) is False:
        return False
    numbers = found.run is not None and not found.run.not_finite
    return agrees(report) if numbers else None


def compared(complaint: Complaint, model: Path) -> DebugReport:
    assert complaint.reference is not None
    data = replace(complaint.inputs.data, samples=complaint.inputs.data.samples or _SAMPLES)
    return diagnosis.debug(complaint.reference, model, diagnosis.DebugOptions(data=data, origin=True))


def agrees(report: DebugReport) -> bool | None:
    """False below the decibels that `debug` calls bad, or where there is no number; None where nothing was compared."""
    if report.status in ("failed", "no_match", "crashed"):
        return False
    worst = report.worst_output_db
    if worst is not None:
        return worst >= BAD_DB
    return True if any(row.executed_reason == IDENTICAL for row in report.model_outputs) else None


def agreement_words(report: DebugReport) -> str:
    worst = report.worst_output_db
    reason = report.reason if report.status != "ok" else None
    if worst is not None:
        words = f"the worst output has {worst:.1f} dB ({report.samples} samples)"
    elif agrees(report):
        words = "what both answer with is identical" if reason else IDENTICAL
    else:
        return reason or "no output could be compared"
    return f"{words}; {reason}" if reason else words
