"""What a record says in its head about each kind of answer: the models, the targets, the data, the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.evidence import RecordedData, RecordedModel, RecordedVerdict
from modelwright.judge import JUDGE_VERSION
from modelwright.models import FileDigest
from modelwright.vocabulary import Result, as_data

if TYPE_CHECKING:
    import modelwright.answers.ship as shipping
    import modelwright.answers.watch as watching
    import modelwright.support as adding
    from modelwright import answers, diagnosis, evaluation, knowledge, measure, models, pipeline, repairs, search
    from modelwright.answers import Decision, Diagnosis
    from modelwright.answers.ship import ShipResult
    from modelwright.answers.watch import WatchResult
    from modelwright.diagnosis import DebugReport
    from modelwright.evaluation import EvalResult
    from modelwright.knowledge import ExperimentResult
    from modelwright.measure import CompareResult, PerfResult
    from modelwright.pipeline import Analyses, Builds
    from modelwright.repairs import Repaired
    from modelwright.search import TuneResult, TuneSweep
    from modelwright.store import FileEntry
    from modelwright.support import GateResult, SupportBatch, SupportRun
else:
    answers = lazy("modelwright.answers")
    diagnosis = lazy("modelwright.diagnosis")
    evaluation = lazy("modelwright.evaluation")
    knowledge = lazy("modelwright.knowledge")
    measure = lazy("modelwright.measure")
    models = lazy("modelwright.models")
    pipeline = lazy("modelwright.pipeline")
    repairs = lazy("modelwright.repairs")
    search = lazy("modelwright.search")
    adding = lazy("modelwright.support")
    shipping = lazy("modelwright.answers.ship")
    watching = lazy("modelwright.answers.watch")

_BY_JUDGE = f"judge-{JUDGE_VERSION}"


@dataclass(frozen=True)
class Facts:
    """`protocol` goes up when the same numbers would have to be read differently."""

    protocol: str
    models: tuple[RecordedModel, ...]
    targets: tuple[str, ...]
    data: tuple[RecordedData, ...] = ()
    verdict: RecordedVerdict | None = None


@dataclass(frozen=True)
class Kind:
    """Facts come from the answer; what it does not say, from what the verb was given."""

    payload: Callable[[], type[Result]]
    facts: Callable[[Any, Mapping[str, Any]], Facts]


def payload_of(kind: str) -> type | None:
    """Of which type the answer of a kind is; None for a kind that is not kept."""
    return KINDS[kind].payload() if kind in KINDS else None


def facts_of(result: Result, given: Mapping[str, Any]) -> Facts | None:
    """None for an answer that follows from its model alone, as `inspect` does: there is nothing to keep."""
    found = KINDS.get(result.kind)
    return found.facts(result, given) if found is not None and isinstance(result, found.payload()) else None


def _perf(result: PerfResult, given: Mapping[str, Any]) -> Facts:
    return Facts(
        result.protocol,
        (RecordedModel("model", _name(given, "model", result.model), result.files),),
        (result.requested.target,),
        (RecordedData(result.inputs_from, None),),
    )


def _compare(result: CompareResult, given: Mapping[str, Any]) -> Facts:
    arms = tuple(
        RecordedModel("base" if arm.name == result.base else arm.name, arm.model, arm.files) for arm in result.arms
    )
    words = [(arm.name, arm.verdict.kind.value) for arm in result.arms if arm.verdict is not None]
    said = words[0][1] if len(words) == 1 else ", ".join(f"{name} {word}" for name, word in words)
    return Facts(
        result.protocol,
        arms,
        _unique(arm.target for arm in result.arms),
        (RecordedData("inputs", result.inputs_digest),),
        RecordedVerdict(said, _BY_JUDGE) if words else None,
    )


def _eval(result: EvalResult, given: Mapping[str, Any]) -> Facts:
    sides = (("model", result.candidate), ("reference", result.reference))
    return Facts(
        "eval-1",
        tuple(RecordedModel(role, _name(given, role, side.model), side.files) for role, side in sides),
        _unique(side.target for _, side in sides),
        (RecordedData(result.data.source, result.data.digest),),
        RecordedVerdict(result.verdict.value, _BY_JUDGE) if result.verdict is not None else None,
    )


def _debug(result: DebugReport, given: Mapping[str, Any]) -> Facts:
    return Facts(
        "debug-1",
        (
            RecordedModel("model", _name(given, "model", result.quant_model), result.quant_files),
            RecordedModel("reference", _name(given, "reference", result.float_model), result.float_files),
        ),
        (result.target,),
        (RecordedData(result.data.kind, None),),
        RecordedVerdict(result.status, "debug-1"),
    )


def _diagnose(result: Diagnosis, given: Mapping[str, Any]) -> Facts:
    word = result.without_cause if result.healthy is not False else _first_cause(result)
    models = (
        () if result.model is None else (RecordedModel("model", _name(given, "model", result.model), result.files),)
    )
    return Facts(
        answers.DIAGNOSE_PROTOCOL,
        models,
        () if result.target is None else (result.target,),
        verdict=RecordedVerdict(str(word), answers.DIAGNOSE_PROTOCOL),
    )


def _advise(result: Decision, given: Mapping[str, Any]) -> Facts:
    return Facts(
        answers.ADVISE_PROTOCOL,
        (RecordedModel("model", _name(given, "model", result.model), result.files),),
        _unique(offer.target for offer in result.offers),
        (RecordedData(as_data(given.get("data")).source, None),),
        RecordedVerdict(_decided(result), answers.ADVISE_PROTOCOL),
    )


def _decided(result: Decision) -> str:
    if result.chosen is None:
        return "cannot tell" if result.undecided else "nothing holds"
    return f"{result.chosen}, not decided" if result.undecided else result.chosen


def _first_cause(result: Diagnosis) -> str:
    if result.causes:
        return result.causes[0].rule
    return "" if result.log is None else result.log.causes[0].id


def _analyze(result: Analyses, given: Mapping[str, Any]) -> Facts:
    words, every = {True: "supported", False: "not supported", None: "unknown"}, {one.files: None for one in result}
    return Facts(
        "analyze-1",
        tuple(RecordedModel("model", _name(given, "model", files[0].name), files) for files in every),
        _unique(one.target for one in result),
        verdict=RecordedVerdict(words[result.supported], "analyze-1"),
    )


def _build(result: Builds, given: Mapping[str, Any]) -> Facts:
    def parts() -> Iterator[RecordedModel]:
        for build in result:
            first = build.components[0].stages[0]
            yield RecordedModel("source", build.source, _files(first.artifact.files))
            for part in build.components:
                yield RecordedModel(f"{part.name} for {build.target}", build.source, _files(part.final.files))

    words = {True: "passed", False: "failed", None: "unknown"}
    return Facts(
        "build-1",
        tuple(parts()),
        _unique(build.target for build in result),
        tuple(RecordedData(source, None) for source in _unique(build.recipe.data.source for build in result)),
        RecordedVerdict(words[result.passed], "build-1"),
    )


def _repair(result: Repaired, given: Mapping[str, Any]) -> Facts:
    files = {role: models.model_files(models.onnx_of(given[role])) for role in ("model", "reference")}
    return Facts(
        "repair-1",
        tuple(RecordedModel(role, str(given[role]), found) for role, found in files.items()),
        (result.result.target,),
        (RecordedData(as_data(given.get("data")).source, None),),
        RecordedVerdict(result.result.status, _BY_JUDGE),
    )


def _tune(result: TuneResult, given: Mapping[str, Any]) -> Facts:
    word = result.champion if result.status == "complete" else "unfinished"
    return Facts(
        result.protocol,
        (RecordedModel("model", _name(given, "model", result.model), result.files),),
        (result.target,),
        (RecordedData(as_data(given.get("data")).source, None),),
        RecordedVerdict(word, _BY_JUDGE),
    )


def _sweep(result: TuneSweep, given: Mapping[str, Any]) -> Facts:
    done = [row.result for row in result.rows if row.result is not None]
    models = tuple(RecordedModel("model", row.name, row.result.files) for row in result.rows if row.result is not None)
    word = f"{len(done)} of {len(result.rows)} searches have an answer"
    return Facts("sweep-1", models, _unique(row.target for row in result.rows), (), RecordedVerdict(word, _BY_JUDGE))


def _experiment(result: ExperimentResult, given: Mapping[str, Any]) -> Facts:
    return Facts(
        "experiment-1",
        (RecordedModel("model", result.model, ()),),
        (result.target,),
        verdict=RecordedVerdict(result.word, _BY_JUDGE),
    )


def _support_gate(result: GateResult, given: Mapping[str, Any]) -> Facts:
    about = RecordedModel("model", _name(given, "model", "model"), ())
    return Facts("support-1", (about,), (), verdict=RecordedVerdict(result.word, result.by))


def _support_run(result: SupportRun, given: Mapping[str, Any]) -> Facts:
    data = result.claim.data
    return Facts(
        "support-1",
        (RecordedModel("model", result.claim.source.name, ()),),
        result.claim.targets,
        () if data is None else (RecordedData(data.asked.source, data.digest),),
        RecordedVerdict(f"{result.state} at {result.reached or 'no level'}", "support-1"),
    )


def _support_batch(result: SupportBatch, given: Mapping[str, Any]) -> Facts:
    about = tuple(RecordedModel("model", row.name, ()) for row in result.rows)
    passed = sum(row.exit_code == 0 for row in result.rows)
    return Facts("support-1", about, (), verdict=RecordedVerdict(f"{passed} of {len(result.rows)}", "support-1"))


def _ship(result: ShipResult, given: Mapping[str, Any]) -> Facts:
    words = {True: "passed", False: "failed", None: "unknown"}
    return Facts(
        "ship-1",
        tuple(RecordedModel(f"variant for {one.target}", result.model, one.files) for one in result.variants),
        _unique(one.target for one in result.variants),
        (RecordedData(as_data(given.get("data")).source, None),),
        RecordedVerdict(words[result.passed], "ship-1"),
    )


def _watch(result: WatchResult, given: Mapping[str, Any]) -> Facts:
    words = {True: "green", False: "regressed", None: "undecided"}
    return Facts(
        "watch-1",
        tuple(RecordedModel(case.name, case.model, case.files) for case in result.cases),
        _unique(case.target for case in result.cases),
        _unique_data(case.data for case in result.suite.cases),
        RecordedVerdict(words[result.passed], _BY_JUDGE),
    )


KINDS: Mapping[str, Kind] = {
    "perf": Kind(lambda: measure.PerfResult, _perf),
    "compare": Kind(lambda: measure.CompareResult, _compare),
    "eval": Kind(lambda: evaluation.EvalResult, _eval),
    "debug": Kind(lambda: diagnosis.DebugReport, _debug),
    "advise": Kind(lambda: answers.Decision, _advise),
    "diagnose": Kind(lambda: answers.Diagnosis, _diagnose),
    "analyze": Kind(lambda: pipeline.Analyses, _analyze),
    "build": Kind(lambda: pipeline.Builds, _build),
    "repair": Kind(lambda: repairs.Repaired, _repair),
    "tune": Kind(lambda: search.TuneResult, _tune),
    "sweep": Kind(lambda: search.TuneSweep, _sweep),
    "experiment": Kind(lambda: knowledge.ExperimentResult, _experiment),
    "ship": Kind(lambda: shipping.ShipResult, _ship),
    "watch": Kind(lambda: watching.WatchResult, _watch),
    "support gate": Kind(lambda: adding.GateResult, _support_gate),
    "support run": Kind(lambda: adding.SupportRun, _support_run),
    "support batch": Kind(lambda: adding.SupportBatch, _support_batch),
}


def _name(given: Mapping[str, Any], role: str, otherwise: str) -> str:
    """What the user called it; a value of ours has no such name."""
    said = given.get(role)
    return str(said) if isinstance(said, str | Path) else otherwise


def _files(files: Iterable[FileEntry]) -> tuple[FileDigest, ...]:
    return tuple(FileDigest(file.name, file.digest, file.size) for file in files)


def _unique_data(sources: Iterable[str | None]) -> tuple[RecordedData, ...]:
    return tuple(RecordedData(source, None) for source in _unique(as_data(source).source for source in sources))


def _unique(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
