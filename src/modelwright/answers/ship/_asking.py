"""From builds to a package that was asked everything there is to ask of it here."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._installed import installed
from modelwright.answers.ship import _choosing as selectors
from modelwright.answers.ship._gates import GateFacts, SpeedAnswer, cpu_variant, gate_rows
from modelwright.answers.ship._package import PackageDraft, draft_package, write_package
from modelwright.answers.ship._trials import TrialPlan, run_trials, subjects
from modelwright.answers.ship._types import (
    HERE,
    ChainStep,
    ChosenVariant,
    LeastVersion,
    ShippedVariant,
    ShipResult,
    VariantTrial,
    Waiver,
)
from modelwright.answers.ship._variants import in_order
from modelwright.answers.ship._waivers import idle, waive
from modelwright.pipeline import BuildFailure, BuildResult
from modelwright.store import Store
from modelwright.targets import catalogue
from modelwright.vocabulary import Data, OnProgress, Progress
from modelwright.worker import find_runtime, run

_ORT = "onnxruntime"
_CHOOSE_S = 1800.0
Speeds = Callable[[PackageDraft, Sequence[VariantTrial]], Mapping[str, SpeedAnswer]]


@dataclass(frozen=True)
class PackageQuestion:
    """What is to be shipped, and what is said about it. `runtimes` are asked beside this environment."""

    model: str
    builds: tuple[BuildResult, ...]
    failed: tuple[BuildFailure, ...]
    output: Path
    data: Data
    runtimes: tuple[str, ...] = ()
    licence: str | None = None
    waivers: tuple[Waiver, ...] = ()
    overwrite: bool = False


def ship(asked: PackageQuestion, speeds: Speeds, store: Store, tell: OnProgress) -> ShipResult:
    """The package is written also when a gate says no: it is marked."""
    builds = in_order(asked.builds)
    with draft_package(builds, store) as draft:
        tell(Progress("the variants are on disk"))
        reference = cpu_variant(draft.variants)
        plan = TrialPlan(
            draft.folder,
            draft.variants,
            asked.runtimes,
            asked.data,
            None if reference is None else reference.target,
            dict(_too_slow(builds)),
        )
        trials = run_trials(plan, tell)
        draft.select([_with_needs(one, trials, ()) for one in draft.variants])
        chosen = tuple(_chosen(plan, place) for place in (HERE, *asked.runtimes))
        variants = tuple(_with_needs(one, trials, chosen) for one in draft.variants)
        seal = draft.select(variants)
        chain = _chain(draft.folder, variants)
        facts = GateFacts(
            builds={build.target: build for build in builds},
            failed=asked.failed,
            variants=variants,
            trials=trials,
            speeds=speeds(draft, trials),
            chain=chain,
            chosen=chosen,
            real=not asked.data.random,
            reference=plan.reference,
        )
        rows = waive(gate_rows(facts), asked.waivers, datetime.datetime.now(datetime.UTC).date())
        result = ShipResult(
            model=asked.model,
            folder=asked.output,
            selection_seal=seal,
            licence=asked.licence,
            variants=variants,
            gates=rows,
            chain=chain,
            trials=trials,
            chosen=chosen,
            idle_waivers=idle(rows, asked.waivers),
            size=sum({file.name: file.size for one in variants for file in one.files}.values()),
        )
        write_package(draft, result, _tools(), overwrite=asked.overwrite)
    return result


def _too_slow(builds: Sequence[BuildResult]) -> Iterator[tuple[str, str]]:
    """What did not open or end while it was built does not now: a simulator may take hours for a large model."""
    for build in builds:
        for part in build.components:
            if part.check is not None and part.check.passed is None and part.check.reason:
                yield build.target, part.check.reason


def _with_needs(
    variant: ShippedVariant, trials: Sequence[VariantTrial], chosen: Sequence[ChosenVariant]
) -> ShippedVariant:
    """The oldest versions that it was seen to run with; nobody says anything about older ones."""
    ran = [one for one in trials if one.target == variant.target and one.ran and one.onnxruntime is not None]
    oldest = min(ran, key=lambda one: _version(one.onnxruntime or ""), default=None)
    if oldest is None:
        least = LeastVersion(_ORT, installed(_ORT) or "0", None)
    else:
        least = LeastVersion(_ORT, str(oldest.onnxruntime), f"ran {oldest.place} with it")
    return replace(variant, needs=(least, *_ep_needs(variant, {one.place for one in ran}, chosen)))


def _ep_needs(variant: ShippedVariant, places: set[str], chosen: Sequence[ChosenVariant]) -> Iterator[LeastVersion]:
    """As its library calls itself, which is what a selector sees; an EP that is a part of onnxruntime has none."""
    said = [
        (version, one.place)
        for one in chosen
        if one.place in places
        for ep, _, version in one.devices
        if ep == variant.ep and version is not None and version != one.onnxruntime
    ]
    if said:
        version, place = min(said, key=lambda one: _version(one[0]))
        yield LeastVersion(variant.ep, version, f"ran {place} with it")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.partition("+")[0].split(".") if part.isdecimal())


def _chosen(plan: TrialPlan, place: str) -> ChosenVariant:
    """The selector that lies in the package, asked for real."""
    component = plan.variants[0].models[0].component
    feeds = subjects(plan, component)[0].feeds
    call = selectors.choose_here.call(str(plan.package), component, feeds, any_device=False)
    runtime = None if place == HERE else find_runtime(place)
    answer = run(call, runtime=runtime, timeout=_CHOOSE_S)
    if answer.failure is not None or answer.value is None:
        return ChosenVariant(place, None, None, (), False, answer.failure.message if answer.failure else None)
    found = answer.value
    return ChosenVariant(place, found.onnxruntime, found.chosen, found.tried, found.ran, found.reason, found.devices)


def _chain(package: Path, variants: Sequence[ShippedVariant]) -> tuple[ChainStep, ...]:
    """A machine that has it all loses one device of an EP after the other, in the order of the variants."""
    devices = list(dict.fromkeys((one.ep, one.device) for one in variants))
    version = max((least.version for one in variants for least in one.needs if least.what == _ORT), key=_version)
    left = [devices[gone:] for gone in range(len(devices))]
    machines = [(version, tuple((ep, device, None) for ep, device in some)) for some in left]
    found = run(selectors.choose_for.call(str(package), machines), timeout=_CHOOSE_S).unwrap()
    expected = [next(one.target for one in variants if (one.ep, one.device) == some[0]) for some in left]
    lost = [tuple(f"{ep} on {device}" for ep, device in devices[:gone]) for gone in range(len(devices))]
    steps = zip(lost, expected, found, strict=True)
    return tuple(ChainStep(gone, wanted, answer.chosen) for gone, wanted, answer in steps)


def _tools() -> dict[str, str]:
    names = (*catalogue().packages(), "onnx", "onnx-ir", "numpy", "torch", "transformers")
    return {name: version for name in names if (version := installed(name)) is not None}
