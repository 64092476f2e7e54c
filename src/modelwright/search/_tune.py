"""The search, done: what the machine says is carried out, and what happens is written down before it counts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from modelwright import measure
from modelwright._json import digest
from modelwright.errors import InputError, StoreError, WrightError
from modelwright.evidence import EnvironmentProbe
from modelwright.knowledge import AXES, Advice, operators_of
from modelwright.measure import ArmFailed, Outputs
from modelwright.models import HfSource, OnnxSource, model_files
from modelwright.pipeline import (
    BuildFailure,
    BuildResult,
    Layer,
    RecipeChoices,
    resolve_recipe,
)
from modelwright.search._accuracy import lost
from modelwright.search._advice import advice_for, cited, ordered, remembered, spared
from modelwright.search._answer import tune_result
from modelwright.search._asked import asked
from modelwright.search._energy import countable
from modelwright.search._events import (
    DeviceCrashed,
    DeviceProbed,
    KnownEvents,
    MakeVariants,
    ProbeDevice,
    RebuildVariant,
    SearchDone,
    SearchEvent,
    TakeUnit,
    TryVariants,
    UnitTaken,
    VariantDropped,
    VariantMade,
    VariantRebuilt,
    VariantTried,
)
from modelwright.search._journal import SearchJournal
from modelwright.search._key import search_folder, search_key
from modelwright.search._machine import TuneSearch
from modelwright.search._optuna import find_proposer
from modelwright.search._space import added, chosen, precision_of, single_changes
from modelwright.search._types import DeviceLostError, TuneInterrupted, TuneOptions, TuneResult
from modelwright.search._variant import Variant
from modelwright.search._workshop import Workshop
from modelwright.store import Store
from modelwright.targets import Target
from modelwright.vocabulary import OnProgress, Progress, silent
from modelwright.worker import ChildError

Work = MakeVariants | TryVariants | TakeUnit | RebuildVariant | ProbeDevice
_FORECAST_AT = 3
_SHORT = 12
_UNKNOWN = "its accuracy is unknown without real data"


def tune(
    source: OnnxSource | HfSource,
    target: Target,
    choices: RecipeChoices,
    options: TuneOptions,
    *,
    layer: Layer,
    store: Store,
    on_progress: OnProgress | None = None,
) -> tuple[TuneResult, BuildResult]:
    """The configuration that is proven to be best on this target, and its build; the baseline where nothing is.

    What was measured is written down as it happens: after a kill the same call goes on. Raises TuneInterrupted, with
    where it stood, when somebody ends it early.
    """
    tell = on_progress or silent
    job, options = asked(source, target, choices, options, layer)
    job = replace(job, zones=countable(target, options.limits))
    own = added(options.add)
    with Workshop(job, store, tell) as shop:
        tell(Progress("building the baseline"))
        known = chosen(
            single_changes(job.recipe, target, shop.surroundings()), options.axes, options.forbid, options.only
        )
        advice = advice_for(known, shop.graph, target, store)
        variants = (*known, *own)
        if not variants:
            raise InputError(
                "there is nothing to search",
                cause=f"no axis of {', '.join(options.axes or AXES)} has another value for this model and target",
                fix="allow more axes",
            )
        return _Tuning(shop, variants, advice, options, store, tell).run()


class _Tuning:
    """One search at work."""

    _expected: Outputs | None
    _told = False

    def __init__(
        self,
        shop: Workshop,
        variants: tuple[Variant, ...],
        advice: Advice,
        options: TuneOptions,
        store: Store,
        tell: OnProgress,
    ) -> None:
        self.shop, self.options, self.tell = shop, options, tell
        name = search_folder(store) / search_key(shop.job, options)
        self.journal = SearchJournal(name.with_suffix(".jsonl"))
        seed = self.journal.begin(secrets.randbits(32))
        if options.again:
            self.journal.again(variant.label for variant in variants if options.only)
        # What a search writes down itself must not change its own order; other axes make another one.
        about = digest(sorted(variant.label for variant in variants))[:_SHORT]
        known = remembered(name.with_suffix(f".{about}.advice.json"), advice, again=options.again)
        self.advice = spared(known) if options.only else known
        self.search = TuneSearch(ordered(variants, self.advice), options.limits, seed, find_proposer())
        self.known, self.resumed, self._expected = KnownEvents(self.journal.events()), 0, None

    def run(self) -> tuple[TuneResult, BuildResult]:
        probe = EnvironmentProbe()
        try:
            while not isinstance(done := self.search.next(), SearchDone):
                self._step(done)
        except KeyboardInterrupt:
            stop = TuneInterrupted()
            stop.partial = self._result(SearchDone("baseline", "the search was ended before it could tell"), probe)
            stop.partial = replace(stop.partial, status="interrupted")
            raise stop from None
        if done.lost:
            gone = DeviceLostError(
                "the search was ended by its device",
                cause=done.reason,
                fix="bring the device back (a restart often does); the same call goes on from here",
            )
            gone.partial = replace(self._result(done, probe), status="crashed")
            raise gone
        if self.search.baseline.dropped is not None:
            raise InputError(
                "the baseline cannot be measured",
                cause=self.search.baseline.dropped.reason,
                fix="see to that first: `wright build` and `wright perf` say more",
            )
        (build,) = self.shop.made((self.search.contenders[done.champion].variant,))
        assert isinstance(build, BuildResult)
        return self._result(done, probe), build

    def _step(self, instruction: Work) -> None:
        """What happened in an earlier call is not done again."""
        event = self.known.take(instruction)
        if event is not None:
            self.search.tell(event)
            self.resumed += 1
            return
        if self.resumed and not self._told:
            self.tell(Progress(f"going on after {self.resumed} steps of an earlier search"))
            self._told = True
        for event in self._do(instruction):
            # A device that is gone may be there again at the next call, and is asked again.
            if not (isinstance(event, DeviceProbed) and event.fails is not None):
                self.journal.add(event)
            self.search.tell(event)

    # --- one instruction ----------------------------------------------------------------------------------------------

    def _do(self, instruction: Work) -> Iterator[SearchEvent]:
        began = time.monotonic()
        for event in self._events(instruction):
            now = time.monotonic()
            yield replace(event, seconds=now - began)
            began = time.monotonic()

    def _events(self, instruction: Work) -> Iterator[SearchEvent]:
        if isinstance(instruction, MakeVariants):
            yield from self._make(instruction.variants)
        elif isinstance(instruction, TryVariants):
            for label in instruction.labels:
                yield self._tried(self._variant(label))
        elif isinstance(instruction, TakeUnit):
            yield self._unit(instruction)
        elif isinstance(instruction, ProbeDevice):
            self.tell(Progress(f"{instruction.label} broke its process: asking the device whether it still works"))
            yield DeviceProbed(instruction.label, self.shop.device_fails())
        else:
            yield self._rebuilt(self._variant(instruction.label))

    def _make(self, variants: tuple[Variant, ...]) -> Iterator[SearchEvent]:
        """Another precision without real data is not even made: nobody could tell what it is worth. Nor is what a
        confirmed finding says to hurt here, unless it was asked for by name."""
        dropped = {one: self.advice.dropped(one.label) for one in variants}
        ruled = {one: known for one, known in dropped.items() if known is not None}
        for variant, known in ruled.items():
            yield VariantDropped(variant.label, "rule", f"{known.why}: finding {known.finding}")
        variants = tuple(variant for variant in variants if variant not in ruled)
        blind = self.shop.job.recipe.data.random
        hidden = [variant for variant in variants if blind and precision_of(variant) is not None]
        for variant in hidden:
            yield VariantDropped(variant.label, "gate", _UNKNOWN)
        wanted = [variant for variant in variants if variant not in hidden]
        for variant, found in zip(wanted, self.shop.made(wanted), strict=True):
            yield self._made(variant, found)

    def _made(self, variant: Variant, found: BuildResult | BuildFailure) -> VariantMade | VariantDropped:
        if isinstance(found, BuildFailure):
            self._refuse_common(found.error)
            return VariantDropped(variant.label, "failed", f"{found.error.problem}: {found.error.cause}")
        if found.components[0].validation.passed is False:
            return VariantDropped(variant.label, "gate", _why(found))
        if found.passed is None and precision_of(variant) is not None:
            return VariantDropped(variant.label, "gate", _UNKNOWN)
        size = found.components[0].final.size
        return VariantMade(variant.label, self.shop.identity(variant), size, graph=self.shop.graph_of(variant))

    def _refuse_common(self, error: WrightError) -> None:
        """What does not depend on the variant ends the search at once: no place to write, a model or data that is gone.
        Then the baseline's own recipe does not come to an end either."""
        if isinstance(error, StoreError):
            raise error
        job = self.shop.job
        resolve_recipe(job.source, job.target, job.choices, job.layer)

    def _tried(self, variant: Variant) -> VariantTried | VariantDropped | DeviceCrashed:
        self.tell(Progress(f"trying {variant.label}"))
        try:
            found = self._fitting(variant)
        except WrightError as error:
            self.shop.renew()
            reason = f"{error.problem}: {error.cause}"
            return DeviceCrashed(variant.label, reason) if _died(error) else _crashed(variant, reason)
        judged = self.options.max_drop is not None and precision_of(variant) is not None
        if isinstance(found, VariantDropped) or not judged:
            return found
        # What an evaluation cannot do (no labels, no such task) it can do for no variant.
        drop, why = lost(variant, self.shop, self.options, self.tell)
        return replace(found, lost=drop) if why is None else VariantDropped(variant.label, "gate", why)

    def _fitting(self, variant: Variant) -> VariantTried | VariantDropped:
        placed, base = self.shop.placed(variant), Variant()
        left = len(placed.unsupported) if placed is not None and placed.status == "placed" else None
        pieces = sum(share.partitions for share in placed.eps) if placed is not None else None
        timed = self.shop.facts(base).timing_valid if variant == base else self._timed
        different = self.shop.differs(variant, self._answers()) if timed and variant != base else None
        if different is not None:
            return VariantDropped(variant.label, "answers", different)
        refused = self._refused(variant, left)
        if refused is not None:
            return VariantDropped(variant.label, "gate", refused)
        peak = self.shop.peak_bytes(variant) if self.options.limits.weighs else None
        return VariantTried(variant.label, left, pieces, timed, peak)

    def _refused(self, variant: Variant, left: int | None) -> str | None:
        """Why the target said no to it; one that it takes less of than of the baseline is out by its placement."""
        base = self.search.baseline.tried
        if base is not None and base.left_nodes is not None and left is not None and left > base.left_nodes:
            return None
        (found,) = self.shop.made((variant,))
        check = found.components[0].check if isinstance(found, BuildResult) else None
        return (check.reason or "the target refuses it") if check is not None and check.passed is False else None

    def _unit(self, turn: TakeUnit) -> UnitTaken | VariantDropped | DeviceCrashed:
        variant = None if turn.label is None else self._variant(turn.label)
        number = self.search.units + 1
        what = "confirming" if turn.confirming else "measuring"
        self.tell(Progress(f"{what} {turn.label or 'the baseline against itself'}", None, f"unit {number}"))
        try:
            with measure.measurement_lock("wright tune", wait=self.options.wait, on_progress=self.tell):
                unit = self.shop.unit(number, variant, base_first=turn.base_first, fresh=turn.confirming)
        except ArmFailed as failed:
            reason = f"{failed.error.problem}: {failed.error.cause}"
            if _died(failed.error):
                return DeviceCrashed(failed.arm.name, reason)
            if variant is None or failed.arm.name != variant.label:
                raise failed.error from None
            return _crashed(variant, reason)
        if number == _FORECAST_AT:
            self.tell(Progress(self._forecast(unit.total_s)))
        energy = ([[mj] for mj in unit.base_mj], [[mj] for mj in unit.arm_mj])
        return UnitTaken(turn.label, turn.base_first, unit.base_ms, unit.arm_ms, turn.confirming, 0.0, *energy)

    def _forecast(self, unit_s: float) -> str:
        arms, budget = len(self.search.alive), self.options.limits.budget_s
        need = f"about {self.search.needed_s:.0f} s screen them"
        return f"{arms} arms, a unit takes {unit_s:.1f} s: {need}, {budget:.0f} s may be spent"

    def _rebuilt(self, variant: Variant) -> VariantRebuilt:
        self.tell(Progress(f"building {variant.label} anew"))
        self.shop.rebuilt(variant)
        same = self.shop.is_reproduced(variant)
        return VariantRebuilt(variant.label, self.shop.identity(variant) if same else "other")

    # --- what it needs to know ----------------------------------------------------------------------------------------

    @property
    def _timed(self) -> bool:
        tried = self.search.baseline.tried
        return tried is None or tried.timed

    def _answers(self) -> Outputs:
        if self._expected is None:
            self.shop.facts(Variant())
            self._expected = self.shop.answers(Variant())
        return self._expected

    def _variant(self, label: str) -> Variant:
        return self.search.contenders[label].variant

    def _result(self, done: SearchDone, probe: EnvironmentProbe) -> TuneResult:
        job = self.shop.job
        variant = self.search.contenders[done.champion].variant
        rebuilt = self.search.rebuilt
        result = tune_result(
            self.search,
            done,
            model=str(job.source.path) if isinstance(job.source, OnnxSource) else job.source.name,
            target=str(job.target),
            files=model_files(Path(job.source.path)) if isinstance(job.source, OnnxSource) else (),
            recipe=self.shop.recipe_of(variant),
            pinned=job.pinned,
            resumed=self.resumed,
            reproducible=None if rebuilt is None else rebuilt.identity != "other",
            environment=probe.finish(self.shop.runner.cpu_s if self._timed and self.search.units else None),
        )
        graph, operators = self.shop.graph, operators_of(self.shop.file(variant))
        return replace(
            result,
            rows=cited(result.rows, self.advice),
            insights=self.advice.insights,
            family=graph.family,
            mark=graph.mark,
            precision=job.recipe.precision,
            operators=tuple(operators),
            graph=_differing(operators_of(self.shop.file(Variant())), operators),
        )


def _differing(base: Mapping[str, int], other: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    pairs = {name: (base.get(name, 0), other.get(name, 0)) for name in sorted({*base, *other})}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _died(error: WrightError) -> bool:
    return isinstance(error, ChildError) and error.died


def _crashed(variant: Variant, reason: str) -> VariantDropped:
    return VariantDropped(variant.label, "crashed", reason)


def _why(found: BuildResult) -> str:
    failed = [check for one in found.components for check in one.validation.checks if check.passed is False]
    return f"{failed[0].name}: {failed[0].detail}" if failed else "its gate failed"
