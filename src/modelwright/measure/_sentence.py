"""A verdict in one sentence that claims no more than it proves."""

from __future__ import annotations

from modelwright.judge import Verdict, VerdictKind


def sentence(arm: str, base: str, verdict: Verdict, total_s: float) -> str:
    """For example: int8 is 12.4 % faster than fp32 (95 % interval 10.9…13.8 %, 14 units, 41 s)."""
    spent = f"{verdict.units} unit{'s' if verdict.units != 1 else ''}, {total_s:.0f} s"
    kind, effect = verdict.kind, verdict.effect
    if kind is VerdictKind.DUPLICATE or kind is VerdictKind.NOOP:
        return f"{arm} is the same as {verdict.reason}, graph and session options alike: nothing was measured"
    if effect is None or verdict.low is None or verdict.high is None:
        return f"no verdict on {arm} against {base}: {verdict.reason} ({spent})"
    level = f"{100 * (1 - verdict.alpha):.4g} % interval"
    if kind is VerdictKind.IMPROVED:
        span = _span(verdict.low, verdict.high)
        return f"{arm} is {100 * effect:.1f} % faster than {base} ({level} {span}, {spent})"
    if kind is VerdictKind.REGRESSED:
        span = _span(-verdict.high, -verdict.low)
        return f"{arm} is {-100 * effect:.1f} % slower than {base} ({level} {span}, {spent})"
    signed = f"{100 * verdict.low:+.1f}…{100 * verdict.high:+.1f} %"
    if kind is VerdictKind.EQUIVALENT:
        within = f"within ±{100 * verdict.min_effect:g} %"
        return f"{arm} is as fast as {base}, proven {within} ({level} {signed}, {spent})"
    return f"not decided between {arm} and {base}: {100 * effect:+.1f} % so far ({level} {signed}, {spent})"


def _span(low: float, high: float) -> str:
    return f"{100 * low:.1f}…{100 * high:.1f} %"
