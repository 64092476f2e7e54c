"""What was found about an arm in one sentence that claims no more than is proven."""

from __future__ import annotations

from modelwright.judge import SAID, TYPICAL, WORK, Finding, Verdict, VerdictKind

_NAMES = {WORK: "its work", TYPICAL: "its typical run"}


def sentence(arm: str, base: str, found: Finding, total_s: float, different: str | None = None) -> str:
    """For example: int8 is faster than fp32: its work is about 12.4 % faster (p10, 97.5 % interval 10.9…13.8 %), its
    typical run is not decided (p50, +8.1 % so far, 97.5 % interval -2.0…+15.3 %); 14 units, 41 s."""
    first = found.by[0]
    but = f", but its answers differ ({different})" if different else ""
    if found.kind in (VerdictKind.DUPLICATE, VerdictKind.NOOP):
        same = SAID[found.kind].words.format(arm=arm, base=first.reason)
        return f"{same}, graph and session options alike: nothing was measured"
    head = SAID[found.kind].words.format(arm=arm, base=base)
    spent = f"{first.units} unit{'s' if first.units != 1 else ''}, {total_s:.0f} s"
    if found.kind is VerdictKind.INVALID:
        reasons = "; ".join(dict.fromkeys(verdict.reason for verdict in found.by))
        return f"{head}{but}: {reasons} ({spent})"
    return f"{head}{but}: {', '.join(_clause(verdict) for verdict in found.by)}; {spent}"


def quantile_name(quantile: float) -> str:
    return f"p{100 * quantile:g}"


def _clause(verdict: Verdict) -> str:
    name, short = _NAMES.get(verdict.quantile, "its tail"), quantile_name(verdict.quantile)
    effect, low, high = verdict.effect, verdict.low, verdict.high
    if effect is None or low is None or high is None:
        return f"there is no verdict on {name} ({short}: {verdict.reason})"
    level = f"{100 * (1 - verdict.alpha):.4g} % interval"
    odd = f", {verdict.bimodal} of {verdict.units} units bimodal" if verdict.bimodal else ""
    signed = f"{level} {100 * low:+.1f}…{100 * high:+.1f} %{odd}"
    if verdict.kind is VerdictKind.IMPROVED:
        return f"{name} is about {100 * effect:.1f} % faster ({short}, {level} {_span(low, high)}{odd})"
    if verdict.kind is VerdictKind.REGRESSED:
        return f"{name} is about {-100 * effect:.1f} % slower ({short}, {level} {_span(-high, -low)}{odd})"
    if verdict.kind is VerdictKind.EQUIVALENT:
        return f"{name} is as fast, proven within ±{100 * verdict.min_effect:g} % ({short}, {signed})"
    return f"{name} is not decided ({short}, {100 * effect:+.1f} % so far, {signed}{_odd_average(verdict)})"


def _odd_average(verdict: Verdict) -> str:
    """What keeps an interval that is narrow enough from being an equality."""
    low, high, average = verdict.low, verdict.high, verdict.average
    if low is None or high is None or average is None or max(-low, high) >= verdict.min_effect:
        return ""
    return f", {100 * average:+.1f} % on average: odd sessions are not excluded"


def _span(low: float, high: float) -> str:
    return f"{100 * low:.1f}…{100 * high:.1f} %"
