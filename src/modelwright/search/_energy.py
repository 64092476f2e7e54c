"""Energy as what a search makes small: where it can be read, and how it is said."""

from __future__ import annotations

from dataclasses import replace

from modelwright.errors import UsageError
from modelwright.judge import Finding, Verdict, VerdictKind
from modelwright.search._limits import TuneLimits
from modelwright.targets import EnergyZone, Target, energy_zones

WHAT_COUNTS = (
    "energy is that of the CPU's packages, with memory where it is counted, while a variant runs: "
    "whatever else runs and the CPU at rest are in it, the rest of the machine is not"
)


def countable(target: Target, limits: TuneLimits) -> tuple[EnergyZone, ...]:
    """What can be read here of the energy that this target takes; nothing where nobody asked."""
    if limits.objective != "energy":
        return ()
    if target.device != "cpu":
        raise UsageError(
            f"the energy of {target} cannot be measured",
            cause="what can be read is the energy of the CPU's packages, and this target computes elsewhere",
            fix="choose the objective latency, size or memory, or a target on the CPU",
        )
    if limits.by not in (TuneLimits(0.0).by, limits.judged_by):
        raise UsageError(
            "energy has no quantiles",
            cause="it is read for many runs at once, so there is only what a run takes on average",
            fix="leave `by` out",
        )
    return energy_zones()


def of_energy(verdict: Verdict) -> Verdict:
    """With a reason that says what was judged; the judge itself speaks of speed."""
    if verdict.kind not in (VerdictKind.IMPROVED, VerdictKind.REGRESSED) or verdict.effect is None:
        return verdict
    more, word = (verdict.effect, "more") if verdict.effect > 0 else (-verdict.effect, "less")
    span = verdict.reason.partition(", ")[2]
    return replace(verdict, reason=f"the baseline takes {more:.1%} {word} energy, {span}")


def energy_sentence(arm: str, base: str, found: Finding, total_s: float) -> str:
    """Of one that is proven to take less: effects are ratios of the baseline to it, minus one."""
    (verdict,) = found.by
    effect, low, high = (100 * saved(part) for part in (verdict.effect, verdict.low, verdict.high))
    level = f"{100 * (1 - verdict.alpha):.4g} % interval {low:.1f}…{high:.1f} %"
    units = f"{verdict.units} unit{'s' if verdict.units != 1 else ''}, {total_s:.0f} s"
    return f"{arm} takes less energy than {base}: a run takes about {effect:.1f} % less ({level}); {units}"


def saved(effect: float | None) -> float:
    """By how much less a run takes, of what it takes in the baseline."""
    return 0.0 if effect is None else effect / (1 + effect)
