"""Which precision on which target: a few builds, each measured against what is wanted, and one that is recommended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import ClassVar

from modelwright import evaluation, measure, pipeline
from modelwright._dataclass import dataclass
from modelwright.errors import WrightError
from modelwright.evaluation import EvalOptions, EvalResult
from modelwright.graph import MODEL
from modelwright.judge import Allowance, VerdictKind
from modelwright.measure import Arm, CompareOptions, InputChoice, PerfOptions, PerfResult
from modelwright.models import FileDigest, OnnxSource, model_files
from modelwright.pipeline import BuildResult, RecipeChoices, resolve_recipe
from modelwright.store import Store
from modelwright.targets import Target
from modelwright.vocabulary import Data, OnProgress, Progress, Result, silent, weakest

ADVISE_PROTOCOL = "advise-3"
PLAIN = "fp32"
_DURATION_S, _SESSIONS = 2.0, 2
_PASSED: dict[VerdictKind | None, bool] = {VerdictKind.PASS: True, VerdictKind.FAIL: False}
_OPEN = (VerdictKind.INCONCLUSIVE, VerdictKind.INVALID)
_GATES: dict[bool | None, str | None] = {
    True: None,
    False: "it failed the gate of its build",
    None: "nothing real says whether its answers are right",
}


@dataclass(frozen=True)
class WantedLimits:
    """What must hold; None is not asked. `max_drop` is of the metric of the task, as it was said."""

    max_drop: str | None = None
    latency_ms: float | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Offer:
    """One build. Each `holds` is None where it is not decided or was not asked. `passed` is what the gate of its build
    said of its answers; None where no real samples could tell. `typical_ms` is the median run, `nine_of_ten_ms` what
    nine of ten runs stay below; `race` is the sentence of the race against the best of those before it, and `faster` is
    None where that did not decide. `why` says what keeps it from being chosen, `fix` what would decide about it; one
    that is not `usable` was not built, or does not run."""

    target: str
    precision: str
    size_bytes: int | None = None
    files: tuple[FileDigest, ...] = ()
    usable: bool = True
    passed: bool | None = None
    accuracy: str | None = None
    holds_drop: bool | None = None
    typical_ms: float | None = None
    nine_of_ten_ms: float | None = None
    holds_latency: bool | None = None
    peak_bytes: int | None = None
    holds_memory: bool | None = None
    race: str | None = None
    faster: bool | None = None
    why: str | None = None
    fix: str | None = None

    @property
    def name(self) -> str:
        return f"{self.precision} on {self.target}"


@dataclass(frozen=True)
class Decision(Result):
    """What was chosen, among what, and what would change it. `chosen` is None where nothing is shown to hold all.
    `undecided`: an offer that might be better is neither shown to be nor shown not to be. `changed` is what differs
    from the record that was replayed."""

    kind: ClassVar[str] = "advise"

    model: str
    files: tuple[FileDigest, ...]
    wanted: WantedLimits
    offers: tuple[Offer, ...]
    chosen: str | None
    reasons: tuple[str, ...]
    would_change: tuple[str, ...]
    undecided: bool
    replayed: str | None = None
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class AdviseOptions:
    """`targets` in the order of preference; `limit` is `max_drop`, read."""

    targets: tuple[Target, ...]
    wanted: WantedLimits = field(default_factory=WantedLimits)
    limit: Allowance | None = None
    data: Data = field(default_factory=Data)
    task: str | None = None
    metric: str | None = None
    precisions: tuple[str, ...] = ()
    threads: int | None = None
    budget_s: float = 40.0


@dataclass(frozen=True)
class _MadeOffer:
    offer: Offer
    target: Target
    path: Path | None = None


def advise(model: Path, options: AdviseOptions, *, store: Store, on_progress: OnProgress | None = None) -> Decision:
    """Builds what could be chosen, measures each, and chooses what holds and is proven to be fastest."""
    tell = on_progress or silent
    made = [
        _offered(model, target, precision, options, store, tell)
        for target in options.targets
        for precision in _precisions(target, options)
    ]
    best, offers = _raced(made, options, tell)
    return _decision(model, options.wanted, offers, best)


def _precisions(target: Target, options: AdviseOptions) -> tuple[str, ...]:
    """The plainest first."""
    return options.precisions or tuple(dict.fromkeys((PLAIN, target.device_entry.precision, "w8a8")))


def _offered(
    model: Path, target: Target, precision: str, options: AdviseOptions, store: Store, tell: OnProgress
) -> _MadeOffer:
    offer = Offer(str(target), precision)
    tell(Progress(f"building {offer.name}"))
    source = OnnxSource(str(model))
    try:
        recipe = resolve_recipe(source, target, RecipeChoices(precision=precision, data=options.data))
        built = pipeline.build(source, recipe, store=store)
        path = _file(built)
        offer = replace(offer, size_bytes=sum(file.size for file in model_files(path)), files=model_files(path))
        offer = _judged(offer, model, path, target, options, built)
        return _MadeOffer(_timed(offer, path, target, options), target, path)
    except WrightError as error:
        return _MadeOffer(replace(offer, why=f"{error.problem}: {error.cause}", usable=False), target)


def _file(built: BuildResult) -> Path:
    (part,) = built.components
    final = part.final
    return final.artifact.path_of(f"{final.folder}/{MODEL}" if final.folder else MODEL)


def _judged(offer: Offer, model: Path, path: Path, target: Target, options: AdviseOptions, built: BuildResult) -> Offer:
    """The drop on samples that calibration did not see; without one that was asked for, the build's own gate."""
    if options.limit is None:
        return replace(offer, passed=built.passed, why=_GATES[built.passed])
    rows = built.recipe.quantize.samples if built.recipe.quantize is not None else 0
    asked = EvalOptions(max_drop=options.limit, metric=options.metric, target=str(target), after=rows)
    result = evaluation.evaluate(path, model, options.data, options.task, asked)
    words = "; ".join(result.reasons) or str(result.verdict)
    passed, why = _PASSED.get(result.verdict), _lost(result, words)
    return replace(offer, passed=built.passed, accuracy=_accuracy(result), holds_drop=passed, why=why)


def _accuracy(result: EvalResult) -> str:
    values = result.values
    if values is None or result.metric is None:
        return str(result.verdict)
    return f"{result.metric.name} {values.candidate:.4g}, reference {values.reference:.4g}"


def _lost(result: EvalResult, words: str) -> str | None:
    return None if result.verdict is VerdictKind.PASS else f"accuracy: {words}"


def _timed(offer: Offer, path: Path, target: Target, options: AdviseOptions) -> Offer:
    asked = PerfOptions(
        duration_s=_DURATION_S,
        sessions=_SESSIONS,
        threads=options.threads,
        inputs=InputChoice(replace(options.data, samples=None)),
    )
    result = measure.perf(path, target, asked)
    return _with_fix(_within(_with_times(offer, result), options.wanted), options.wanted)


def _with_times(offer: Offer, result: PerfResult) -> Offer:
    found = result.latency
    offer = replace(offer, peak_bytes=result.peak_rss_bytes)
    return offer if found is None else replace(offer, typical_ms=found.p50_ms, nine_of_ten_ms=found.p90_ms)


def _within(offer: Offer, wanted: WantedLimits) -> Offer:
    """Held where nine of ten runs are within it, missed where half are not; between them nothing is told."""
    limit, room = wanted.latency_ms, wanted.memory_bytes
    if limit is not None and offer.typical_ms is not None and offer.nine_of_ten_ms is not None:
        held = True if offer.nine_of_ten_ms <= limit else False if offer.typical_ms > limit else None
        offer = replace(offer, holds_latency=held)
    if room is not None and offer.peak_bytes is not None:
        offer = replace(offer, holds_memory=offer.peak_bytes <= room)
    return offer


def _with_fix(offer: Offer, wanted: WantedLimits) -> Offer:
    """The first that is open is told; what is missed is decided."""
    if held(offer, wanted) is not None:
        return offer
    if wanted.max_drop is not None and offer.holds_drop is None:
        fix = "give more labelled samples as `data`"
    elif wanted.max_drop is None and offer.passed is None:
        fix = "give real samples as `data`"
    elif offer.typical_ms is None:
        fix = "measure it on a machine that has the device"
    else:
        fix = "measure it on a quieter machine, or allow more `latency_ms`"
    return replace(offer, fix=fix)


def held(offer: Offer, wanted: WantedLimits) -> bool | None:
    """Everything that was asked, and answers that its gate passed where no drop was; None where something is not
    decided and nothing is missed."""
    if not offer.usable:
        return False
    asked = [(wanted.latency_ms, offer.holds_latency), (wanted.memory_bytes, offer.holds_memory)]
    answers = offer.passed if wanted.max_drop is None else offer.holds_drop
    return weakest([answers, *(holds for limit, holds in asked if limit is not None)])


def _raced(
    made: Sequence[_MadeOffer], options: AdviseOptions, tell: OnProgress
) -> tuple[str | None, tuple[Offer, ...]]:
    """Each of those that hold against the best of those before it, so what is chosen has won against one that had."""
    good = [one for one in made if held(one.offer, options.wanted)]
    raced = {id(one): one.offer for one in made}
    best = _first(good)
    for one in good:
        if best is None or one is best or one.offer.typical_ms is None or best.offer.typical_ms is None:
            continue
        tell(Progress(f"racing {one.offer.name} against {best.offer.name}"))
        raced[id(one)] = _race(best, one, options)
        best = one if raced[id(one)].faster else best
    return None if best is None else best.offer.name, tuple(raced[id(one)] for one in made)


def _first(good: Sequence[_MadeOffer]) -> _MadeOffer | None:
    """The plainest on the target that is preferred; where nothing can be timed, what the target is built in."""
    own = [one for one in good if one.offer.precision == one.target.device_entry.precision]
    own = [one for one in own if one.target == good[0].target and one.offer.typical_ms is None]
    return next(iter([*own, *good]), None)


def _race(base: _MadeOffer, other: _MadeOffer, options: AdviseOptions) -> Offer:
    arms = [
        Arm(str(one.path), name=one.offer.name, target=str(one.target), threads=options.threads)
        for one in (base, other)
    ]
    inputs = InputChoice(replace(options.data, samples=None))
    asked = CompareOptions(inputs=inputs, budget_s=options.budget_s, allow_different=True)
    try:
        result = measure.compare(arms, asked)
    except WrightError as error:
        return replace(other.offer, race=f"{error.problem}: {error.cause}", fix=error.fix)
    arm = result.arms[1]
    settled = None if arm.verdict is None or arm.verdict.kind in _OPEN else arm.verdict.kind
    faster = None if settled is None else settled is VerdictKind.IMPROVED
    fix = measure.what_settles(arm, result) if settled is None else None
    return replace(other.offer, race=arm.sentence, faster=faster, fix=fix)


def _decision(model: Path, wanted: WantedLimits, offers: tuple[Offer, ...], best: str | None) -> Decision:
    good = [offer for offer in offers if held(offer, wanted)]
    return Decision(
        model=str(model),
        files=model_files(model),
        wanted=wanted,
        offers=offers,
        chosen=best,
        reasons=_reasons(best, good),
        would_change=tuple(_would_change(offer, wanted) for offer in offers if held(offer, wanted) is not True),
        undecided=any(open_about(offer, wanted) for offer in offers),
    )


def open_about(offer: Offer, wanted: WantedLimits) -> bool:
    """It might be the better one: what was asked, or its race, is not decided."""
    holds = held(offer, wanted)
    return holds is None or (holds and offer.race is not None and offer.faster is None)


def _reasons(best: str | None, good: Sequence[Offer]) -> tuple[str, ...]:
    if best is None:
        return ("nothing that was built is shown to hold everything that was asked",)
    (chosen,) = (offer for offer in good if offer.name == best)
    first = f"{best} holds everything that was asked"
    if chosen.typical_ms is None:
        return (first, f"nothing can be timed here for {chosen.target}: {chosen.precision} is what it is built in")
    plainest = () if chosen.race else ("it is the plainest that does, and none is proven to be faster",)
    return (first, *plainest, *(offer.race for offer in good if offer.race is not None))


def _would_change(offer: Offer, wanted: WantedLimits) -> str:
    missed = []
    if wanted.max_drop is not None and offer.holds_drop is not True:
        missed.append(offer.why or "its accuracy is not decided")
    if wanted.latency_ms is not None and offer.holds_latency is not True and offer.nine_of_ten_ms is not None:
        missed.append(f"nine of ten runs take up to {offer.nine_of_ten_ms:.3g} ms, asked were {wanted.latency_ms:g} ms")
    if wanted.memory_bytes is not None and offer.holds_memory is not True and offer.peak_bytes is not None:
        missed.append(
            f"it takes {offer.peak_bytes / 2**20:,.0f} MiB, asked were {wanted.memory_bytes / 2**20:,.0f} MiB"
        )
    if wanted.max_drop is None and offer.why is not None:
        missed.append(offer.why)
    return f"{offer.name}: {'; '.join(missed or [offer.why or 'not measured here'])}"


def differences(then: Decision, now: Decision) -> tuple[str, ...]:
    """What a replay found otherwise; times are not compared, two measurements prove nothing about each other."""
    found = [] if then.chosen == now.chosen else [f"chosen: {then.chosen or 'nothing'} → {now.chosen or 'nothing'}"]
    before = {offer.name: offer for offer in then.offers}
    for offer in now.offers:
        old = before.get(offer.name)
        if old is None:
            found.append(f"{offer.name} was not offered then")
            continue
        if old.files != offer.files:
            found.append(f"{offer.name} is another file now")
        if held(old, then.wanted) is not held(offer, now.wanted):
            found.append(f"{offer.name}: held {held(old, then.wanted)} → {held(offer, now.wanted)}")
    return (*found, *(f"{name} is not offered now" for name in before.keys() - {offer.name for offer in now.offers}))
